"""Ranks under another launcher on two hosts, of which some are lost: the others go on from memory. Oracles: the
undisturbed run on one host, bitwise up to the loss, and within 1e-4 after it, since another layout adds in another
order; and our launcher's ranks on one host, which take the same layout when the same ranks are lost."""

import os
import re
import shutil
import signal
import sys
import time
import types
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS, NOT_FOR_USERS, has_done, processes_naming, rank_of_process
from faults import free_port
from hosts import hosts_for, rank_variables
from layouts import on_nodes, two_by_two
from recovery import FROM_MEMORY, RecoveryCase

LIMIT_SECONDS = 20  # from a loss to the step with which the others go on, or to the end
SOME_STEPS = 400


class SurvivorsBase(RecoveryCase):
    """Two stages with two replicas, for two hosts with two ranks each; both hosts have all layers."""

    def setUp(self):
        super().setUp()
        self.write("four.json", on_nodes(self.read("cluster.json"), (0, 0, 1, 1)))
        self.edit("static.json", lambda plan: plan.update(
            world_size=4, memory_limited=False, phases=[two_by_two(phase) for phase in plan["phases"]]))
        self.of_length("static.json", SOME_STEPS)

    def part_stages(self):
        """Each host has a stage, whose layers no other host has."""
        def change(plan):
            for phase in plan["phases"]:
                phase["layout"]["placement"] = []
        self.edit("static.json", change)

    def arguments(self, output="run", *options):
        return self.train_arguments("static.json", output, "--cluster", "four.json", *options)

    def start_rank(self, rank, hosts, *options, wrapper=(), **variables):
        return self.start(*self.arguments("run", *options), name=f"rank{rank}", wrapper=wrapper,
                          **{**rank_variables(hosts, rank, per_host=2), **variables})

    def folders(self):
        """The processes of each host, rank 0's first."""
        return [self.folder]

    def results(self):
        return self.folders()[0]

    def wait_for_steps(self, count):
        """Waits until the ranks that write the figures have done this number of steps."""
        def is_there():
            return any(has_done(folder / "run/scalars.jsonl", count) for folder in self.folders())
        self.wait_until(lambda: is_there() or self.ranks[0].ended_within(0) is not None, HANG_SECONDS,
                        lambda: self.ranks[0].stderr)

    def kill(self, *ranks):
        for rank in ranks:
            os.kill(self.ranks[rank].pid, signal.SIGKILL)

    def assert_goes_on(self, since, said=FROM_MEMORY, losses=1):
        self.wait_until(lambda: len(said.findall(self.ranks[0].stderr)) == losses, LIMIT_SECONDS,
                        lambda: self.ranks[0].stderr)
        print(f"\n{self.id()}: goes on after {time.monotonic() - since:.1f} s", file=sys.stderr)

    def assert_ended_well(self, left):
        for rank in left:
            self.assertEqual(self.ranks[rank].ended_within(HANG_SECONDS), 0, self.ranks[rank].stderr)
            self.assertNotRegex(self.ranks[rank].stderr, NOT_FOR_USERS)
        self.assert_no_process_within(LIMIT_SECONDS)

    def assert_survived(self, left, since, losses=1):
        """The others go on in time, and finish."""
        self.assert_goes_on(since, losses=losses)
        self.assert_ended_well(left)

    def undisturbed(self):
        return self.train("static.json", "one-host", "--cluster", "four.json", "--nodes", 2)

    def assert_same_as_undisturbed(self, num_ranks, reference, from_memory=True):
        run = self.read(self.results() / "run/summary.json")
        recovery = run["recoveries"][-1]
        self.assertEqual(recovery["world_size"], num_ranks)
        if from_memory:
            self.assertEqual((recovery["source"], recovery["lost_steps"]), ("the survivors' memory", 0))
            before = [phase for phase in run["phases"] if phase["from_step"] < recovery["step"]][-1]
            known = [peak for peak in before["measured_peak_memory_bytes"] if peak > 0]
            self.assertGreaterEqual(len(known), num_ranks, "each survivor knows its own peak")
        self.assert_same_account(run, reference)
        first = run["recoveries"][0]["step"]
        self.assertEqual(self.losses(run)[:first], self.losses(reference)[:first])
        self.assertLessEqual(abs(self.losses(run)[-1] - self.losses(reference)[-1]), 1e-4)
        return run

    def assert_same_layout_as_under_our_launcher(self, run, victims):
        """Our launcher's run after the loss of the same ranks."""
        launcher = self.start(*self.arguments("launched", "--nodes", 2), name="launcher")
        scalars = self.folder / "launched/scalars.jsonl"
        self.wait_until(lambda: has_done(scalars, 20), HANG_SECONDS, lambda: launcher.stderr)
        pids = {rank_of_process(pid): pid for pid in processes_naming(self.folder) if pid != launcher.pid}
        for victim in victims:
            os.kill(pids[victim], signal.SIGKILL)
        self.assertEqual(launcher.ended_within(HANG_SECONDS), 0, launcher.stderr)
        layout = ("stages", "replicas", "num_micro_batches", "partition")
        ours = self.read("launched/summary.json")
        self.assertEqual([run["phases"][-1][field] for field in layout],
                         [ours["phases"][-1][field] for field in layout])


