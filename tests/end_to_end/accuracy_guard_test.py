"""The accuracy guard (`--accuracy-guard`): a freeze that costs too much accuracy is undone."""

import random
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS
from hosts import hosts_for, rank_variables
from recovery import RecoveryCase

TAKEN_BACK = "the freeze is taken back, nothing freezes before step"


class GuardBase(RecoveryCase):
    def take_back_a_freeze(self, *more):
        """Trains in run/, and returns its options, the freezing options, its summary and the recoveries.

        The labels are random, so the test accuracy varies by chance, and with a tolerance of 0 some freeze is followed
        by a fall."""
        header, *rows = (self.folder / "data.tsv").read_text().splitlines()
        labels = [row.split("\t")[1] for row in rows]
        random.Random(1).shuffle(labels)
        self.write("noise.tsv",
                   "\n".join([header, *(f"{row.split(chr(9))[0]}\t{label}" for row, label in zip(rows, labels))])
                   + "\n")
        options = ("train", self.of_length("static.json", 200), "--data", "noise.tsv")
        for rate, warm_up in ((0.001, 0.1), (0.001, 0.3), (0.005, 0.5), (0.003, 0.3), (0.01, 0.1)):
            shutil.rmtree(self.folder / "run", ignore_errors=True)
            freezing = ("--freeze", "fixed:2", "--freeze-set", f"warm-up={warm_up}", "--freeze-set", "interval=0.15",
                        "--accuracy-guard", 0)
            done = self.run_tool(*options, "--learning-rate", rate, "-o", self.folder / "run", *freezing, *more)
            run = self.read("run/summary.json")
            self.assertEqual([step["step"] for step in run["steps"]], list(range(200)))
            taken_back = [one for one in run.get("recoveries", []) if "before the freeze" in one["cause"]]
            if taken_back:
                break
        self.assertTrue(taken_back, done.stderr)
        self.assertIn(TAKEN_BACK, done.stderr)
        return (*options, "--learning-rate", rate), freezing, run, taken_back


class GuardTest(GuardBase):
    def test_a_freeze_that_costs_accuracy_is_taken_back(self):
        """The repeated steps are bitwise equal to those of a run that never froze."""
        options, _, run, taken_back = self.take_back_a_freeze()
        self.run_tool(*options, "-o", self.folder / "never")
        never = self.read("never/summary.json")
        frozen_from = next((phase["from_step"] for phase in run["phases"] if phase["frozen_blocks"] > 0), 200)
        self.assertGreaterEqual(frozen_from, taken_back[0]["step"] + taken_back[0]["lost_steps"])
        self.assertEqual([step["loss"] for step in run["steps"][:frozen_from]],
                         [step["loss"] for step in never["steps"][:frozen_from]])

    def test_a_freeze_exactly_where_a_run_goes_on_is_watched(self):
        """Resumes from a checkpoint just before the step at which the plan freezes. No accuracy falls by 100 %."""
        self.train("static.json", "run", "--checkpoint-every", 30)
        half = self.read("static.json")
        half["phases"].append({**half["phases"][0], "from_step": 30, "first_trainable_layer": 4})
        self.write("half.json", half)
        run = self.train("half.json", "watched", "--resume", "run/checkpoints/step-00000030", "--accuracy-guard", 100)
        self.assertEqual(self.read("watched/checkpoints/step-00000030/checkpoint.json")["watched_step"], 30)
        self.assertEqual([(phase["from_step"], phase["frozen_blocks"]) for phase in run["phases"]], [(0, 0), (30, 1)])


class GuardOnHostsTest(GuardBase):
    def test_a_freeze_is_taken_back_where_each_host_has_a_part_of_the_checkpoint(self):
        """Oracle: the same on one host."""
        options, freezing, ours, _ = self.take_back_a_freeze("--nodes", 2)
        shutil.rmtree(self.folder / "run")
        hosts = hosts_for(self, 2)
        ranks = [self.start(*options, *freezing, "-o", self.folder / "run", name=f"rank{rank}", wrapper=host.wrapper,
                            **rank_variables(hosts, rank)) for rank, host in enumerate(hosts)]
        for rank in ranks:
            self.assertEqual(rank.ended_within(HANG_SECONDS), 0, rank.stderr)
        self.assertIn(TAKEN_BACK, ranks[0].stderr)
        run = self.read(hosts[0].path("run/summary.json"))
        self.assertEqual(self.losses(run), self.losses(ours))
        self.assertEqual([(phase["from_step"], phase["frozen_blocks"]) for phase in run["phases"]],
                         [(phase["from_step"], phase["frozen_blocks"]) for phase in ours["phases"]])


if __name__ == "__main__":
    unittest.main()
