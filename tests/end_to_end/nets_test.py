"""A user's workflow with a convolutional net: a config without weights, operators measured on unequal CPUs, plans,
training, freezing, scoring. Oracles: every plan gives the results of a single device; evaluate gives the run's results;
emulated devices take the predicted times."""

import json
import os
import re
import resource
import shutil
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


def epoch_losses(run, steps_per_epoch=4):
    losses = [step["loss"] for step in run["steps"]]
    return [sum(losses[begin:begin + steps_per_epoch]) / steps_per_epoch
            for begin in range(0, len(losses), steps_per_epoch)]


def split_evenly(plan):
    """Puts every operator on two devices in halves, since the planner would put such a small net on one."""
    half = plan["graph"]["batch"] // 2
    plan["placement"] = [[{"device": 0, "begin": 0, "end": half},
                          {"device": 1, "begin": half, "end": 2 * half}] if ranges else []
                         for ranges in plan["placement"]]
    plan["order"] = [max(plan["order"], key=len)] * 2


class NetsTest(EndToEndTest):
    profiled = {}  # the files of one profile by their names, for all tests

    def setUp(self):
        super().setUp()
        (self.folder / "net").mkdir()
        self.write("net/config.json", json.dumps(CONFIG))
        self.write("net/preprocessor_config.json", json.dumps({"size": {"height": 16, "width": 16}}))
        write_pictures(self.folder / "pictures", 20)
        if not self.profiled:
            self.run_tool("nets", "profile", "--model", "net", "--hardware", "cpu,cpu / 2", "--global-batch", 12,
                          "--quick", "-o", "operators.json", "--cluster", "unequal.json")
            self.profiled.update({name: (self.folder / name).read_text()
                                  for name in ("operators.json", "unequal.json")})
        for name, text in self.profiled.items():
            self.write(name, text)

    def plan(self, method):
        self.run_tool("nets", "plan", "--method", method, "--profile", "operators.json", "--cluster", "unequal.json",
                      "-o", f"{method}.json")
        return f"{method}.json"

    def train_net(self, method, out, *options):
        done = self.run_tool("nets", "train", self.plan(method), "--model", "net", "--data", "pictures", "-o", out,
                             "--learning-rate", 0.02, "--epochs", 3, *options)
        return self.read(f"{out}/summary.json"), done

    def split_evenly(self, source, target):
        self.write(target, (self.folder / source).read_text())
        self.edit(target, split_evenly)

    def test_two_devices_train_what_one_does_and_freeze(self):
        alone, done = self.train_net("mtrain-single", "alone", "--freeze", "fixed:4,6")
        self.assertIn("the whole model starts at random", done.stderr)
        self.split_evenly("mtrain-single.json", "halves.json")
        self.run_tool("nets", "train", "halves.json", "--model", "net", "--data", "pictures", "-o", "halves",
                      "--learning-rate", 0.02, "--epochs", 3)
        whole, _ = self.train_net("mtrain-single", "whole")
        halves = self.read("halves/summary.json")
        for run in (alone, whole, halves):
            self.assertEqual((run["num_steps"], run["epochs"], run["world_size"]), (3 * 4, 3, 2))
            losses = epoch_losses(run)
            self.assertLess(losses[-1], losses[0])
        for one, other in zip(whole["steps"], halves["steps"], strict=True):
            self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-4)
        self.assertEqual([evaluation["step"] for evaluation in whole["evaluations"]], [4, 8, 12])
        self.assertEqual(whole["evaluations"], halves["evaluations"])
        self.assertTrue(all(peak > 0 for peak in halves["phases"][0]["measured_peak_memory_bytes"]))
        self.assertEqual([(phase["from_step"], phase["frozen_blocks"]) for phase in alone["phases"]],
                         [(0, 0), (4, 4), (8, 6)])
        self.assertNotEqual(epoch_losses(alone)[1], epoch_losses(whole)[1])
        operators = {operator["name"] for operator in self.read("halves.json")["graph"]["operators"]}
        spans = [event for event in self.read("halves/trace.json")["traceEvents"]
                 if event["ph"] == "X" and event["cat"] != "run"]
        self.assertEqual({event["name"] for event in spans}, operators)
        self.assertEqual({event["pid"] for event in spans}, {0, 1})

    def test_a_nets_run_is_reported_compared_and_watched_as_any_other(self):
        self.train_net("mtrain-single", "alone")
        self.split_evenly("mtrain-single.json", "halves.json")
        self.run_tool("nets", "train", "halves.json", "--model", "net", "--data", "pictures", "-o", "halves", "--name",
                      "halves", "--learning-rate", 0.02, "--epochs", 3, "--freeze", "fixed:4")
        run = self.read("halves/summary.json")
        self.assertEqual((run["method"], self.read("halves/executed_plan.json")["method"]),
                         ("mtrain-single", "operators"))
        for phase in run["phases"]:
            self.assertEqual(phase["devices"], 2)
            self.assertGreater(phase["measured_iteration_ns"], 0)
            predicted, measured = phase["predicted_timeline"], phase["measured_timeline"]
            self.assertLessEqual(max(span["end_ns"] for span in predicted["spans"]), phase["predicted_iteration_ns"])
            tasks = [sorted((span["rank"], span["action"]) for span in timeline["spans"])
                     for timeline in (predicted, measured)]
            self.assertEqual(*tasks)
            self.assertEqual(predicted["stage_names"], measured["stage_names"])
        simulated = json.loads(self.run_tool("nets", "simulate", "halves.json", "--format", "json").stdout)
        self.assertEqual(run["phases"][0]["predicted_iteration_ns"], simulated["iteration_ns"])
        self.run_tool("report", "halves/summary.json", "-o", "report.html", "--trace", "timelines.json")
        page = (self.folder / "report.html").read_text()
        for words in ("frozen<br>layers", "2 devices", "whole mini-batch", "One iteration of each phase"):
            self.assertIn(words, page)
        compared = self.run_tool("compare", "mtrain-single.json", "alone/summary.json", "halves.json",
                                 "halves/summary.json", "-o", "both.json").stdout
        self.assertRegex(compared, r"halves is [\d.]+ times as fast as mtrain-single")
        self.assertIn("accuracy of halves minus mtrain-single", compared)
        self.assertEqual(self.read("both.json")["order"], ["mtrain-single", "halves"])
        scalars = [json.loads(line) for line in (self.folder / "halves/scalars.jsonl").read_text().splitlines()]
        self.assertEqual([line["step"] for line in scalars if "loss" in line], list(range(1, 13)))
        self.assertEqual(sum("test/accuracy" in line for line in scalars), 3)
        self.assertTrue(os.listdir(self.folder / "halves/tensorboard"))
        self.write("old.json", json.dumps({"format": "frostpipe.net_run", "version": 1, "name": "old"}))
        self.assert_refused("report", "old.json", "-o", "old.html",
                            says=["old.json: is the summary of a net's run as frostpipe wrote it before",
                                  "Train the net again"])

    def test_evaluate_says_what_the_run_said(self):
        run, _ = self.train_net("mtrain", "run", "--test-data", "pictures")
        score = json.loads(self.run_tool("nets", "evaluate", "--model", "run/model", "--data", "pictures",
                                         "--predictions", "said.csv", "--format", "json").stdout)
        self.assertEqual(score["value"], run["test_accuracy"])
        self.assertEqual(len((self.folder / "said.csv").read_text().splitlines()), 1 + 60)

    def test_emulated_devices_take_what_is_predicted(self):
        for method in ("mtrain", "mtrain-data-parallel", "mtrain-pipeline"):
            said = self.run_tool("nets", "rehearse", self.plan(method), "-o", method).stdout
            self.assertTrue(said.startswith("emulated: rehearsal of "), said)
            run = self.read(f"{method}/summary.json")
            phase = run["phases"][0]
            self.assertTrue(run["emulated"])
            self.assertEqual(phase["measured_peak_memory_bytes"], [], "no weights and activations are held")
            self.assertAlmostEqual(phase["measured_iteration_ns"] / phase["predicted_iteration_ns"], 1, delta=0.02)

    def kill_rank_1_of(self, *command):
        """Starts a run, kills the rank on its way, and waits for the run's end."""
        run = self.start(*command)
        checkpoints = self.folder / "run/checkpoints"
        self.wait_until(lambda: any(checkpoints.glob("step-*")) or run.ended_within(0) is not None, 60,
                        lambda: run.stderr)
        ranks = {rank_of_process(pid): pid for pid in processes_naming(self.folder) if pid != run.pid}
        os.kill(ranks[1], signal.SIGKILL)
        self.assertEqual(run.ended_within(60), 0, run.stderr)
        self.assertIn(f"rank 1 (process {ranks[1]}) was killed by signal 9", run.stderr)

    def long_run(self, *options):
        return ("nets", "train", self.plan("mtrain-data-parallel"), "--model", "net", "--data", "pictures",
                "--learning-rate", 0.02, "--epochs", 100, "--checkpoint-every", 20, *options)

    def test_a_run_goes_on_without_a_lost_rank(self):
        self.run_tool(*self.long_run("-o", "whole"))
        self.kill_rank_1_of(*self.long_run("-o", self.folder / "run"))
        run, whole = self.read("run/summary.json"), self.read("whole/summary.json")
        self.assertEqual([recovery["world_size"] for recovery in run["recoveries"]], [1])
        self.assertRegex(run["recoveries"][0]["source"], "checkpoint step-|the beginning")
        self.assertEqual([step["step"] for step in run["steps"]], list(range(400)))
        begins_again = run["recoveries"][0]["step"] == 0  # rank 1 had a part of the first checkpoint yet to write
        self.assertEqual([phase["devices"] for phase in run["phases"]], [1] if begins_again else [2, 1])
        self.assertEqual(run["phases"][-1]["from_step"], run["recoveries"][0]["step"])
        # One device and two devices compute the same up to rounding.
        lost_at = run["recoveries"][0]["step"]
        for one, other in zip(run["steps"][:lost_at + 20], whole["steps"]):
            self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-3)
        self.assertIn("on 1 rank", self.run_tool("report", "run/summary.json", "-o", "r.html").stdout +
                      (self.folder / "r.html").read_text())

    def test_a_spare_takes_a_lost_ranks_place_to_the_bit(self):
        self.run_tool(*self.long_run("-o", "whole"))
        self.kill_rank_1_of(*self.long_run("-o", self.folder / "run", "--spares", 1))
        run = self.read("run/summary.json")
        self.assertEqual([recovery["world_size"] for recovery in run["recoveries"]], [2])
        self.assertEqual((self.folder / "run/model/model.safetensors").read_bytes(),
                         (self.folder / "whole/model/model.safetensors").read_bytes())

    def test_a_freeze_that_costs_accuracy_is_taken_back(self):
        """The learning rate grows until what was learned is lost, and so is the accuracy after a freeze."""
        done = self.run_tool("nets", "train", self.plan("mtrain-data-parallel"), "--model", "net", "--data",
                             "pictures", "-o", "run", "--learning-rate", 5, "--learning-rate-warm-up", 1, "--epochs",
                             10, "--held-out", 0.5, "--freeze", "fixed:0,0,0,4", "--accuracy-guard", 0)
        run = self.read("run/summary.json")
        self.assertEqual([step["step"] for step in run["steps"]], list(range(20)))
        if "the freeze is taken back" not in done.stderr:
            self.skipTest("the accuracy has not fallen here")
        self.assertIn("before the freeze at step 8", run["recoveries"][0]["cause"])
        self.assertEqual([phase["frozen_blocks"] for phase in run["phases"]], [0, 0, 4])

    def test_a_checkpoint_goes_on_to_the_bit_within_an_epoch_and_after_a_freeze(self):
        def weights(run):
            return (self.folder / run / "model/model.safetensors").read_bytes()
        freeze = ("--freeze", "fixed:0,5")
        whole, _ = self.train_net("mtrain-data-parallel", "whole", *freeze)  # 3 epochs of 4 steps
        for step in (4, 6, 8, 11):  # more than half of 12 steps: the run's only checkpoint
            with self.subTest(step):
                self.train_net("mtrain-data-parallel", f"until-{step}", *freeze, "--checkpoint-every", step,
                               "--keep-checkpoints", 9)
                folder = f"until-{step}/checkpoints/step-{step:08}"
                run, done = self.train_net("mtrain-data-parallel", f"from-{step}", *freeze, "--resume", folder)
                self.assertIn(f"goes on with step {step} of 12, from {folder}", done.stderr)
                self.assertNotIn("starts at random", done.stderr)
                self.assertEqual(weights(f"from-{step}"), weights("whole"))
                for one, other in zip(run["steps"], whole["steps"], strict=True):
                    self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-12)
                self.assertEqual(run["evaluations"], whole["evaluations"])
                self.assertEqual(run["recoveries"][0]["step"], step)
        # Another plan may go on: what one device computes is what two do, up to rounding.
        run, _ = self.train_net("mtrain-single", "other", *freeze, "--resume", "until-11/checkpoints")
        self.assertAlmostEqual(run["steps"][-1]["loss"], whole["steps"][-1]["loss"], delta=1e-3)
        inspected = json.loads(self.run_tool("inspect", "until-11", "--format", "json").stdout)
        self.assertEqual((inspected["step"], inspected["num_steps"], inspected["faults"]), (11, 12, []))
        said = self.run_tool("inspect", "until-11").stdout
        for words in ("step 11 of 12", "layout: net by mtrain-data-parallel on cpu + cpu / 2",
                      "layers before 5 are frozen"):
            self.assertIn(words, said)
        for step in (4, 8):
            shutil.copytree(self.folder / f"until-{step}/checkpoints/step-{step:08}",
                            self.folder / f"both/checkpoints/step-{step:08}")
        newest = self.folder / "both/checkpoints/step-00000008/layer-002.safetensors"
        newest.write_bytes(newest.read_bytes()[:-1] + b"x")
        self.assertIn("must be as it was written", self.run_tool("inspect", "both", code=1).stderr)
        _, done = self.train_net("mtrain-data-parallel", "whole-again", *freeze, "--resume", "both/checkpoints")
        self.assertIn("a checkpoint is skipped: both/checkpoints/step-00000008/layer-002.safetensors: must be as "
                      "it was written", done.stderr)
        self.assertEqual(weights("whole-again"), weights("whole"))
        self.assert_refused("nets", "train", "mtrain-data-parallel.json", "--model", "net", "--data", "pictures", "-o",
                            "no", "--learning-rate", 0.01, "--epochs", 3, "--resume", "both/checkpoints",
                            says=["is of another run: learning_rate: 0.02 in the checkpoint, 0.01 now"])

    def test_a_checkpoint_that_cannot_be_written_costs_itself_alone(self):
        (self.folder / "run").mkdir()
        self.write("run/checkpoints", "a file in the folder's place")
        run, done = self.train_net("mtrain-data-parallel", "run", "--checkpoint-every", 5)
        self.assertEqual(run["num_steps"], 12)
        for step in (5, 10):
            self.assertRegex(done.stderr, f"the checkpoint of step {step} was not written: .*; training goes on")

    def test_an_interrupted_run_goes_on(self):
        command = ("nets", "train", self.plan("mtrain-data-parallel"), "--model", "net", "--data", "pictures",
                   "--learning-rate", 0.02, "--epochs", 60)
        self.run_tool(*command, "-o", "whole")
        run = self.start(*command, "-o", self.folder / "run")
        self.wait_until(lambda: re.search(r"step \d+/|after epoch", run.stderr) or run.ended_within(0) is not None, 60,
                        lambda: run.stderr)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.ended_within(20), 130, run.stderr)
        found = re.search(r"stopped after (\d+) of 240 steps: the same command again goes on from there", run.stderr)
        self.assertIsNotNone(found, run.stderr)
        self.assertFalse((self.folder / "run/summary.json").exists())
        done = self.run_tool(*command, "-o", "run")
        self.assertIn(f"goes on with step {found[1]} of 240, from run/checkpoints/step-{int(found[1]):08}", done.stderr)
        self.assertEqual((self.folder / "run/model/model.safetensors").read_bytes(),
                         (self.folder / "whole/model/model.safetensors").read_bytes())
        self.assertEqual([step["step"] for step in self.read("run/summary.json")["steps"]], list(range(240)))
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

    def test_options_and_limits_that_do_not_fit_are_refused_in_a_sentence(self):
        plan = self.plan("mtrain")
        train = ("nets", "train", plan, "--model", "net", "--data", "pictures", "-o", "refused")
        self.assert_refused(*train, "--dropout", 0.1, code=2,
                            says=["'frostpipe train' has --dropout"])
        self.assert_refused(*train, prepare=limited(resource.RLIMIT_FSIZE, 20_000, 20_000),
                            says=["limit of a file's size (ulimit -f)", "refused/model/model.safetensors"])
        self.assert_refused(*train, "--freeze", "paper", code=2, says=["--freeze: must be plan or fixed:N,N,..."])
        self.assert_refused(*train, "--freeze", "fixed:99", says=["--freeze: must freeze at least the 0 layers"])
        self.assert_refused("nets", "train", plan, "--data", "pictures", code=2, says=["--model is required"])
        self.assert_refused("nets", "train", plan, "--model", "net", "--data", "operators.json",
                            says=["operators.json: must be pictures"])
        self.write("net/preprocessor_config.json", json.dumps({"size": {"height": 32, "width": 32}}))
        self.assert_refused(*train, says=[f"{plan}: graph.operators: must be those of net with pictures of 32 pixels"])
        self.write("net/preprocessor_config.json", json.dumps({"size": {"height": 16, "width": 16}}))
        text = (self.folder / self.plan("mtrain-data-parallel")).read_text()
        self.edit(plan, lambda plan: plan["graph"]["edges"].pop())
        self.assert_refused(*train, says=[f"{plan}: graph.edges: must be those of net with", "is fewer"])
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
                self.assertEqual("the dropout of its classifier" in done.stderr, is_noted)
                score = json.loads(self.run_tool("nets", "evaluate", "--model", f"{name}-run/model", "--data",
                                                 "pictures", "--format", "json").stdout)
                run = self.read(f"{name}-run/summary.json")
                self.assertEqual(score["value"], run["test_accuracy"])
                self.assertTrue(all(step["loss"] > 0 for step in run["steps"]))


if __name__ == "__main__":
    unittest.main()
