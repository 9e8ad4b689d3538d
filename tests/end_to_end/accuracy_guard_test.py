"""The guard of the accuracy (`--accuracy-guard`): a freeze that costs too much is taken back."""

import random
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from recovery import RecoveryCase


class GuardTest(RecoveryCase):
    def test_a_freeze_that_costs_accuracy_is_taken_back(self):
        """Labels that mean nothing: what the test accuracy does is chance, and with a tolerance of 0 one freeze or
        another is followed by a fall. The steps done again are, to the bit, those of a run that never froze."""
        header, *rows = (self.folder / "data.tsv").read_text().splitlines()
        labels = [row.split("\t")[1] for row in rows]
        random.Random(1).shuffle(labels)
        self.write("noise.tsv",
                   "\n".join([header, *(f"{row.split(chr(9))[0]}\t{label}" for row, label in zip(rows, labels))])
                   + "\n")
        options = ("train", self.of_length("static.json", 200), "--data", "noise.tsv")
        for rate, warm_up in ((0.001, 0.1), (0.001, 0.3), (0.005, 0.5), (0.003, 0.3), (0.01, 0.1)):
            for folder in ("run", "never"):
                shutil.rmtree(self.folder / folder, ignore_errors=True)
            freezing = ("--freeze", "fixed:2", "--freeze-warm-up", warm_up, "--freeze-interval", 0.15,
                        "--accuracy-guard", 0)
            done = self.run_tool(*options, "--learning-rate", rate, "-o", self.folder / "run", *freezing)
            run = self.read("run/summary.json")
            self.assertEqual([step["step"] for step in run["steps"]], list(range(200)))
            taken_back = [one for one in run.get("recoveries", []) if "before the freeze" in one["cause"]]
            if taken_back:
                break
        self.assertTrue(taken_back, done.stderr)
        self.assertIn("the freeze is taken back, nothing freezes before step", done.stderr)
        self.run_tool(*options, "--learning-rate", rate, "-o", self.folder / "never")
        never = self.read("never/summary.json")
        frozen_from = next((phase["from_step"] for phase in run["phases"] if phase["frozen_blocks"] > 0), 200)
        self.assertGreaterEqual(frozen_from, taken_back[0]["step"] + taken_back[0]["lost_steps"])
        self.assertEqual([step["loss"] for step in run["steps"][:frozen_from]],
                         [step["loss"] for step in never["steps"][:frozen_from]])

    def test_a_freeze_exactly_where_a_run_goes_on_is_watched(self):
        """From a checkpoint that ends before the step at which the plan freezes. No accuracy falls by 100 %."""
        self.train("static.json", "run", "--checkpoint-steps", 30)
        half = self.read("static.json")
        half["phases"].append({**half["phases"][0], "from_step": 30, "first_trainable_layer": 4})
        self.write("half.json", half)
        run = self.train("half.json", "watched", "--resume", "run/checkpoints/step-00000030", "--accuracy-guard", 100)
        self.assertEqual(self.read("watched/checkpoints/step-00000030/checkpoint.json")["watched_step"], 30)
        self.assertEqual([(phase["from_step"], phase["frozen_blocks"]) for phase in run["phases"]], [(0, 0), (30, 1)])


if __name__ == "__main__":
    unittest.main()
