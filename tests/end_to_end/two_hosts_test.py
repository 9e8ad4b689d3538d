"""Ranks on two hosts that share nothing but a cable. Oracle: the same plan on one host."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS, processes_naming
from faults import LIMIT_SECONDS, LONG, FaultTest
from hosts import CARD, MASTER_PORT, SECOND_CARD, make_hosts
from listening_sockets import listening_sockets

PYTHON_WITH_TORCHRUN = Path(__file__).resolve().parent.parent.parent / ".deps/peers/bin/python"
SOME_STEPS = 40


class TwoHostsBase(FaultTest):
    def start_on_hosts(self, plan, *options):
        """A rank on each host, as torchrun starts them; the first hosts the store."""
        arguments = self.train_arguments(plan, "run", *options)  # may change the plan, of which the hosts get copies
        self.hosts = make_hosts(self, 2)
        return [self.start_rank(rank, *arguments) for rank in range(len(self.hosts))]

    def start_rank(self, rank, *arguments, **variables):
        variables = {"RANK": rank, "LOCAL_RANK": 0, "WORLD_SIZE": 2, "MASTER_ADDR": self.hosts[0].address,
                     "MASTER_PORT": MASTER_PORT, **variables}
        return self.start(*arguments, name=f"rank{rank}", wrapper=self.hosts[rank].wrapper, **variables)


class TwoHostsTest(TwoHostsBase):
    def summary(self):
        """Rank 0's, on its host."""
        self.assertFalse((self.folder / "run").exists(), "a host's folder is seen outside")
        self.assertFalse(self.hosts[1].path("run/summary.json").exists(), "the hosts share a folder")
        return self.read(self.hosts[0].path("run/summary.json"))

    def assert_same_losses_as_on_one_host(self, plan):
        summary = self.summary()
        on_one_host = self.train(plan, "one-host", "--nodes", 2, "--nproc-per-node", 1)  # the same shards of the data
        self.assertEqual(self.losses(summary), self.losses(on_one_host))
        self.assertEqual(len(summary["steps"]), SOME_STEPS)

    def train_on_hosts(self, plan):
        self.of_length(plan, SOME_STEPS)
        ranks = self.start_on_hosts(plan)
        for rank in ranks:
            self.assertEqual(rank.ended_within(HANG_SECONDS), 0, rank.stderr)
            self.assert_clean(rank)
        self.assertIn("accuracy", ranks[0].stdout)
        self.assertEqual(ranks[1].stdout, "")
        self.assert_same_losses_as_on_one_host(plan)

    def test_a_pipeline(self):
        self.train_on_hosts("static.json")

    def test_replicas(self):
        self.train_on_hosts("data-parallel.json")

    def test_a_name_with_addresses_that_lead_nowhere(self):
        self.of_length("static.json", SOME_STEPS)
        arguments = self.train_arguments("static.json", "run")
        self.hosts = make_hosts(self, 2)
        self.hosts[0].call_by_name("a", "127.0.1.1", self.hosts[0].address)
        self.hosts[1].call_by_name("a", "10.77.0.3", self.hosts[0].address)
        self.hosts[1].sends_in_vain_to("10.77.0.3")
        for rank in [self.start_rank(number, *arguments, MASTER_ADDR="a") for number in (0, 1)]:
            self.assertEqual(rank.ended_within(HANG_SECONDS), 0, rank.stderr)
            self.assert_clean(rank)
        self.assert_same_losses_as_on_one_host("static.json")

    def test_torchruns_agents(self):
        if not PYTHON_WITH_TORCHRUN.exists():
            print(f"\nSKIPPED LOUDLY: there is no {PYTHON_WITH_TORCHRUN} (scripts/setup-peers)", file=sys.stderr)
            self.skipTest("no torchrun")
        self.of_length("static.json", SOME_STEPS)
        self.hosts = make_hosts(self, 2)
        agents = []
        for number, host in enumerate(self.hosts):
            agent = [PYTHON_WITH_TORCHRUN, "-m", "torch.distributed.run", "--nnodes", 2, "--node-rank", number,
                     "--nproc-per-node", 1, "--master-addr", self.hosts[0].address, "--master-port", MASTER_PORT,
                     "--no-python"]
            agents.append(self.start(*self.train_arguments("static.json", "run"), name=f"agent{number}",
                                     wrapper=[*host.wrapper, *map(str, agent)]))
        for agent in agents:
            self.assertEqual(agent.ended_within(HANG_SECONDS), 0, agent.stderr)
        self.assert_same_losses_as_on_one_host("static.json")

    def test_a_host_that_falls_silent_is_named(self):
        ranks = self.start_on_hosts("static.json", *LONG)
        self.wait_until(lambda: self.is_training(ranks[0]) or ranks[0].ended_within(0) is not None, HANG_SECONDS,
                        lambda: ranks[0].stderr)
        self.hosts[1].pull_the_cable()
        for rank, said in zip(ranks, (r"rank 0\b.*rank 1\b", r"rank 1\b.*rank 0\b")):
            self.assertEqual(rank.ended_within(LIMIT_SECONDS), 1, rank.stderr)
            self.assert_said(rank, said)

    def test_ports_are_open_at_the_address_between_the_hosts_alone(self):
        ranks = self.start_on_hosts("static.json", *LONG)
        self.wait_until(lambda: self.is_training(ranks[0]) or ranks[0].ended_within(0) is not None, HANG_SECONDS,
                        lambda: ranks[0].stderr)
        doors = listening_sockets(processes_naming(self.folder))
        self.assertIn((self.hosts[0].address, MASTER_PORT), {door.address for door in doors})
        self.assertEqual({door.address[0] for door in doors}, {host.address for host in self.hosts})

    def test_messages_go_by_a_second_card_and_the_ranks_meet_at_the_first(self):
        arguments = self.train_arguments("static.json", "run", *LONG, "--interface", SECOND_CARD)
        self.hosts = make_hosts(self, 2)
        second_cards = {host.add_second_card() for host in self.hosts}
        ranks = [self.start_rank(rank, *arguments) for rank in (0, 1)]
        self.wait_until(lambda: self.is_training(ranks[0]) or ranks[0].ended_within(0) is not None, HANG_SECONDS,
                        lambda: ranks[0].stderr)
        doors = {door.address for door in listening_sockets(processes_naming(self.folder))}
        self.assertIn((self.hosts[0].address, MASTER_PORT), doors)
        self.assertEqual({address for address, port in doors if port != MASTER_PORT}, second_cards)


