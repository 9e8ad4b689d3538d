"""Hosts made of namespaces on this machine: each has a network, a name and a folder of its own. Needs root.

A host is a process that sleeps in its namespaces: they are gone when it is, and it ends with the test's process. The
cables lead to a switch in a namespace of its own, so that nothing of this is seen outside, and no address other than
10.77.0.0/16 and 10.78.0.0/16 is used."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

NAMES = "abcdefgh"
CARD = "card0"  # of every host
SECOND_CARD = "card1"  # of hosts that were given one
MASTER_PORT = 29555  # free: a host has no other programs


def reason_without_hosts():
    """Why there can be none here; None where there can."""
    if os.geteuid() != 0:
        return "needs root"
    for tool in ("ip", "nsenter", "setpriv", "tc", "unshare"):
        if not shutil.which(tool):
            return f"needs {tool}"
    done = subprocess.run(["unshare", "--net", "--uts", "--mount", "sh", "-c",
                           "ip link add cable type veth peer name other && ip link add switch type bridge"],
                          capture_output=True, text=True)
    return None if done.returncode == 0 else f"cannot make namespaces and cables: {done.stderr.strip()}"


class Host:
    """Processes are started in it with `wrapper` before their command line."""

    def __init__(self, stack, folder, name):
        self.name = name
        self.folder = folder
        self.holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--uts", "--mount",
                                        "sleep", "infinity"], stdin=subprocess.DEVNULL)
        stack.callback(self.holder.wait)
        stack.callback(self.holder.kill)
        command = Path(f"/proc/{self.holder.pid}/cmdline")
        until = time.monotonic() + 10
        while not command.read_bytes().startswith(b"sleep"):
            assert time.monotonic() < until, f"host {name}: not made within 10 s"
            time.sleep(0.05)
        self.run("hostname", name)
        self.run("ip", "link", "set", "lo", "up")

    @property
    def wrapper(self):
        return ["nsenter", "--target", str(self.holder.pid), "--net", "--uts", "--mount", f"--wdns={self.folder}"]

    def run(self, *command):
        done = subprocess.run([*self.wrapper, *map(str, command)], capture_output=True, text=True)
        assert done.returncode == 0, f"host {self.name}: {command}: {done.stderr}"
        return done.stdout

    @contextlib.contextmanager
    def network(self):
        """This thread's sockets are made on this host meanwhile."""
        set_network = ctypes.CDLL(None, use_errno=True).setns
        with open("/proc/thread-self/ns/net") as outside, open(f"/proc/{self.holder.pid}/ns/net") as inside:
            assert set_network(inside.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                assert set_network(outside.fileno(), 0) == 0, os.strerror(ctypes.get_errno())

    def own_folder(self):
        """From now on the folder is this host's own, with a copy of what is in it."""
        stage = f"{self.folder}/own"
        self.run("sh", "-c", f"mkdir {stage} && mount -t tmpfs own {stage} && "
                             f"find . -mindepth 1 -maxdepth 1 ! -name own -exec cp -a {{}} {stage} \\; && "
                             f"mount --move {stage} {self.folder}")
        os.rmdir(stage)

    def small_disk(self, folder):
        """From now on this host's folder is a disk of 32 MiB, with what was in it."""
        self.run("sh", "-c", f"mkdir -p {folder} disk && mount -t tmpfs -o size=32m disk disk && "
                             f"cp -a {folder}/. disk && mount --move disk {folder}")

    def fill_disk(self, folder):
        """Until nothing fits any more; the file that fills it."""
        path = self.path(f"{folder}/filler")
        with contextlib.suppress(OSError), open(path, "wb") as filler:
            while True:
                filler.write(bytes(4096))
                filler.flush()
        return path

    def path(self, name):
        """Of a file in this host's folder, for whoever is outside."""
        return Path(f"/proc/{self.holder.pid}/root{self.folder}") / name

    def connect(self, switch, address):
        """A cable to the switch, and an address at its end."""
        self.switch = switch
        self.address = address
        self.add_card(CARD, address)

    def add_card(self, card, address):
        port = f"{card}-{self.name}"
        self.run("ip", "link", "add", card, "type", "veth", "peer", "name", port, "netns", self.switch.holder.pid)
        self.switch.run("ip", "link", "set", port, "master", "switch", "up")
        self.run("ip", "address", "add", f"{address}/16", "dev", card)
        self.run("ip", "link", "set", card, "up")

    def add_second_card(self):
        """The address of another network, which the same switch carries."""
        address = self.address.replace("10.77.", "10.78.")
        self.add_card(SECOND_CARD, address)
        return address

    def call_by_name(self, name, *addresses):
        """From now on this host's /etc/hosts has this name, and no other but those that were given before."""
        file = self.path("hosts")
        is_first = not file.exists()
        with file.open("a") as names:
            names.writelines(f"{address} {name}\n" for address in addresses)
        if is_first:
            self.run("mount", "--bind", f"{self.folder}/hosts", "/etc/hosts")

    def answers_nobody(self, address):
        """Whatever this host sends there is lost."""
        self.run("ip", "route", "add", "blackhole", f"{address}/32")

    def sends_in_vain_to(self, address):
        """Nobody has the card that this host takes for its: no answer comes, not even that there is none."""
        self.run("ip", "neighbour", "add", address, "lladdr", "02:00:00:00:00:01", "dev", CARD, "nud", "permanent")

    def block_high_ports(self):
        """As many a firewall does: what goes to ports that systems give out by themselves is dropped."""
        self.run("ip", "rule", "add", "ipproto", "tcp", "dport", "32768-60999", "blackhole")

    def slow_down(self, megabits):
        """What this host sends goes at this rate."""
        self.run("tc", "qdisc", "add", "dev", CARD, "root", "tbf", "rate", f"{megabits}mbit", "burst", "64kb",
                 "latency", "50ms")

    def slow_down_cable(self, megabits):
        """What this host sends and what it is sent goes at this rate."""
        self.slow_down(megabits)
        self.switch.run("tc", "qdisc", "add", "dev", f"{CARD}-{self.name}", "root", "tbf", "rate", f"{megabits}mbit",
                        "burst", "64kb", "latency", "50ms")

    def pull_the_cable(self):
        """Nothing is closed: what was connected waits."""
        self.run("ip", "link", "set", CARD, "down")

    def plug_the_cable_in(self):
        self.run("ip", "link", "set", CARD, "up")

    def processes(self):
        """All of them but the one that it is made of."""
        own, found = os.readlink(f"/proc/{self.holder.pid}/ns/net"), []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{entry}/ns/net") == own and int(entry) != self.holder.pid:
                    found.append(int(entry))
            except OSError:  # it has ended
                pass
        return found

    def lose_power(self):
        """Nobody hears of it: its connections are not closed."""
        self.pull_the_cable()
        while pids := self.processes():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    def switch_on(self):
        """After lose_power: with its files, and without a process."""
        self.plug_the_cable_in()


def introduce(hosts):
    """From now on they know each other, and themselves, by name."""
    for host in hosts:
        for other in hosts:
            host.call_by_name(other.name, other.address)


def rank_variables(hosts, rank, per_host=1):
    """By which a rank knows itself, as torchrun sets them, where each of the hosts has `per_host`: the first host's
    come first, and rank 0 hosts the store."""
    return {"RANK": rank, "LOCAL_RANK": rank % per_host, "WORLD_SIZE": per_host * len(hosts),
            "MASTER_ADDR": hosts[0].address, "MASTER_PORT": MASTER_PORT}


def make_hosts(stack, folder, count):
    """Hosts a, b, ... at 10.77.0.1, 10.77.0.2, ..., each with a copy of the folder; none of them knows the others'
    names. They are gone when the ExitStack is closed. Only where reason_without_hosts() gives none."""
    switch = Host(stack, folder, "switch")
    switch.run("ip", "link", "add", "switch", "type", "bridge")
    switch.run("ip", "link", "set", "switch", "up")
    hosts = []
    for number, name in enumerate(NAMES[:count], 1):
        host = Host(stack, folder, name)
        host.connect(switch, f"10.77.0.{number}")
        host.own_folder()
        hosts.append(host)
    return hosts


def hosts_for(test, count):
    """make_hosts() with the test's folder, until the test ends. Skips it, loudly, where that needs more than there
    is."""
    if reason := reason_without_hosts():
        print(f"\nSKIPPED LOUDLY: hosts in namespaces: {reason}", file=sys.stderr)
        test.skipTest(reason)
    stack = contextlib.ExitStack()
    test.addCleanup(stack.close)
    return make_hosts(stack, test.folder, count)
