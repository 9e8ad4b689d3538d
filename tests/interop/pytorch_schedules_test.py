"""Training by the schedules that PyTorch's pipelining writes; tests/support/schedule_files.py has the oracles."""
import csv
import sys
import unittest
from pathlib import Path

import pytorch_schedules

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from schedule_files import ScheduleFileTest


class PyTorchSchedulesTest(ScheduleFileTest):
    def write_schedule(self, name):
        pytorch_schedules.write(self.folder / name)
        self.assertIn("valid", self.run_tool("schedule", "--check", name).stdout)
        return name

    def test_compute_only(self):
        plan = self.plan_by_hand("plan.json", 2, 4, 8, "Interleaved1F1B", frozen_from=3)
        self.train_both_ways(plan, self.write_schedule("interleaved_zero_bubble.csv"))

    def test_with_messages(self):
        plan = self.plan_by_hand("plan.json", 2, 4, 8, "Interleaved1F1B")
        file = self.write_schedule("interleaved_zero_bubble_comms.csv")
        self.train_both_ways(plan, file)
        with open(self.folder / file, newline="") as rows:
            fields = [[field.strip() for field in row if field.strip()] for row in csv.reader(rows)]
        phase = self.read("by_file/executed_plan.json")["phases"][0]
        self.assertEqual([[field.strip() for field in row.split(",") if field.strip()]
                          for row in phase["schedule_rows"]], fields)

    def test_overlapped_pairs_on_four_ranks(self):
        plan = self.plan_by_hand("plan.json", 4, 8, 10, "ZBVZeroBubble")
        self.train_both_ways(plan, self.write_schedule("dual_pipe_v.csv"))


if __name__ == "__main__":
    unittest.main()
