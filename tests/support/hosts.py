"""Hosts emulated by namespaces on this machine: each has its own network, name and folder. This needs root.

A host is a process that sleeps in its namespaces: they are gone when it ends, and it ends with the test's process. The
cables lead to a switch in a separate namespace, so that nothing is visible outside, and only the addresses 10.77.0.0/16
and 10.78.0.0/16 are used."""

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
CARD = "card0"  # the network card of every host
SECOND_CARD = "card1"  # of hosts that have one
MASTER_PORT = 29555  # free: a host has no other programs


def reason_without_hosts():
    """The reason why hosts are impossible here; None if they are possible."""
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
    """A host; processes are started on it with `wrapper` before their command line."""

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
        """While this is active, this thread's sockets are made on this host."""
        set_network = ctypes.CDLL(None, use_errno=True).setns
        with open("/proc/thread-self/ns/net") as outside, open(f"/proc/{self.holder.pid}/ns/net") as inside:
            assert set_network(inside.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                assert set_network(outside.fileno(), 0) == 0, os.strerror(ctypes.get_errno())

    def own_folder(self):
        """From now on this host has its own copy of the folder."""
        stage = f"{self.folder}/own"
        self.run("sh", "-c", f"mkdir {stage} && mount -t tmpfs own {stage} && "
                             f"find . -mindepth 1 -maxdepth 1 ! -name own -exec cp -a {{}} {stage} \\; && "
                             f"mount --move {stage} {self.folder}")
        os.rmdir(stage)

    def small_disk(self, folder):
        """From now on this host's folder is a disk of 32 MiB, with the same content."""
        self.run("sh", "-c", f"mkdir -p {folder} disk && mount -t tmpfs -o size=32m disk disk && "
                             f"cp -a {folder}/. disk && mount --move disk {folder}")

    def fill_disk(self, folder):
        """Fills the disk completely; returns the file that fills it."""
        path = self.path(f"{folder}/filler")
        with contextlib.suppress(OSError), open(path, "wb") as filler:
            while True:
                filler.write(bytes(4096))
                filler.flush()
        return path

    def path(self, name):
        """The path of a file in this host's folder, as seen from outside."""
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
        """An address of another network on the same switch."""
        address = self.address.replace("10.77.", "10.78.")
        self.add_card(SECOND_CARD, address)
        return address

    def call_by_name(self, name, *addresses):
        """Adds a name to this host's /etc/hosts, which has only names that were added."""
        file = self.path("hosts")
        is_first = not file.exists()
        with file.open("a") as names:
            names.writelines(f"{address} {name}\n" for address in addresses)
        if is_first:
            self.run("mount", "--bind", f"{self.folder}/hosts", "/etc/hosts")

    def answers_nobody(self, address):
        """Data that this host sends there are lost."""
        self.run("ip", "route", "add", "blackhole", f"{address}/32")

    def sends_in_vain_to(self, address):
        """This host has a wrong hardware address for the other one, so it gets no answer, not even an error."""
        self.run("ip", "neighbour", "add", address, "lladdr", "02:00:00:00:00:01", "dev", CARD, "nud", "permanent")

    def block_high_ports(self):
        """Drops packets to ephemeral ports, as many firewalls do."""
        self.run("ip", "rule", "add", "ipproto", "tcp", "dport", "32768-60999", "blackhole")

    def slow_down(self, megabits):
        """Limits the rate at which this host sends."""
        self.run("tc", "qdisc", "add", "dev", CARD, "root", "tbf", "rate", f"{megabits}mbit", "burst", "64kb",
                 "latency", "50ms")

    def slow_down_cable(self, megabits):
        """Limits the rate at which this host sends and receives."""
        self.slow_down(megabits)
        self.switch.run("tc", "qdisc", "add", "dev", f"{CARD}-{self.name}", "root", "tbf", "rate", f"{megabits}mbit",
                        "burst", "64kb", "latency", "50ms")

    def pull_the_cable(self):
        """Cuts the cable: no connection is closed, and peers wait."""
        self.run("ip", "link", "set", CARD, "down")

    def plug_the_cable_in(self):
        self.run("ip", "link", "set", CARD, "up")

    def processes(self):
        """All processes of the host except the one that keeps its namespaces."""
        own, found = os.readlink(f"/proc/{self.holder.pid}/ns/net"), []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{entry}/ns/net") == own and int(entry) != self.holder.pid:
                    found.append(int(entry))
            except OSError:  # it has ended
                pass
        return found

    def lose_power(self):
        """The host stops without closing its connections."""
        self.pull_the_cable()
        while pids := self.processes():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)

    def switch_on(self):
        """Starts the host after lose_power, with its files and without processes."""
        self.plug_the_cable_in()


def introduce(hosts):
    """From now on the hosts know all hosts by name."""
    for host in hosts:
        for other in hosts:
            host.call_by_name(other.name, other.address)


def rank_variables(hosts, rank, per_host=1):
    """The variables of a rank, as set by torchrun, with `per_host` ranks on each host: the first host's come first, and
    rank 0 hosts the store."""
    return {"RANK": rank, "LOCAL_RANK": rank % per_host, "WORLD_SIZE": per_host * len(hosts),
            "MASTER_ADDR": hosts[0].address, "MASTER_PORT": MASTER_PORT}


def make_hosts(stack, folder, count):
    """Hosts a, b, ... at 10.77.0.1, 10.77.0.2, ..., each with a copy of the folder; none of them knows the others'
    names. They end when the ExitStack is closed. Requires that reason_without_hosts() is None."""
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
    """make_hosts() with the test's folder, until the test ends. If hosts are impossible, skips the test with a
    message."""
    if reason := reason_without_hosts():
        print(f"\nSKIPPED LOUDLY: hosts in namespaces: {reason}", file=sys.stderr)
        test.skipTest(reason)
    stack = contextlib.ExitStack()
    test.addCleanup(stack.close)
    return make_hosts(stack, test.folder, count)
