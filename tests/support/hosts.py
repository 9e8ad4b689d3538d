"""Hosts made of namespaces on this machine: each has a network, a name and a folder of its own. Needs root.

A host is a process that sleeps in its namespaces: they are gone when it is, and it ends with the test's process. The
cables lead to a switch in a namespace of its own, so that nothing of this is seen outside, and no address other than
10.77.0.0/16 and 10.78.0.0/16 is used."""

import os
import shutil
import subprocess
import sys
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

    def __init__(self, test, name):
        self.name = name
        self.folder = test.folder
        self.holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--uts", "--mount",
                                        "sleep", "infinity"], stdin=subprocess.DEVNULL)
        test.addCleanup(self.holder.wait)
        test.addCleanup(self.holder.kill)
        command = Path(f"/proc/{self.holder.pid}/cmdline")
        test.wait_until(lambda: command.read_bytes().startswith(b"sleep"), 10, f"host {name}")
        self.run("hostname", name)
        self.run("ip", "link", "set", "lo", "up")

    @property
    def wrapper(self):
        return ["nsenter", "--target", str(self.holder.pid), "--net", "--uts", "--mount", f"--wdns={self.folder}"]

    def run(self, *command):
        done = subprocess.run([*self.wrapper, *map(str, command)], capture_output=True, text=True)
        assert done.returncode == 0, f"host {self.name}: {command}: {done.stderr}"
        return done.stdout

    def own_folder(self):
        """From now on the test's folder is this host's own, with a copy of what is in it."""
        stage = f"{self.folder}/own"
        self.run("sh", "-c", f"mkdir {stage} && mount -t tmpfs own {stage} && "
                             f"find . -mindepth 1 -maxdepth 1 ! -name own -exec cp -a {{}} {stage} \\; && "
                             f"mount --move {stage} {self.folder}")
        os.rmdir(stage)

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
        """From now on this host's /etc/hosts has this name, and no other."""
        file = f"{self.folder}/hosts"
        self.path("hosts").write_text("".join(f"{address} {name}\n" for address in addresses))
        self.run("mount", "--bind", file, "/etc/hosts")

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


def make_hosts(test, count):
    """Hosts a, b, ... at 10.77.0.1, 10.77.0.2, ..., each with a copy of the test's folder; none of them knows the
    others' names. Skips the test, loudly, where that needs more than there is."""
    if reason := reason_without_hosts():
        print(f"\nSKIPPED LOUDLY: hosts in namespaces: {reason}", file=sys.stderr)
        test.skipTest(reason)
    switch = Host(test, "switch")
    switch.run("ip", "link", "add", "switch", "type", "bridge")
    switch.run("ip", "link", "set", "switch", "up")
    hosts = []
    for number, name in enumerate(NAMES[:count], 1):
        host = Host(test, name)
        host.connect(switch, f"10.77.0.{number}")
        host.own_folder()
        hosts.append(host)
    return hosts
