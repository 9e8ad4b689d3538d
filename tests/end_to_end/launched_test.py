"""What `launch` prints starts the ranks on two hosts. Oracle: the same plan on one host."""

import os
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import FROSTPIPE, HANG_SECONDS
from faults import FaultTest, free_port
from hosts import make_hosts
from two_hosts_test import PYTHON_WITH_TORCHRUN

SOME_STEPS = 20


class LaunchedBase(FaultTest):
    def launched(self, launcher, *hosts):
        """What it prints for the pipeline of two ranks on these hosts."""
        self.of_length("static.json", SOME_STEPS)
        self.write("two.json", self.read("cluster.json"))
        self.edit("two.json", lambda cluster: cluster["devices"][1].update(node=1))
        command, plan, *options = self.train_arguments("static.json", "run")
        return self.run_tool("launch", launcher, "--hosts", ",".join(hosts), plan, "--", *options, "--cluster",
                             "two.json").stdout

    def start_line(self, line, name, wrapper=(), **variables):
        """As a user in a shell of that host, where the tool is on the PATH."""
        path = f"{os.path.dirname(FROSTPIPE)}:{PYTHON_WITH_TORCHRUN.parent}:{os.environ['PATH']}"
        return self.start(name=name, wrapper=[*wrapper, "bash", "-c", line], PATH=path, **variables)

    def assert_trained(self, started, read):
        """All have ended well, and rank 0 has written what it would have written on one host."""
        for one in started:
            self.assertEqual(one.ended_within(HANG_SECONDS), 0, one.stderr)
        on_one_host = self.train("static.json", "one-host", "--nodes", 2, "--nproc-per-node", 1)
        self.assertEqual(self.losses(self.read(read)), self.losses(on_one_host))


class LaunchedByHandTest(LaunchedBase):
    def test_on_loopback_addresses(self):
        """Which stand for hosts."""
        hosts = ("127.0.0.2", "127.0.0.3")
        lines = self.launched("--by-hand", *hosts).replace("29500", str(free_port())).splitlines()[1::2]
        ranks = [self.start_line(line, f"host{host}", GLOO_SOCKET_IFNAME=host) for host, line in zip(hosts, lines)]
        self.assert_trained(ranks, "run/summary.json")


class LaunchedOnHostsTest(LaunchedBase):
    ADDRESSES = ("10.77.0.1", "10.77.0.2")

    def start_on_each(self, launcher):
        lines = self.launched(launcher, *self.ADDRESSES).splitlines()[1::2]
        self.hosts = make_hosts(self, 2)
        started = [self.start_line(line, f"host-{host.name}", host.wrapper) for host, line in zip(self.hosts, lines)]
        self.assert_trained(started, self.hosts[0].path("run/summary.json"))

    def test_by_hand(self):
        self.start_on_each("--by-hand")

    def test_torchrun(self):
        if not PYTHON_WITH_TORCHRUN.exists():
            print(f"\nSKIPPED LOUDLY: there is no {PYTHON_WITH_TORCHRUN} (scripts/setup-peers)", file=sys.stderr)
            self.skipTest("no torchrun")
        self.start_on_each("--torchrun")

    def test_mpirun(self):
        if not shutil.which("mpirun"):
            print("\nSKIPPED LOUDLY: there is no mpirun (apt-get install openmpi-bin)", file=sys.stderr)
            self.skipTest("no mpirun")
        line = self.launched("--mpirun", *self.ADDRESSES)
        self.hosts = make_hosts(self, 2)
        for host in self.hosts:  # in place of ssh HOST COMMAND
            agent = host.path("enter")
            agent.write_text("#!/bin/sh\ncase $1 in\n" + "".join(
                f"{other.address}) shift; exec {' '.join(other.wrapper)} sh -c \"$*\";;\n" for other in self.hosts)
                + "esac\n")
            agent.chmod(0o755)
        job = self.start_line(line, "mpirun", self.hosts[0].wrapper, OMPI_MCA_plm_rsh_agent=self.folder / "enter",
                              OMPI_ALLOW_RUN_AS_ROOT=1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
        self.assert_trained([job], self.hosts[0].path("run/summary.json"))


if __name__ == "__main__":
    unittest.main()
