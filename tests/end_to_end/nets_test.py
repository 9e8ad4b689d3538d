"""A user's workflow with a convolutional net: a config without weights, operators measured on unequal CPUs, plans,
training, freezing, scoring. Oracles: every plan gives the results of a single device; evaluate gives the run's results;
emulated devices take the predicted times."""

import json
import os
import re
import resource
import signal
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import EndToEndTest, processes_naming, rank_of_process
from families_test import write_pictures
from limits_test import limited

CONFIG = {"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1],
          "layer_type": "basic"}


class NetsTest(EndToEndTest):
    def setUp(self):
        super().setUp()
        (self.folder / "net").mkdir()
        self.write("net/config.json", json.dumps(CONFIG))
        self.write("net/preprocessor_config.json", json.dumps({"size": {"height": 16, "width": 16}}))
        write_pictures(self.folder / "pictures", 20)
        self.run_tool("nets", "profile", "--model", "net", "--hardware", "cpu,cpu / 2", "--global-batch", 12,
                      "--quick", "-o", "operators.json", "--cluster", "unequal.json")

    def plan(self, method):
        self.run_tool("nets", "plan", "--method", method, "--profile", "operators.json", "--cluster", "unequal.json",
                      "-o", f"{method}.json")
        return f"{method}.json"

    def train_net(self, method, out, *options):
        done = self.run_tool("nets", "train", self.plan(method), "--model", "net", "--data", "pictures", "-o", out,
                             "--learning-rate", 0.02, "--epochs", 3, *options)
        return self.read(f"{out}/summary.json"), done

    def split_evenly(self, source, target):
        """The same plan with every operator in two halves, since the planner would put such a small net on one
        device."""
        def edit(plan):
            half = plan["graph"]["batch"] // 2
            plan["placement"] = [[{"device": 0, "begin": 0, "end": half},
                                  {"device": 1, "begin": half, "end": 2 * half}] if ranges else []
                                 for ranges in plan["placement"]]
            plan["order"] = [max(plan["order"], key=len)] * 2
        self.write(target, (self.folder / source).read_text())
        self.edit(target, edit)

    def test_two_devices_train_what_one_does_and_freeze(self):
        alone, done = self.train_net("mtrain-single", "alone", "--freeze", "fixed:4,6")
        self.assertIn("the whole model starts at random", done.stderr)
        self.split_evenly("mtrain-single.json", "halves.json")
        self.run_tool("nets", "train", "halves.json", "--model", "net", "--data", "pictures", "-o", "halves",
                      "--learning-rate", 0.02, "--epochs", 3)
        whole, _ = self.train_net("mtrain-single", "whole")
        halves = self.read("halves/summary.json")
        for run in (alone, whole, halves):
            self.assertEqual(run["num_iterations"], 3 * 4)
            self.assertLess(run["epochs"][-1]["loss"], run["epochs"][0]["loss"])
        for one, other in zip(whole["epochs"], halves["epochs"], strict=True):
            self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-4)
            self.assertEqual(one["test_accuracy"], other["test_accuracy"])
        self.assertTrue(all(device["peak_memory_bytes"] > 0 for device in halves["devices"]))
        self.assertEqual([epoch["frozen_layers"] for epoch in alone["epochs"]], [0, 4, 6])
        self.assertNotEqual(alone["epochs"][1]["loss"], whole["epochs"][1]["loss"])
        processes = {event["args"]["name"] for event in self.read("halves/trace.json")["traceEvents"]
                     if event["ph"] == "M"}
        self.assertEqual(processes, {f"device {device}: {what}" for device in ("0 (cpu)", "1 (cpu / 2)")
                                     for what in ("predicted", "measured")})

    def test_evaluate_says_what_the_run_said(self):
        run, _ = self.train_net("mtrain", "run", "--test-data", "pictures")
        score = json.loads(self.run_tool("nets", "evaluate", "--model", "run/model", "--data", "pictures",
                                         "--predictions", "said.csv", "--format", "json").stdout)
        self.assertEqual(score["value"], run["epochs"][-1]["test_accuracy"])
        self.assertEqual(len((self.folder / "said.csv").read_text().splitlines()), 1 + 60)

    def test_emulated_devices_take_what_is_predicted(self):
        for method in ("mtrain", "mtrain-data-parallel", "mtrain-pipeline"):
            self.run_tool("nets", "rehearse", self.plan(method), "-o", method)
            epoch = self.read(f"{method}/summary.json")["epochs"][0]
            self.assertAlmostEqual(epoch["iteration_ns"] / epoch["predicted_iteration_ns"], 1, delta=0.02)

    def test_a_killed_rank_ends_the_run_and_is_named(self):
        run = self.start("nets", "train", self.plan("mtrain-data-parallel"), "--model", "net", "--data", "pictures",
                         "-o", self.folder / "run", "--learning-rate", 0.02, "--epochs", 100_000)
        self.wait_until(lambda: re.search(r"epoch ([2-9]|\d\d)", run.stderr) or run.ended_within(0) is not None, 60,
                        lambda: run.stderr)
        ranks = {rank_of_process(pid): pid for pid in processes_naming(self.folder) if pid != run.pid}
        os.kill(ranks[1], signal.SIGKILL)
        self.assertEqual(run.ended_within(20), 1, run.stderr)
        self.assertIn(f"rank 1 (process {ranks[1]}) was killed by signal 9", run.stderr)
        self.assertTrue((self.folder / "run/model/model.safetensors").is_file(), "that of the first epoch")

    def test_a_checkpoint_goes_on_to_the_bit_within_an_epoch_and_after_a_freeze(self):
        def weights(run):
            return (self.folder / run / "model/model.safetensors").read_bytes()
        freeze, every = ("--freeze", "fixed:0,5"), ("--checkpoint-every", 1, "--keep-checkpoints", 99)
        whole, _ = self.train_net("mtrain-data-parallel", "whole", *freeze, *every)  # 3 epochs of 4 steps
        self.assertEqual(sorted(os.listdir(self.folder / "whole/checkpoints")),
                         [f"step-{step:08}" for step in range(1, 12)])
        for step in (4, 6, 8, 11):
            with self.subTest(step):
                run, done = self.train_net("mtrain-data-parallel", f"from-{step}", *freeze, "--resume",
                                           f"whole/checkpoints/step-{step:08}")
                self.assertIn(f"going on from whole/checkpoints/step-{step:08}, step {step} of 12", done.stderr)
                self.assertEqual(weights(f"from-{step}"), weights("whole"))
                for one, other in zip(run["epochs"], whole["epochs"], strict=True):
                    self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-12)
                    self.assertEqual(one["test_accuracy"], other["test_accuracy"])
        # Another plan can resume: one device gives the same results as two, up to rounding.
        run, _ = self.train_net("mtrain-single", "other", *freeze, "--resume", "whole/checkpoints")
        self.assertAlmostEqual(run["epochs"][-1]["loss"], whole["epochs"][-1]["loss"], delta=1e-3)
        inspected = json.loads(self.run_tool("inspect", "whole", "--format", "json").stdout)
        self.assertEqual((inspected["step"], inspected["num_steps"], inspected["faults"]), (11, 12, []))
        self.assertIn("step 11 of 12, 5 layers frozen", self.run_tool("inspect", "whole").stdout)
        newest = self.folder / "whole/checkpoints/step-00000011"
        (newest / "state.safetensors").write_bytes((newest / "state.safetensors").read_bytes()[:-1] + b"x")
        self.assertIn("must be as it was written", self.run_tool("inspect", "whole", code=1).stderr)
        _, done = self.train_net("mtrain-data-parallel", "whole-again", *freeze, "--resume", "whole/checkpoints")
        self.assertIn("a checkpoint is passed over: whole/checkpoints/step-00000011/state.safetensors: must be as it "
                      "was written", done.stderr)
        self.assertEqual(weights("whole-again"), weights("whole"))
        self.assert_refused("nets", "train", "mtrain-data-parallel.json", "--model", "net", "--data", "pictures", "-o",
                            "no",
                            "--learning-rate", 0.01, "--epochs", 3, "--resume", "whole/checkpoints",
                            says=["is of another run: learning_rate: 0.02 in the checkpoint, 0.01 now"])

    def test_a_checkpoint_that_cannot_be_written_costs_itself_alone(self):
        (self.folder / "run").mkdir()
        self.write("run/checkpoints", "a file in the folder's place")
        run, done = self.train_net("mtrain-data-parallel", "run", "--checkpoint-every", 5)
        self.assertEqual(len(run["epochs"]), 3)
        for step in (5, 10):
            self.assertRegex(done.stderr, f"the checkpoint of step {step} was not written: .*; training goes on")

    def test_an_interrupted_run_goes_on(self):
        command = ("nets", "train", self.plan("mtrain-data-parallel"), "--model", "net", "--data", "pictures",
                   "--learning-rate", 0.02, "--epochs", 60)
        self.run_tool(*command, "-o", "whole")
        run = self.start(*command, "-o", self.folder / "run")
        self.wait_until(lambda: re.search(r"epoch [1-9]\d?", run.stderr) or run.ended_within(0) is not None, 60,
                        lambda: run.stderr)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.ended_within(20), 130, run.stderr)
        found = re.search(r"stopped before step (\d+) of 240: the same command again goes on from step \1", run.stderr)
        self.assertIsNotNone(found, run.stderr)
        self.assertFalse((self.folder / "run/summary.json").exists())
        done = self.run_tool(*command, "-o", "run")
        self.assertIn(f"going on from run/checkpoints/step-{int(found[1]):08}, step {found[1]} of 240", done.stderr)
        self.assertEqual((self.folder / "run/model/model.safetensors").read_bytes(),
                         (self.folder / "whole/model/model.safetensors").read_bytes())
        self.assertEqual(len(self.read("run/summary.json")["epochs"]), 60)
        self.assert_refused(*command, "-o", "run", says=["run: holds a run that has ended"])

    def test_diverging_ends_with_advice(self):
        self.assert_refused("nets", "train", self.plan("mtrain-single"), "--model", "net", "--data", "pictures", "-o",
                            "run", "--learning-rate", 1e6, "--epochs", 3,
                            says=["training has diverged", "--learning-rate"])

    def test_devices_that_wait_for_each_other_are_refused(self):
        plan = self.plan("mtrain-data-parallel")
        self.edit(plan, lambda plan: plan["order"][0].reverse())
        for command in (("train", plan, "--model", "net", "--data", "pictures"), ("rehearse", plan)):
            self.assert_refused("nets", *command, "-o", "refused",
                                says=[f"{plan}: order: must let every operator begin"])

    def test_what_does_not_fit_is_refused_in_a_sentence(self):
        plan = self.plan("mtrain")
        train = ("nets", "train", plan, "--model", "net", "--data", "pictures", "-o", "refused")
        self.assert_refused(*train, "--spares", 1, code=2, says=["'frostpipe train' has --spares"])
        self.assert_refused(*train, prepare=limited(resource.RLIMIT_FSIZE, 20_000, 20_000),
                            says=["limit of a file's size (ulimit -f)", "a checkpoint in refused"])
        self.assert_refused(*train, "--freeze", "paper", code=2, says=["--freeze: must be plan or fixed:N,N,..."])
        self.assert_refused(*train, "--freeze", "fixed:99", says=["--freeze: must freeze at least the 0 layers"])
        self.assert_refused("nets", "train", plan, "--data", "pictures", code=2, says=["--model is required"])
        self.assert_refused("nets", "train", plan, "--model", "net", "--data", "operators.json",
                            says=["operators.json: must be pictures"])
        self.write("net/preprocessor_config.json", json.dumps({"size": {"height": 32, "width": 32}}))
        self.assert_refused(*train, says=[f"{plan}: graph.operators: must be those of net with pictures of 32 pixels"])
        self.write("net/preprocessor_config.json", json.dumps({"size": {"height": 16, "width": 16}}))
        text = (self.folder / self.plan("mtrain-data-parallel")).read_text()
        self.write(plan, text.replace("cpu / 2", "A100"))
        self.assert_refused(*train,
                            says=[f"{plan}: machine.devices[1].device_class", "frostpipe nets rehearse takes any"])
        self.assert_refused("nets", "profile", "--model", "net", "--hardware", "cpu", "-o", "p.json", "--dtype",
                            "bfloat16", code=2, says=["'frostpipe profile' has --dtype"])
        self.assert_refused("nets", "profile", "--model", "net", "--hardware", "V100", "-o", "p.json",
                            says=["--hardware: must be CPUs to be measured"])


