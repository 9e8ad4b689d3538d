"""Ranks that others have started, on two hosts, of which some are lost: those that are left go on in memory. Oracle:
the run on one host that nothing has disturbed, to the bit up to the loss, and within 1e-4 after it, since another
layout adds in another order; and our launcher's ranks on one host, which take the same layout when the same ranks are
lost."""

import os
import re
import signal
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS, NOT_FOR_USERS, processes_naming, rank_of_process
from faults import free_port
from hosts import MASTER_PORT, hosts_for
from recovery import RecoveryCase

LIMIT_SECONDS = 20  # from a loss to the step that the others go on with, or to the end
SOME_STEPS = 400
GOES_ON = re.compile(r"^frostpipe: goes on with step \d+ on \d ranks? \(.*?\), from the survivors' memory: no step "
                     r"lost", re.MULTILINE)


class SurvivorsBase(RecoveryCase):
    """Two stages with two replicas, for two hosts with two ranks each: both have all layers."""

    def setUp(self):
        super().setUp()
        device = self.read("cluster.json")["devices"][0]
        self.write("four.json", {**self.read("cluster.json"), "devices": [
            {**device, "node": node} for node in (0, 0, 1, 1)]})

        def change(plan):
            plan.update(world_size=4, memory_limited=False)
            for phase in plan["phases"]:
                phase["layout"].update(data_parallel_size=2, placement=[0, 2, 1, 3])
                phase["predicted"]["peak_memory_bytes"] = []
        self.edit("static.json", change)
        self.of_length("static.json", SOME_STEPS)

    def arguments(self, output="run", *options):
        return self.train_arguments("static.json", output, "--cluster", "four.json", *options)

    def start_rank(self, rank, *options, wrapper=(), **variables):
        return self.start(*self.arguments("run", *options), name=f"rank{rank}", wrapper=wrapper, RANK=rank,
                          LOCAL_RANK=rank % 2, WORLD_SIZE=4, **variables)

    def results(self):
        """The folder of rank 0's host."""
        return self.folder

    def wait_for_steps(self, count):
        """Until those that write the figures have done so many."""
        scalars = self.results() / "run/scalars.jsonl"
        self.wait_until(lambda: (scalars.exists() and scalars.read_text().count('"loss"') >= count)
                        or self.ranks[0].ended_within(0) is not None, HANG_SECONDS, lambda: self.ranks[0].stderr)

    def kill(self, *ranks):
        for rank in ranks:
            os.kill(self.ranks[rank].pid, signal.SIGKILL)

    def assert_survived(self, left, since, losses=1):
        """They go on in time, and end well."""
        self.wait_until(lambda: len(GOES_ON.findall(self.ranks[0].stderr)) == losses, LIMIT_SECONDS,
                        lambda: self.ranks[0].stderr)
        print(f"\n{self.id()}: goes on after {time.monotonic() - since:.1f} s", file=sys.stderr)
        for rank in left:
            self.assertEqual(self.ranks[rank].ended_within(HANG_SECONDS), 0, self.ranks[rank].stderr)
            self.assertNotRegex(self.ranks[rank].stderr, NOT_FOR_USERS)
        self.assert_no_process_within(LIMIT_SECONDS)

    def undisturbed(self):
        return self.train("static.json", "one-host", "--cluster", "four.json", "--nodes", 2, "--nproc-per-node", 2)

    def assert_same_as_undisturbed(self, num_ranks, reference):
        run = self.read(self.results() / "run/summary.json")
        recovery = run["recoveries"][-1]
        self.assertEqual((recovery["source"], recovery["lost_steps"], recovery["world_size"]),
                         ("the survivors' memory", 0, num_ranks))
        self.assert_same_account(run, reference)
        first = run["recoveries"][0]["step"]
        self.assertEqual(self.losses(run)[:first], self.losses(reference)[:first])
        self.assertLessEqual(abs(self.losses(run)[-1] - self.losses(reference)[-1]), 1e-4)
        return run

    def assert_same_layout_as_under_our_launcher(self, run, victims):
        """When it loses the same ranks."""
        launcher = self.start(*self.arguments("launched", "--nodes", 2, "--nproc-per-node", 2), name="launcher")
        scalars = self.folder / "launched/scalars.jsonl"
        self.wait_until(lambda: scalars.exists() and scalars.read_text().count('"loss"') > 20, HANG_SECONDS,
                        lambda: launcher.stderr)
        pids = {rank_of_process(pid): pid for pid in processes_naming(self.folder) if pid != launcher.pid}
        for victim in victims:
            os.kill(pids[victim], signal.SIGKILL)
        self.assertEqual(launcher.ended_within(HANG_SECONDS), 0, launcher.stderr)
        layout = ("stages", "replicas", "num_micro_batches", "layers_per_stage")
        ours = self.read("launched/summary.json")
        self.assertEqual([run["phases"][-1].get(field) for field in layout],
                         [ours["phases"][-1].get(field) for field in layout])


