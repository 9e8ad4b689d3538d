"""Ranks on two hosts that share nothing but a cable. Oracle: the same plan on one host."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS
from faults import LIMIT_SECONDS, LONG, FaultTest
from hosts import CARD, MASTER_PORT, make_hosts

PYTHON_WITH_TORCHRUN = Path(__file__).resolve().parent.parent.parent / ".deps/peers/bin/python"
SOME_STEPS = 40


class TwoHostsTest(FaultTest):
    def variables_of(self, host):
        return {"GLOO_SOCKET_IFNAME": CARD}

    def start_on_hosts(self, plan, *options):
        """A rank on each host, as torchrun starts them; the first hosts the store."""
        arguments = self.train_arguments(plan, "run", *options)  # may change the plan, of which the hosts get copies
        self.hosts = make_hosts(self, 2)
        return [self.start(*arguments, name=f"rank{rank}", wrapper=host.wrapper,
                           RANK=rank, LOCAL_RANK=0, WORLD_SIZE=2, MASTER_ADDR=self.hosts[0].address,
                           MASTER_PORT=MASTER_PORT, **self.variables_of(host))
                for rank, host in enumerate(self.hosts)]

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
                                     wrapper=[*host.wrapper, *map(str, agent)], **self.variables_of(host)))
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


if __name__ == "__main__":
    unittest.main()