class LoopbackSurvivorsTest(SurvivorsBase):
    """Loopback addresses emulate hosts, which share their files."""

    def start_job(self, *options):
        port = free_port()
        hosts = [types.SimpleNamespace(address=f"127.0.0.{number}") for number in (2, 3)]
        self.ranks = [self.start_rank(rank, hosts, "--interface", hosts[rank // 2].address, *options, MASTER_PORT=port)
                      for rank in range(4)]

    def test_those_of_one_host_go_on_when_the_other_is_lost(self):
        self.start_job()
        self.wait_for_steps(20)
        began = time.monotonic()
        self.kill(2, 3)
        self.assert_survived([0, 1], began)
        host = re.escape(os.uname().nodename)
        self.assertRegex(self.ranks[0].stderr, rf"(?m)^frostpipe: ranks 2, 3 on host {host} have sent no heartbeat for "
                                               r"\d+ s; 2 ranks go on \(restart 1 of 3\)$")
        self.assert_same_as_undisturbed(2, self.undisturbed())

    def test_layers_of_the_lost_host_alone_come_from_the_checkpoint_that_all_see(self):
        self.part_stages()
        self.start_job("--checkpoint-every", 20)
        self.wait_until(lambda: self.checkpoints() or self.ranks[0].ended_within(0) is not None, HANG_SECONDS,
                        lambda: self.ranks[0].stderr)
        began = time.monotonic()
        self.kill(2, 3)
        self.assert_goes_on(began, re.compile(r"goes on with step \d+ on 2 ranks \(.*?\), from checkpoint step-\d+: "))
        self.assert_ended_well([0, 1])
        self.assert_same_as_undisturbed(2, self.undisturbed(), from_memory=False)

    def checkpoints(self):
        return list(self.folder.glob("run/checkpoints/step-????????/checkpoint.json"))


class SurvivorsTest(SurvivorsBase):
    def setUp(self):
        super().setUp()
        self.hosts = hosts_for(self, 2)

    def folders(self):
        return [host.path("") for host in self.hosts]

    def start_job(self, *options):
        for host in self.hosts:  # the plan may have changed since they got it
            shutil.copy(self.folder / "static.json", host.path("static.json"))
        self.ranks = [self.start_rank(rank, self.hosts, *options, wrapper=self.hosts[rank // 2].wrapper)
                      for rank in range(4)]
        self.wait_for_steps(20)

    def test_a_host_is_lost(self):
        self.start_job()
        began = time.monotonic()
        self.hosts[1].lose_power()
        self.assert_survived([0, 1], began)
        run = self.assert_same_as_undisturbed(2, self.undisturbed())
        self.assert_same_layout_as_under_our_launcher(run, [2, 3])

    def test_a_cable_is_pulled(self):
        """The ranks that are cut off end with a message."""
        self.start_job()
        began = time.monotonic()
        self.hosts[1].pull_the_cable()
        self.assert_survived([0, 1], began)
        for rank in (2, 3):
            self.assertEqual(self.ranks[rank].ended_within(0), 1)
            self.assertRegex(self.ranks[rank].stderr, rf"frostpipe: rank {rank}: rank 0, which hosts the rendezvous "
                                                      "store, has not answered for 10 s")
        self.assert_same_as_undisturbed(2, self.undisturbed())

    def test_a_rank_is_killed_and_then_another(self):
        """If the first loss has left a layout without replicas, no other rank has the layers of the second lost
        rank."""
        self.start_job()
        began = time.monotonic()
        self.kill(3)
        self.assert_goes_on(began)
        replicas = int(re.search(r"on 3 ranks \(\d x (\d)\)", self.ranks[0].stderr)[1])
        began = time.monotonic()
        self.kill(1)
        self.assert_goes_on(began, re.compile(r"goes on with step \d+ on \d ranks"), losses=2)
        self.assert_ended_well([0, 2])
        run = self.assert_same_as_undisturbed(2, self.undisturbed(), from_memory=replicas > 1)
        self.assertEqual([recovery["world_size"] for recovery in run["recoveries"]], [3, 2])
        if replicas == 1:
            self.assertEqual(run["recoveries"][1]["source"], "the beginning")

    def test_rank_0_is_killed(self):
        """Rank 0 hosts the store."""
        self.start_job()
        self.kill(0)
        for rank in (1, 2, 3):
            self.assertEqual(self.ranks[rank].ended_within(LIMIT_SECONDS), 1)
            said = [line for line in self.ranks[rank].stderr.splitlines() if line.startswith("frostpipe: ")]
            self.assertEqual(len(said), 1, self.ranks[rank].stderr)
            self.assertRegex(said[0], rf"rank {rank}: rank 0, which hosts the rendezvous store, is gone")

    def test_a_rank_falls_silent_and_comes_back(self):
        """The rank comes too late: the others have gone on without it."""
        self.start_job()
        began = time.monotonic()
        os.kill(self.ranks[3].pid, signal.SIGSTOP)
        self.assert_goes_on(began)
        os.kill(self.ranks[3].pid, signal.SIGCONT)
        self.assertEqual(self.ranks[3].ended_within(LIMIT_SECONDS), 1, self.ranks[3].stderr)
        self.assertRegex(self.ranks[3].stderr, r"(?m)^frostpipe: rank 3: the others go on without this rank: rank 3 on "
                                               r"host b has sent no heartbeat for \d+ s$")
        self.assert_ended_well([0, 1, 2])
        self.assert_same_as_undisturbed(3, self.undisturbed())

    def test_layers_that_no_host_has_any_more_end_all(self):
        """Only the lost host had the layers and their checkpoints."""
        self.part_stages()
        self.start_job("--checkpoint-every", 20)
        self.wait_for_steps(50)
        self.hosts[1].lose_power()
        for rank in (0, 1):
            self.assertEqual(self.ranks[rank].ended_within(LIMIT_SECONDS), 1, self.ranks[rank].stderr)
            self.assertRegex(self.ranks[rank].stderr, r"frostpipe: checkpoint of step \d+: no host has layer-\d+.* "
                                                      "whole, which host b wrote")


if __name__ == "__main__":
    unittest.main()
