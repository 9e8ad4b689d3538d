"""Ranks with one GPU each are lost during a run, on the fake GPU (tests/executor/fake_gpu): as with NCCL, a GPU that
waits for a lost rank does so until its own rank ends the wait, and then has undefined data. Oracle: the undisturbed
run."""

import os
import shutil
import signal
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from recovery import FEWER_EPOCHS, RecoveryCase


class LostGpuTest(RecoveryCase):
    epochs = FEWER_EPOCHS
    OPTIONS = ("--epochs", FEWER_EPOCHS, "--device", "cuda")

    def lose(self, victim, plan, *options):
        launcher = self.start_until(10 * self.epochs // 4, plan, *self.OPTIONS, *options)
        os.kill(self.ranks_of(launcher)[victim], signal.SIGKILL)
        run = self.assert_ended_well(launcher)
        self.assertEqual([recovery["world_size"] for recovery in run["recoveries"]], [2], launcher.stderr)
        self.assertNotIn("did not stop", launcher.stderr)
        self.assertNotIn("share a GPU", launcher.stderr)
        return run

    def test_the_other_goes_on_with_a_spare(self):
        for plan, victim in (("static.json", 0), ("data-parallel.json", 1)):
            with self.subTest(plan=plan):
                reference, weights = self.reference(plan, *self.OPTIONS)
                run = self.lose(victim, plan, "--checkpoint-every", 20, "--spares", 1)
                self.assert_same_run(run, reference, weights)
                shutil.rmtree(self.folder / "run")

    @mock.patch.dict(os.environ, {"FROSTPIPE_FAKE_GPUS": "2"})
    def test_a_spare_without_a_gpu_of_its_own_takes_the_lost_ranks(self):
        """Two GPUs and two ranks: what the ranks send each other does not go through host memory after the loss."""
        reference, weights = self.reference("data-parallel.json", *self.OPTIONS)
        run = self.lose(1, "data-parallel.json", "--checkpoint-every", 20, "--spares", 1)
        self.assert_same_run(run, reference, weights)


if __name__ == "__main__":
    unittest.main()
