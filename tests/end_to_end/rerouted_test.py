"""Ranks are lost without a spare, and the other replicas run their micro-batches: train --on-loss reroute."""

import json
import os
import shutil
import signal
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from emulated import RehearsalCase
from end_to_end import HANG_SECONDS, processes_naming, rank_of_process
from recovery import ScheduleCase


class ReroutedTest(ScheduleCase):
    """2 x 2 ranks of the tiny model. Oracle: the undisturbed run has equal losses except for the order in which
    gradients are added, and uses every sample of every epoch once."""
    epochs = 4  # few enough steps that no move over a slow link is worth it

    def lose(self, victim, plan, *options):
        launcher = self.start_until(10, plan, "--epochs", self.epochs, "--on-loss", "reroute", *options)
        os.kill(self.ranks_of(launcher)[victim], signal.SIGKILL)
        run = self.assert_ended_well(launcher)
        self.assertEqual(len(run["recoveries"]), 1, launcher.stderr)
        return run, launcher

    def check(self, schedule, victim):
        plan = self.planned(schedule, "--fix", "dp=2", cluster=self.four_devices())
        reference, _ = self.reference(plan, "--epochs", self.epochs)
        with self.subTest(schedule=schedule, victim=victim):
            cluster = self.read("four-ranks.json")
            cluster["intra_node"]["point_to_point"]["bandwidth_bytes_per_second"] = 1000
            self.write("slow.json", cluster)
            run, launcher = self.lose(victim, plan, "--cluster", "slow.json", "--checkpoint-every", 1)
            recovery = run["recoveries"][0]
            self.assertRegex(recovery["choice"], r"^rerouted until step \d+: ")
            self.assertEqual(launcher.stderr.count(recovery["choice"]), 1)
            last = run["phases"][-1]
            self.assertEqual((last["stages"], last["replicas"], recovery["world_size"]), (2, 2, 3))
            self.assert_same_account(run, reference)
            self.assert_losses_equal(run, reference, len(reference["steps"]), 1e-4)
            executed = self.read("run/executed_plan.json")["phases"][-1]["layout"]
            self.assertEqual(executed["vacant"], [{"pipeline_rank": victim // 2, "replica": victim % 2}])
            self.run_tool("compare", plan, "run/summary.json")
            shutil.rmtree(self.folder / "run")

    def test_a_replica_runs_the_micro_batches_of_a_lost_rank(self):
        self.check("1F1B", 3)

    def test_a_loss_that_cannot_be_rerouted_is_planned_again(self):
        plan = "static.json"
        run, _ = self.lose(1, plan, "--checkpoint-every", 20)
        self.assertRegex(run["recoveries"][0]["choice"],
                         "^a new layout, 1 x 1; not rerouted: no replica is left of stage 1$")


class LongReroutedTest(ReroutedTest):
    test_a_replica_runs_the_micro_batches_of_a_lost_rank = None
    test_a_loss_that_cannot_be_rerouted_is_planned_again = None

    def test_every_rank_and_schedule(self):
        for schedule, victims in (("1F1B", (0, 1, 2)), ("GPipe", (0, 3)), ("ZB-H1", (1,)), ("ZBVZeroBubble", (2,))):
            for victim in victims:
                self.check(schedule, victim)


class ReroutedRehearsalTest(RehearsalCase):
    """2 x 4 emulated ranks with virtual clocks. Oracle: the simulator, which uses the same profile but no ranks."""

    # The first and the last rank, of the first and the last stage; and one whose replicas have different neighbours.
    LOSSES = ((4, 0), (4, 7), (2, 0), (2, 7), (2, 1))

    def setUp(self):
        super().setUp()
        self.run_tool("profile", "--like", "vit-b16", "--nproc-per-node", 8, "--global-batch", 64, "--samples", 512,
                      "--cluster", "c8.json", "-o", "p8.json")

    def lose(self, pp, victim):
        """The prediction of `simulate --lose`, and the run that has lost the rank."""
        plan = f"{pp}.json"
        self.run_tool("plan", "--profile", "p8.json", "--cluster", "c8.json", "--global-batch", 64, "--method",
                      "static", "--fix", f"pp={pp}", "--schedule", "1F1B", "--fix", f"dp={8 // pp}", "--fix", "m=8",
                      "--steps", 24, "-o", plan)
        [priced] = json.loads(self.run_tool("simulate", plan, "--lose", victim, "--format", "json").stdout)["phases"]
        out = self.folder / f"run-{pp}-{victim}"
        started = self.start("train", plan, "--device", "emulated", "--emulated-links", "--on-loss", "reroute", "-o",
                             out)
        self.wait_until(lambda: (out / "scalars.jsonl").exists()
                        and (out / "scalars.jsonl").read_text().count("\n") > 3, HANG_SECONDS, lambda: started.stderr)
        os.kill({rank_of_process(pid): pid for pid in processes_naming(out)}[victim], signal.SIGKILL)
        self.assertEqual(started.ended_within(HANG_SECONDS), 0, started.stderr)
        return priced, json.loads((out / "summary.json").read_text())

    def check(self, choice, iteration):
        for pp, victim in self.LOSSES:
            with self.subTest(pp=pp, victim=victim):
                priced, run = self.lose(pp, victim)
                [recovery] = run["recoveries"]
                self.assertRegex(recovery["choice"], choice)
                after = run["steps"][recovery["step"] + 1:]
                self.assertTrue(after)
                for step in after:
                    self.assertLess(abs(step["iteration_ns"] / priced[iteration] - 1), 0.01, step["step"])

    def test_iterations_over_slow_links_are_rerouted_and_the_simulators(self):
        def slow_down(cluster):
            cluster["intra_node"]["point_to_point"]["bandwidth_bytes_per_second"] = 300_000_000
        self.edit("c8.json", slow_down)
        self.check("^rerouted until step 24: ", "rerouted_iteration_ns")

    def test_over_fast_links_a_new_layout_is_taken_and_its_iterations_are_the_simulators(self):
        self.assertEqual(self.read("c8.json")["intra_node"]["point_to_point"]["bandwidth_bytes_per_second"], 12e9)
        self.check("^a new layout, 7 x 1", "replanned_iteration_ns")


if __name__ == "__main__":
    unittest.main()
