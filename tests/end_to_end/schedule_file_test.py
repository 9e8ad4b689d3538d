"""Training by a schedule from a CSV file. Oracles: the file, whose actions every rank does in their order; and the same
plan by a schedule that has a name, whose losses are equal."""

import csv
import json
import os
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import tiny_model
from end_to_end import EndToEndTest

NUM_LAYERS = 2 * tiny_model.NUM_BLOCKS + 2
PYTORCH_SCHEDULES = "FROSTPIPE_PYTORCH_SCHEDULES"
COMPUTE = re.compile(r"\d+[FBIW]\d+")


class ScheduleFileTest(EndToEndTest):
    def plan_by_hand(self, name, ranks, stages, num_micro_batches, schedule, frozen_from=None):
        """Stages of about equal numbers of layers, 2 epochs of 160 samples, in the second of which layers before
        `frozen_from` are frozen."""

        def change(plan):
            phase = plan["phases"][0]
            edges = [NUM_LAYERS * stage // stages for stage in range(stages + 1)]
            phase.update(num_micro_batches=num_micro_batches, schedule=schedule, virtual_stages=stages // ranks,
                         partition=[{"begin": a, "end": b} for a, b in zip(edges, edges[1:])],
                         layout={"pipeline_parallel_size": ranks, "data_parallel_size": 1, "tensor_parallel_size": 1,
                                 "placement": []})
            phase["predicted"]["peak_memory_bytes"] = []
            plan.update(version=2, world_size=ranks, global_batch_size=24, num_steps=14, memory_limited=False,
                        phases=[phase])
            if frozen_from is not None:
                plan["phases"].append({**json.loads(json.dumps(phase)), "from_step": 7,
                                       "first_trainable_layer": frozen_from})

        self.write(name, (self.folder / "static.json").read_text())
        self.edit(name, change)
        return name

    def train_both_ways(self, plan, schedule):
        """By the plan's own schedule and by the file: the run by the file."""
        named = self.train(plan, "named", "--epochs", 2)
        by_file = self.train(plan, "by_file", "--epochs", 2, "--schedule-file", schedule)
        self.assert_losses_equal(named, by_file, 14, 1e-4)
        self.assert_followed("by_file", (self.folder / schedule).read_text().splitlines())
        return by_file

    def assert_followed(self, run, rows):
        """In the first traced step, in which nothing is frozen."""
        spans = [event for event in self.read(f"{run}/trace.json")["traceEvents"]
                 if event["ph"] == "X" and COMPUTE.fullmatch(event["name"])]
        step = min(event["args"]["step"] for event in spans)
        for rank, row in enumerate(rows):
            done = sorted((event["ts"], event["name"]) for event in spans
                          if event["pid"] == rank and event["args"]["step"] == step)
            self.assertEqual([name for _, name in done], COMPUTE.findall(row))

    def schedule(self, name, *options):
        text = self.run_tool("schedule", name, *options, "--format", "csv").stdout
        self.write("mine.csv", text)
        return text.splitlines()


class OwnFileTest(ScheduleFileTest):
    def test_in_every_phase(self):
        rows = self.schedule("ZBVZeroBubble", "--pp", 2, "--micro-batches", 5)
        plan = self.plan_by_hand("plan.json", 2, 4, 5, "LoopedBFS", frozen_from=5)
        run = self.train_both_ways(plan, "mine.csv")
        self.assertEqual([phase["schedule"] for phase in run["phases"]], ["mine.csv"] * 2)
        executed = self.read("by_file/executed_plan.json")
        self.assertEqual([phase["schedule_rows"] for phase in executed["phases"]], [rows] * 2)
        # What was run is a plan like any other.
        again = self.train("by_file/executed_plan.json", "again", "--model", "model", "--epochs", 2)
        self.assert_losses_equal(run, again, 14, 1e-6)

    def test_refused(self):
        self.schedule("1F1B", "--pp", 2, "--micro-batches", 5)
        self.write("bad.csv", "0F0,0B0\n1B0,1F0\n")
        plan = self.plan_by_hand("plan.json", 2, 4, 5, "LoopedBFS")
        for file, says in [
            ("mine.csv", ["mine.csv: has 2 pipeline ranks, 2 stages and 5 micro-batches, but phases[0] of plan.json "
                          "has 2 pipeline ranks, 4 stages and 5 micro-batches"]),
            ("bad.csv", ["schedule bad.csv: pipeline rank 1", "1B0 waits for 1F0, which stands after it"]),
            ("none.csv", ["none.csv"]),
        ]:
            with self.subTest(file=file):
                self.assert_refused(*self.train_arguments(plan, "run", "--schedule-file", file), says=says)


class PyTorchArtifactsTest(ScheduleFileTest):
    """PyTorch's own files, of test/distributed/pipelining/artifacts in its repository."""

    def artifact(self, name):
        folder = os.environ.get(PYTORCH_SCHEDULES)
        if not folder:
            why = f"{name} is NOT trained: {PYTORCH_SCHEDULES} names no folder with PyTorch's schedules"
            print(f"\nSKIPPED LOUDLY: {why}", file=sys.stderr)
            self.skipTest(why)
        path = Path(folder) / name
        self.assertIn("valid", self.run_tool("schedule", "--check", path).stdout)
        return path

    def test_compute_only(self):
        plan = self.plan_by_hand("plan.json", 2, 4, 8, "Interleaved1F1B", frozen_from=3)
        self.train_both_ways(plan, self.artifact("zb1p_2rank_2stagep_compute.csv"))

    def test_with_messages(self):
        plan = self.plan_by_hand("plan.json", 2, 4, 8, "Interleaved1F1B")
        path = self.artifact("zb1p_2rank_2stagep_comms.csv")
        self.train_both_ways(plan, path)
        with open(path, newline="") as file:
            fields = [[field.strip() for field in row if field.strip()] for row in csv.reader(file)]
        phase = self.read("by_file/executed_plan.json")["phases"][0]
        self.assertEqual([[field.strip() for field in row.split(",") if field.strip()]
                          for row in phase["schedule_rows"]], fields)

    def test_overlapped_pairs_on_four_ranks(self):
        plan = self.plan_by_hand("plan.json", 4, 8, 10, "ZBVZeroBubble")
        self.train_both_ways(plan, self.artifact("dualpipev_4rank_10mb.csv"))


if __name__ == "__main__":
    unittest.main()