class NetFamiliesTest(EndToEndTest):
    def test_a_vgg_and_mobilenets_are_measured_trained_and_scored(self):
        mobilenet = {"image_size": 32, "depth_multiplier": 0.125, "min_depth": 4}
        vgg = {"architecture": "vgg11_bn", "head_hidden_size": 512, "pretrained_cfg": {"input_size": [3, 32, 32]}}
        write_pictures(self.folder / "pictures", 20)
        for name, config, is_noted in (("vgg", vgg, False), ("v1", {"model_type": "mobilenet_v1", **mobilenet}, True),
                                       ("v2", {"model_type": "mobilenet_v2", **mobilenet}, True)):
            with self.subTest(name):
                (self.folder / name).mkdir()
                self.write(f"{name}/config.json", json.dumps(config))
                self.run_tool("nets", "profile", "--model", name, "--hardware", "cpu,cpu / 2", "--global-batch",
                              12, "--quick", "-o", "operators.json", "--cluster", "unequal.json")
                self.run_tool("nets", "plan", "--method", "mtrain-data-parallel", "--profile", "operators.json",
                              "--cluster", "unequal.json", "-o", "plan.json")
                done = self.run_tool("nets", "train", "plan.json", "--model", name, "--data", "pictures",
                                     "--test-data", "pictures", "-o", f"{name}-run", "--learning-rate", 0.01,
                                     "--epochs", 2)
                self.assertEqual("nothing is dropped before its classifier" in done.stderr, is_noted)
                score = json.loads(self.run_tool("nets", "evaluate", "--model", f"{name}-run/model", "--data",
                                                 "pictures", "--format", "json").stdout)
                epochs = self.read(f"{name}-run/summary.json")["epochs"]
                self.assertEqual(score["value"], epochs[-1]["test_accuracy"])
                self.assertTrue(all(epoch["loss"] > 0 for epoch in epochs))


if __name__ == "__main__":
    unittest.main()
