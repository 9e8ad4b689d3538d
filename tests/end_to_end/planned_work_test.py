"""`train` follows the profile and the plan: steps, lengths of samples. Outputs are tried before the work starts."""

import collections
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import tiny_model
from end_to_end import GLOBAL_BATCH, LEARNING_RATE, EndToEndTest


class PlannedWorkTest(EndToEndTest):
    def plan(self, output, *options, profile="profile.json"):
        return self.run_tool("plan", "--profile", profile, "--cluster", "cluster.json", "--global-batch", GLOBAL_BATCH,
                             "--method", "static", *options, "-o", output)

    def test_the_plans_steps_are_the_runs(self):
        self.plan("short.json", "--steps", 2)
        run = self.train("short.json", "run")
        self.assertEqual((run["num_steps"], len(run["steps"]), run["epochs"]), (2, 2, 0.2))
        self.assertEqual([evaluation["step"] for evaluation in run["evaluations"]], [2])  # as after an epoch

    def test_a_split_backward_is_trained_as_planned(self):
        """Every step has I and W of each of four micro-batches on both ranks, and no B."""
        self.plan("split.json", "--fix", "pp=2", "--fix", "m=4", "--schedule", "ZB-H1", "--epochs", 1)
        run = self.train("split.json", "run")
        self.assertEqual([(phase["schedule"], phase["stages"]) for phase in run["phases"]], [("ZB-H1", 2)])
        computed = collections.Counter()
        for event in self.read("run/trace.json")["traceEvents"]:
            action = re.fullmatch(r"(\d+)([FBIW])\d+", event["name"]) if event["ph"] == "X" else None
            computed.update([action.groups()] if action else [])
        self.assertEqual(computed["0", "I"] % 4, 0)
        self.assertGreater(computed["0", "I"], 0)
        self.assertEqual({action: count / computed["0", "I"] for action, count in computed.items()},
                         {(stage, kind): 1 for stage in "01" for kind in "FIW"})

    def test_the_freezing_calendar_is_that_of_the_plans_steps(self):
        self.plan("uneven.json", "--steps", 25)
        run = self.train("uneven.json", "run", "--freeze", "fixed:2", "--freeze-set", "warm-up=0.48",
                         "--freeze-set", "interval=0.5")
        self.assertEqual([phase["from_step"] for phase in run["phases"]], [0, 12])
        self.assertEqual([evaluation["step"] for evaluation in run["evaluations"]], [10, 20, 25])
        # The rate rises for two steps, then falls to 0 over 25 - 2.
        self.assertAlmostEqual(run["steps"][-1]["learning_rate"], LEARNING_RATE / 23)

    def test_epochs_of_much_more_data_are_another_plan(self):
        self.write("more.tsv",
                   "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in tiny_model.samples(800)))
        self.assert_refused("train", "static.json", "--data", "more.tsv", "-o", self.folder / "run",
                            says=["static.json: is a plan of 6 epochs in 60 steps",
                                  "1.5 epochs of this data (640 samples", "--steps"])

    def test_the_length_of_samples_travels(self):
        self.run_tool("profile", "--model", "model", "--data", "data.tsv", "--max-tokens", 6,
                      "--global-batch", GLOBAL_BATCH, "--micro-batch-sizes", "4,16", "--threads-per-rank", 1,
                      "--cluster", "cluster.json", "-o", "cut.json")
        self.assertEqual(self.read("cut.json")["workload"]["max_tokens"], 6)
        self.plan("cut-plan.json", "--epochs", 1, profile="cut.json")
        run = self.train("cut-plan.json", "run")
        self.assertEqual({step["tokens"] for step in run["steps"]}, {6})
        predicted, measured = self.read("cut-plan.json")["phases"][0]["predicted"]["peak_memory_bytes"], run["phases"][
            0]["measured_peak_memory_bytes"]
        for expected, found in zip(predicted, measured):
            self.assertLess(found, 1.25 * expected)
        self.assert_refused("train", "cut-plan.json", "--data", "data.tsv", "--max-tokens", 128,
                            "-o", self.folder / "other", code=2, says=["--max-tokens 128; the plan says it"])

    def test_options_without_effect_are_refused(self):
        train = ("train", "static.json", "--data", "data.tsv", "-o", self.folder / "other")
        self.assert_refused(*train, "--freeze-set", "warm-up=0.9", code=2, says=["--freeze-set requires --freeze"])
        self.assert_refused(*train, "--flip", says=["--crop-padding, --flip: are for pictures, and data.tsv is text"])
        self.assertIn("--cache-dir: is not used", self.run_tool(*train, "--cache-dir", "unused").stderr)

    def test_the_type_of_frozen_layers_travels(self):
        self.run_tool("profile", "--model", "model", "--data", "data.tsv", "--global-batch", GLOBAL_BATCH,
                      "--micro-batch-sizes", "4,16", "--threads-per-rank", 1, "--frozen-dtype", "bfloat16",
                      "-o", "rounded.json")
        self.assertEqual(self.read("rounded.json")["frozen_dtype"], "bfloat16")
        self.plan("rounded-plan.json", "--epochs", 2, profile="rounded.json")
        run = self.train("rounded-plan.json", "run", "--freeze", "fixed:1", "--freeze-set", "warm-up=0.4",
                         "--freeze-set", "interval=0.5")
        self.assertEqual(self.read("run/executed_plan.json")["frozen_dtype"], "bfloat16")
        self.assertEqual([phase["first_trainable_layer"] for phase in run["phases"]], [0, 3])
        self.assertGreater(run["test_accuracy"], 0)
        self.assert_refused("train", "static.json", "--data", "data.tsv", "--profile", "rounded.json",
                            "-o", self.folder / "other",
                            says=["rounded.json: frozen_dtype: frozen layers were measured in bfloat16, but "
                                  "static.json was made for float32"])
        self.assert_refused("profile", "--model", "model", "--dtype", "bfloat16", "--frozen-dtype", "float32",
                            "-o", "other.json", code=2, says=["--frozen-dtype: must be bfloat16"])

    def test_longer_data_than_there_is_memory_for_is_refused(self):
        self.write("long.tsv",
                   "text\tlabel\n"
                   + "".join(f"{text} {text} {text}\t{label}\n" for text, label in tiny_model.samples(200)))
        longest = self.read("profile.json")["workload"]["longest_tokens"]
        self.assert_refused("train", "static.json", "--data", "long.tsv", "-o", self.folder / "run",
                            says=["long.tsv: has samples of", f"static.json has memory for {longest} at most"])

    def test_a_plan_that_does_not_know_its_data_says_what_it_has_memory_for(self):
        self.edit("static.json",
                  lambda plan: [plan.pop("workload"), plan["phases"][0].update(tokens=4, longest_tokens=0)])
        done = self.run_tool(*self.train_arguments("static.json", "run"))
        self.assertRegex(done.stderr, r"data.tsv has samples of \d+ tokens, but static.json has memory for 4 at most")

    def test_another_split_by_another_seed_is_the_same_data(self):
        for seed in range(2, 5):
            self.plan("short.json", "--epochs", 1)
            self.assertEqual(self.train("short.json", f"run-{seed}", "--seed", seed)["num_steps"], 10)


class ProfileTest(EndToEndTest):
    def test_a_quick_profile_says_so(self):
        """Measures a part of the sizes, once each. Oracle: the sizes in the file, and the marks in profile and plan."""
        arguments = ("profile", "--model", "model", "--data", "data.tsv", "--global-batch", 16,
                     "--cluster", "quick-cluster.json", "-o", "quick.json")
        done = self.run_tool(*arguments, "--quick")
        profile = self.read("quick.json")
        self.assertTrue(profile["quick"])
        self.assertEqual({measurement["key"]["micro_batch_size"] for measurement in profile["measurements"]},
                         {1, 8, 16})
        self.assertIn("quick:", done.stdout)
        self.assertRegex(done.stderr, r"round 1 of 1: micro-batches of")
        done = self.run_tool("plan", "--profile", "quick.json", "--cluster", "quick-cluster.json", "--global-batch", 16,
                             "--method", "static", "-o", "quick-plan.json")
        self.assertIn("roughly, since the profile is a quick one", done.stdout)
        self.assertNotIn("quick", self.read("profile.json"))

    def test_a_profile_need_not_be_a_file_that_can_be_read_again(self):
        self.run_tool("profile", "--model", "model", "--data", "data.tsv", "--global-batch", 16, "--quick",
                      "--threads-per-rank", 1, "-o", "/dev/null", "--cluster", "/dev/null", timeout=120)

    def test_links_come_with_their_spread(self):
        for links in self.read("cluster.json")["intra_node"].values():
            spread = links["measured_bandwidth"]
            self.assertLessEqual(spread["low_bytes_per_second"], links["bandwidth_bytes_per_second"])
            self.assertLessEqual(links["bandwidth_bytes_per_second"], spread["high_bytes_per_second"])
            self.assertLess(links["bandwidth_bytes_per_second"], 10**13)

    def test_outputs_are_tried_before_the_measuring(self):
        self.write("occupied", "a file")
        for outputs in (("-o", "occupied/p.json"), ("-o", "p.json", "--cluster", "occupied/c.json"), ("-o", "model")):
            with self.subTest(outputs):
                stderr = self.assert_refused("profile", "--model", "model", "--data", "data.tsv", *outputs,
                                             says=[outputs[-1], "cannot be written"])
                self.assertNotIn("round 1", stderr)
        self.assertFalse((self.folder / "p.json").exists())


if __name__ == "__main__":
    unittest.main()