class UnreachableTest(TwoHostsBase):
    """Rank 1 cannot reach rank 0: a sentence in time says which port, and of whom."""

    def start_alone(self, *options, **variables):
        arguments = self.train_arguments("static.json", "run", *options)
        self.hosts = make_hosts(self, 2)
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

    def test_an_address_that_nobody_has(self):
        self.ended_with(self.start_alone(MASTER_ADDR="10.77.0.9"), "rank 1 on host b cannot reach 10.77.0.9:",
                        "Is the host up")

    def test_a_host_whose_answers_are_lost(self):
        arguments = self.train_arguments("static.json", "run")
        self.hosts = make_hosts(self, 2)
        self.hosts[0].answers_nobody(self.hosts[1].address)
        self.start_rank(0, *arguments)
        self.ended_with(self.start_rank(1, *arguments), f"cannot reach {self.hosts[0].address}:{MASTER_PORT}",
                        "no answer for 10 s. Does a firewall drop it?")

    def test_ports_between_ranks_that_are_blocked(self):
        """The store's is not."""
        arguments = self.train_arguments("static.json", "run")
        self.hosts = make_hosts(self, 2)
        self.hosts[1].block_high_ports()
        for rank in [self.start_rank(number, *arguments) for number in (0, 1)]:
            self.ended_with(rank, "rank 0 on host a cannot reach 10.77.0.2:",
                            "one of rank 1's ports on host b that the system chooses", "no answer for 10 s")

    def test_a_name_that_nobody_knows(self):
        self.ended_with(self.start_alone(MASTER_ADDR="a"), "rank 1 on host b: MASTER_ADDR: a is not known here (")

    def test_a_name_that_is_loopback_on_its_own_host(self):
        arguments = self.train_arguments("static.json", "run")
        self.hosts = make_hosts(self, 2)
        self.hosts[0].call_by_name("a", "127.0.1.1")
        self.ended_with(self.start_rank(0, *arguments, MASTER_ADDR="a"),
                        "rank 0 on host a: MASTER_ADDR: a is 127.0.1.1 here (see /etc/hosts)")

    def test_an_interface_that_is_not_there(self):
        self.ended_with(self.start_alone("--interface", "ib0"),
                        "--interface (or GLOO_SOCKET_IFNAME): must be an interface of host b",
                        f"{CARD} ({self.hosts[1].address})", "is ib0")


if __name__ == "__main__":
    unittest.main()