class LoopbackSurvivorsTest(SurvivorsBase):
    """Loopback addresses stand for hosts."""

    def test_those_of_one_host_go_on_when_the_other_is_lost(self):
        port = free_port()
        self.ranks = [self.start_rank(rank, "--interface", f"127.0.0.{2 + rank // 2}", MASTER_ADDR="127.0.0.2",
                                      MASTER_PORT=port) for rank in range(4)]
        self.wait_for_steps(20)
        self.kill(2, 3)
        self.assert_survived([0, 1], time.monotonic())
        host = re.escape(os.uname().nodename)
        self.assertRegex(self.ranks[0].stderr, rf"(?m)^frostpipe: ranks 2, 3 on host {host} have sent no heartbeat for "
                                               r"\d+ s; 2 ranks go on \(restart 1 of 3\)$")
        self.assert_same_as_undisturbed(2, self.undisturbed())


class SurvivorsTest(SurvivorsBase):
    def setUp(self):
        super().setUp()
        self.hosts = hosts_for(self, 2)

    def results(self):
        return self.hosts[0].path("")

    def start_job(self, *options):
        self.ranks = [self.start_rank(rank, *options, wrapper=self.hosts[rank // 2].wrapper,
                                      MASTER_ADDR=self.hosts[0].address, MASTER_PORT=MASTER_PORT)
                      for rank in range(4)]
        self.wait_for_steps(20)

    def test_a_host_is_lost(self):
        self.start_job()
        self.hosts[1].lose_power()
        self.assert_survived([0, 1], time.monotonic())
        run = self.assert_same_as_undisturbed(2, self.undisturbed())
        self.assert_same_layout_as_under_our_launcher(run, [2, 3])

    def test_a_cable_is_pulled(self):
        """Those that are cut off end, with a sentence."""
        self.start_job()
        self.hosts[1].pull_the_cable()
        began = time.monotonic()
        self.assert_survived([0, 1], began)
        for rank in (2, 3):
            self.assertEqual(self.ranks[rank].ended_within(0), 1)
            self.assertRegex(self.ranks[rank].stderr, rf"frostpipe: rank {rank}: rank 0, which hosts the rendezvous "
                                                      "store, has not answered for 10 s")
        self.assert_same_as_undisturbed(2, self.undisturbed())

    def test_a_rank_is_killed_and_then_another(self):
        self.start_job()
        self.kill(3)
        self.wait_until(lambda: GOES_ON.search(self.ranks[0].stderr), LIMIT_SECONDS, lambda: self.ranks[0].stderr)
        self.kill(1)
        self.assert_survived([0, 2], time.monotonic(), losses=2)
        run = self.assert_same_as_undisturbed(2, self.undisturbed())
        self.assertEqual([recovery["world_size"] for recovery in run["recoveries"]], [3, 2])

    def test_rank_0_is_killed(self):
        """It hosts the store."""
        self.start_job()
        self.kill(0)
        for rank in (1, 2, 3):
            self.assertEqual(self.ranks[rank].ended_within(LIMIT_SECONDS), 1)
            said = [line for line in self.ranks[rank].stderr.splitlines() if line.startswith("frostpipe: ")]
            self.assertEqual(len(said), 1, self.ranks[rank].stderr)
            self.assertRegex(said[0], rf"rank {rank}: rank 0, which hosts the rendezvous store, is gone")

    def test_a_host_falls_silent_and_comes_back(self):
        """Too late: the others have gone on without it."""
        self.start_job()
        self.hosts[1].pull_the_cable()
        self.wait_until(lambda: GOES_ON.search(self.ranks[0].stderr), LIMIT_SECONDS, lambda: self.ranks[0].stderr)
        self.hosts[1].plug_the_cable_in()
        for rank in (2, 3):
            self.assertEqual(self.ranks[rank].ended_within(LIMIT_SECONDS), 1, self.ranks[rank].stderr)
        self.assert_survived([0, 1], time.monotonic())


if __name__ == "__main__":
    unittest.main()
