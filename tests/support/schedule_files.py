"""Runs train by a schedule from a CSV file. Oracles: the file, since every rank does its actions in order; and the same
plan with a named schedule, whose losses are equal."""

import json
import re

import tiny_model
from end_to_end import EndToEndTest

NUM_LAYERS = 2 * tiny_model.NUM_BLOCKS + 2
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
        """Trains with the plan's own schedule and with the file; returns the latter run."""
        named = self.train(plan, "named", "--epochs", 2)
        by_file = self.train(plan, "by_file", "--epochs", 2, "--schedule-file", schedule)
        self.assert_losses_equal(named, by_file, 14, 1e-4)
        self.assert_followed("by_file", (self.folder / schedule).read_text().splitlines())
        return by_file

    def assert_followed(self, run, rows):
        """The actions of the first traced step, in which no layers are frozen."""
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
