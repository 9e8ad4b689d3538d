"""If ranks' hosts cannot reach each other, a message in time says why. Oracle: the ports that the test has closed."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from faults import LIMIT_SECONDS
from hosts import CARD, MASTER_PORT, hosts_for
from two_hosts import TwoHostsBase


class UnreachableTest(TwoHostsBase):
    """Rank 1 cannot reach rank 0: a message in time names the port and the host."""

    def start_alone(self, *options, **variables):
        arguments = self.train_arguments("static.json", "run", *options)
        self.hosts = hosts_for(self, 2)
        return self.start_rank(1, *arguments, **variables)

    def ended_with(self, rank, *says):
        self.assertEqual(rank.ended_within(LIMIT_SECONDS), 1, rank.stderr)
        self.assert_clean(rank)
        for text in says:
            self.assertIn(text, rank.stderr)

    def test_a_port_that_is_refused(self):
        rank = self.start_alone()
        said = (f"rank 1 on host b cannot reach {self.hosts[0].address}:{MASTER_PORT}, where rank 0 listens: "
                "Connection refused for 10 s")
        self.wait_until(lambda: said in rank.stderr, LIMIT_SECONDS, lambda: rank.stderr)
        self.assert_clean(rank)
        self.assertIsNone(rank.ended_within(0), "it waits for rank 0")

    def test_an_address_that_no_host_has(self):
        self.ended_with(self.start_alone(MASTER_ADDR="10.77.0.9"), "rank 1 on host b cannot reach 10.77.0.9:",
                        "Is the host up")

    def test_a_host_whose_answers_are_lost(self):
        arguments = self.train_arguments("static.json", "run")
        self.hosts = hosts_for(self, 2)
        self.hosts[0].answers_nobody(self.hosts[1].address)
        self.start_rank(0, *arguments)
        self.ended_with(self.start_rank(1, *arguments), f"cannot reach {self.hosts[0].address}:{MASTER_PORT}",
                        "no answer for 10 s. Does a firewall drop it?")

    def test_ports_between_ranks_that_are_blocked(self):
        """The store's port is open, but others are closed."""
        arguments = self.train_arguments("static.json", "run")
        self.hosts = hosts_for(self, 2)
        self.hosts[1].block_high_ports()
        for rank in self.start_every_rank(*arguments):
            self.ended_with(rank, "rank 0 on host a cannot reach 10.77.0.2:",
                            "a port that the system chose for rank 1 on host b", "no answer for 10 s")

    def test_an_unknown_name(self):
        self.ended_with(self.start_alone(MASTER_ADDR="a"), "rank 1 on host b: MASTER_ADDR: a is not known here (")

    def test_a_name_that_is_loopback_on_its_own_host(self):
        arguments = self.train_arguments("static.json", "run")
        self.hosts = hosts_for(self, 2)
        self.hosts[0].call_by_name("a", "127.0.1.1")
        self.ended_with(self.start_rank(0, *arguments, MASTER_ADDR="a"),
                        "rank 0 on host a: MASTER_ADDR: a resolves to 127.0.1.1 here (see /etc/hosts)")

    def test_an_interface_that_is_not_there(self):
        self.ended_with(self.start_alone("--interface", "ib0"),
                        "--interface (or GLOO_SOCKET_IFNAME): must be an interface of host b",
                        f"{CARD} ({self.hosts[1].address})", "is ib0")


if __name__ == "__main__":
    unittest.main()
