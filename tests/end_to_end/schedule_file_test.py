"""Training by a schedule from a CSV file of one's own; tests/support/schedule_files.py has the oracles."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from schedule_files import ScheduleFileTest


class OwnFileTest(ScheduleFileTest):
    def test_in_every_phase(self):
        rows = self.schedule("ZBVZeroBubble", "--pp", 2, "--micro-batches", 5)
        plan = self.plan_by_hand("plan.json", 2, 4, 5, "LoopedBFS", frozen_from=5)
        run = self.train_both_ways(plan, "mine.csv")
        self.assertEqual([phase["schedule"] for phase in run["phases"]], ["mine.csv"] * 2)
        executed = self.read("by_file/executed_plan.json")
        self.assertEqual([phase["schedule_rows"] for phase in executed["phases"]], [rows] * 2)
        # The executed plan is a plan like any other, and names the files that its plan named.
        self.assertEqual(self.run_tool("simulate", "by_file/executed_plan.json").returncode, 0)
        again = self.train("by_file/executed_plan.json", "again", "--epochs", 2)
        self.assert_losses_equal(run, again, 14, 1e-6)

    def test_refused(self):
        self.schedule("1F1B", "--pp", 2, "--micro-batches", 5)
        self.write("bad.csv", "0F0,0B0\n1B0,1F0\n")
        plan = self.plan_by_hand("plan.json", 2, 4, 5, "LoopedBFS")
        for file, says in [
            ("mine.csv", ["mine.csv: has 2 pipeline ranks, 2 stages and 5 micro-batches, but phases[0] of plan.json "
                          "has 2 pipeline ranks, 4 stages and 5 micro-batches"]),
            ("bad.csv", ["schedule bad.csv: pipeline rank 1, compute action 1: 1B0 waits for 1F0",
                         "which stands after it"]),
            ("none.csv", ["none.csv"]),
        ]:
            with self.subTest(file=file):
                self.assert_refused(*self.train_arguments(plan, "run", "--schedule-file", file), says=says)


if __name__ == "__main__":
    unittest.main()
