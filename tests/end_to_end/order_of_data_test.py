"""The same samples form the same mini-batches in every layout, so losses agree."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import tiny_model
from end_to_end import EndToEndTest

NUM_LAYERS = 2 * tiny_model.NUM_BLOCKS + 2
CHANCE = 1 / len(tiny_model.LABELS)


class OrderOfDataTest(EndToEndTest):
    def test_the_same_seed_gives_the_same_run(self):
        """Trains with the plan's own phases, since re-planning depends on measured times."""
        first = self.train("pipetransformer.json", "first", "--seed", 7, "--freeze", "plan")
        second = self.train("pipetransformer.json", "second", "--seed", 7, "--freeze", "plan")
        self.assertEqual(self.losses(first), self.losses(second))
        self.assertEqual(first["test_predictions"], second["test_predictions"])
        self.assertEqual(self.contents("first/model"), self.contents("second/model"))

    def test_another_seed_gives_another_run(self):
        first = self.train("static.json", "first", "--seed", 7, "--epochs", 1)
        second = self.train("static.json", "second", "--seed", 8, "--epochs", 1)
        self.assertNotEqual(self.losses(first), self.losses(second))
        self.assertNotEqual(first["test_items"], second["test_items"])

    def test_the_layout_does_not_change_which_samples_form_a_mini_batch(self):
        pipeline = self.train("static.json", "pipeline", "--epochs", 2)
        replicas = self.train("data-parallel.json", "replicas", "--epochs", 2)
        self.assertEqual([(s["samples"], s["tokens"]) for s in pipeline["steps"]],
                         [(s["samples"], s["tokens"]) for s in replicas["steps"]])
        self.assert_losses_equal(pipeline, replicas, 10, 1e-4)

    def test_one_process_with_two_threads_trains_as_two_ranks_do(self):
        self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 16,
                      "--epochs", 2,
                      "--method", "data-parallel", "--threads-per-rank", 2, "-o", "one_process.json")
        plan = self.read("one_process.json")
        self.assertEqual((plan["world_size"], plan["threads_per_rank"]), (1, 2))
        one = self.train("one_process.json", "one")
        self.assertEqual((one["world_size"], one["threads_per_rank"]), (1, 2))
        replicas = self.train("data-parallel.json", "two", "--epochs", 2)
        self.assert_losses_equal(one, replicas, 10, 1e-4)

    def test_an_elastic_run_in_one_process_says_that_it_has_no_pipeline(self):
        self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 16,
                      "--epochs", 1,
                      "--method", "pipetransformer", "--threads-per-rank", 2, "-o", "elastic.json")
        done = self.run_tool(*self.train_arguments("elastic.json", "one"))
        cached = " and cached" if any(phase["cache"] for phase in self.read("one/summary.json")["phases"]) else ""
        self.assertIn(f"\nOne process with 2 threads: the elastic run froze{cached}, without a pipeline.\n",
                      done.stdout)

    def test_grouping_by_length_changes_mini_batches_and_not_what_they_hold_together(self):
        plain = self.train("static.json", "plain", "--epochs", 1)
        grouped = self.train("static.json", "grouped", "--epochs", 1, "--group-by-length", 1000)
        self.assertNotEqual(self.losses(plain), self.losses(grouped))
        self.assertEqual(sum(step["samples"] for step in plain["steps"]),
                         sum(step["samples"] for step in grouped["steps"]))
        spread = [max(lengths) - min(lengths)
                  for lengths in ([step["tokens"] for step in run["steps"]] for run in (plain, grouped))]
        self.assertGreater(spread[1], spread[0], "mini-batches are short or long, not mixed")


