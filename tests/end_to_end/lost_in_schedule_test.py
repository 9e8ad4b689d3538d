"""Ranks are killed or fall silent in the middle of a step, in schedules with several stages per rank, with a backward
in two pieces and with token slices. Oracle: the undisturbed run."""

import os
import shutil
import signal
import statistics
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS
from faults import LONG, FaultTest
from recovery import FEWER_EPOCHS, ScheduleCase

# Moments of a step, as fractions of its time: during forwards, and twice during backwards before the last weight
# gradients.
MOMENTS = (0.2, 0.55, 0.8)


class LostInScheduleTest(ScheduleCase):
    epochs = FEWER_EPOCHS

    def lose_in_step(self, victim, moment, plan, *options):
        """Kills a rank in a step after a quarter of the steps, at that fraction of the step's time."""
        options = ("--epochs", self.epochs, *options)
        reference, _ = self.reference(plan, "--epochs", self.epochs)
        step_seconds = statistics.median(step["iteration_ns"] for step in reference["steps"]) / 1e9
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        launcher = self.start_until(10 * self.epochs // 4, plan, *options)
        rank = self.ranks_of(launcher)[victim]
        scalars = self.folder / "run/scalars.jsonl"
        size, give_up = scalars.stat().st_size, time.monotonic() + HANG_SECONDS
        while scalars.stat().st_size == size and time.monotonic() < give_up:
            time.sleep(0.0002)
        self.assertGreater(scalars.stat().st_size, size, "a step began")
        time.sleep(moment * step_seconds)
        os.kill(rank, signal.SIGKILL)
        run = self.assert_ended_well(launcher)
        self.assertEqual(len(run["recoveries"]), 1, launcher.stderr)
        return run

    def check_spare(self, plan, victims_and_moments, *options):
        """A spare completes the layout again, and the run ends bitwise equal to the undisturbed one."""
        reference, weights = self.reference(plan, "--epochs", self.epochs)
        for victim, moment in victims_and_moments:
            with self.subTest(plan=plan, victim=victim, moment=moment):
                run = self.lose_in_step(victim, moment, plan, "--checkpoint-every", 20, "--spares", 1, *options)
                self.assert_same_run(run, reference, weights)
                self.assertEqual(run["phases"][-1]["schedule"], reference["phases"][-1]["schedule"])

    def test_a_spare_after_a_loss_late_in_a_step(self):
        self.check_spare(self.planned("ZBVZeroBubble"), [(0, 0.55)])


class LongLostInScheduleTest(LostInScheduleTest):
    epochs = 20

    test_a_spare_after_a_loss_late_in_a_step = None

    def test_a_spare_at_every_moment(self):
        for schedule in ("Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble", "ZB-H1"):
            self.check_spare(self.planned(schedule), [(victim, moment) for victim in (0, 1) for moment in MOMENTS])

    def test_a_spare_with_frozen_layers(self):
        """Frozen stages have no weight gradients, and nothing is sent back to them."""
        for schedule in ("Interleaved1F1B", "ZBVZeroBubble"):
            plan = self.planned(schedule)
            value = self.read(plan)
            value["phases"].append({**value["phases"][0], "from_step": 30, "first_trainable_layer": 5})
            self.write(f"frozen-{plan}", value)
            self.check_spare(f"frozen-{plan}", [(0, 0.55), (1, 0.55)])

    def test_without_a_spare_one_rank_goes_on(self):
        for schedule in ("Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble"):
            plan = self.planned(schedule)
            reference, weights = self.reference(plan, "--epochs", self.epochs)
            with self.subTest(schedule):
                run = self.lose_in_step(1, 0.55, plan, "--checkpoint-every", 20)
                self.assertEqual(run["phases"][-1]["stages"], 1)
                self.assert_same_run(run, reference, weights, bits=False)

    def test_replicas_of_both_stages_of_a_rank(self):
        """Four ranks: the lost layers come from a replica or a checkpoint, and three ranks go on if there is no
        spare."""
        plan = self.planned("ZBVZeroBubble", "--fix", "dp=2", cluster=self.four_devices())
        reference, weights = self.reference(plan, "--epochs", self.epochs)
        self.check_spare(plan, [(0, 0.55), (3, 0.55)])
        run = self.lose_in_step(2, 0.55, plan, "--checkpoint-every", 20)
        self.assertEqual(run["recoveries"][0]["world_size"], 3)
        self.assert_same_run(run, reference, weights, bits=False)

    def test_token_slices(self):
        self.use_gpt2()
        for schedule in ("TeraPipe", "Seq1F1B"):
            self.check_spare(self.planned_slices(schedule), [(0, 0.2), (0, 0.8), (1, 0.55)])


class StuckInScheduleTest(ScheduleCase, FaultTest):
    """SIGSTOP: a rank exists but is silent."""

    epochs = LONG[1]

    def test_stop_ranks(self):
        for schedule in ("Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble"):
            for victim in (0, 1):
                with self.subTest(schedule=schedule, victim=victim):
                    self.stop_rank(victim, self.planned(schedule))

    def test_stop_a_rank_with_token_slices(self):
        self.use_gpt2()
        self.stop_rank(1, self.planned_slices("TeraPipe"))


if __name__ == "__main__":
    unittest.main()