class FourRanksTest(EndToEndTest):
    """Plans made by hand for four ranks, with more layouts than the planner chooses, give the results of one
    process."""

    def plan_by_hand(self, name, world_size, phases, optimizer="adamw"):
        """phases: (from_step, first_trainable_layer, partition, replicas, micro-batches, placement)"""

        def change(plan):
            template = plan["phases"][0]
            plan.update(world_size=world_size, global_batch_size=24, num_steps=42, optimizer=optimizer,
                        memory_limited=False, phases=[])
            for from_step, first_trainable, cuts, replicas, num_micro_batches, placement in phases:
                edges = [0, *cuts, NUM_LAYERS]
                phase = json.loads(json.dumps(template))
                phase.update(from_step=from_step, first_trainable_layer=first_trainable,
                             num_micro_batches=num_micro_batches,
                             partition=[{"begin": a, "end": b} for a, b in zip(edges, edges[1:])],
                             layout={"pipeline_parallel_size": len(cuts) + 1, "data_parallel_size": replicas,
                                     "tensor_parallel_size": 1,
                                     "placement": placement})
                phase["predicted"]["peak_memory_bytes"] = []
                plan["phases"].append(phase)

        self.write(name, (self.folder / "static.json").read_text())
        self.edit(name, change)

    def train_by_hand(self, plan, output):
        # 160 training samples in mini-batches of 24: 7 steps an epoch, the last of 16.
        return self.train(plan, output, "--epochs", 6, "--name", output)

    def test_four_two_one(self):
        self.plan_by_hand("one.json", 1, [(0, 0, [], 1, 1, []), (15, 5, [], 1, 1, []), (30, 7, [], 1, 1, [])])
        self.plan_by_hand("four.json", 4, [(0, 0, [3, 5, 8], 1, 5, []), (15, 5, [7], 2, 3, []), (30, 7, [], 4, 1, [])])
        one, four = self.train_by_hand("one.json", "one"), self.train_by_hand("four.json", "four")
        self.assertEqual([(p["stages"], p["replicas"], p["frozen_blocks"]) for p in four["phases"]],
                         [(4, 1, 0), (2, 2, 2), (1, 4, 3)])
        self.assertEqual(four["num_steps"], 42)
        self.assert_losses_equal(one, four, 15, 1e-4)   # up to the first freeze
        self.assert_losses_equal(one, four, 42, 2e-3)   # and after it: moments, learning rate and head are kept
        self.assertGreater(four["test_accuracy"], 2 * CHANCE)
        self.assertEqual(len(four["phases"][0]["measured_peak_memory_bytes"]), 4)
        saved = tiny_model.read_safetensors(self.folder / "four/model/model.safetensors")
        self.assertEqual(len(saved), len(tiny_model.shapes()) + 4)  # pooler and classifier

    def test_sgd_stays_equal_to_one_process(self):
        self.plan_by_hand("one.json", 1, [(0, 0, [], 1, 1, []), (15, 3, [], 1, 1, [])], optimizer="sgd")
        self.plan_by_hand("four.json", 4, [(0, 0, [2, 5, 8], 1, 4, []), (15, 3, [5], 2, 2, [])], optimizer="sgd")
        one, four = self.train_by_hand("one.json", "one"), self.train_by_hand("four.json", "four")
        self.assert_losses_equal(one, four, 42, 1e-4)

    def test_idle_ranks_and_ranks_in_another_order(self):
        self.plan_by_hand("one.json", 1, [(0, 0, [], 1, 1, []), (15, 5, [], 1, 1, []), (30, 7, [], 1, 1, [])])
        self.plan_by_hand("four.json", 4,
                          [(0, 0, [3, 5, 8], 1, 3, [3, 1, 0, 2]), (15, 5, [7], 1, 4, [2, 1]),
                           (30, 7, [8], 2, 1, [1, 0, 3, 2])])
        one, four = self.train_by_hand("one.json", "one"), self.train_by_hand("four.json", "four")
        self.assert_losses_equal(one, four, 42, 2e-3)

    def test_layers_frozen_from_the_start_inside_the_pipeline(self):
        self.plan_by_hand("one.json", 1, [(0, 5, [], 1, 1, [])])
        self.plan_by_hand("four.json", 4, [(0, 5, [2, 4, 7], 1, 4, [])])
        one, four = self.train_by_hand("one.json", "one"), self.train_by_hand("four.json", "four")
        self.assert_losses_equal(one, four, 42, 2e-3)


if __name__ == "__main__":
    unittest.main()
