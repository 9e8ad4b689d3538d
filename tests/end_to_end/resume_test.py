"""Runs are interrupted, and checkpoints are damaged: the next start continues the run."""

import json
import os
import re
import shutil
import signal
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS, NOT_FOR_USERS
from recovery import EPOCHS, FEWER_EPOCHS, LIMIT_SECONDS, RecoveryCase


class InterruptedCase(RecoveryCase):
    def interrupt(self, plan, *options, steps=None):
        """Kills the launcher of a run once it has a checkpoint; all its processes end at once."""
        launcher = self.start_until(steps or 8 * self.epochs // 3, plan, "--epochs", self.epochs,
                                    "--checkpoint-every", 10, *options, name="interrupted")
        checkpoints = self.folder / "run/checkpoints"
        self.wait_until(lambda: any(checkpoints.glob("step-????????")), HANG_SECONDS, lambda: launcher.stderr)
        os.kill(launcher.pid, signal.SIGKILL)
        launcher.process.wait()
        self.assert_no_process_within(5)
        self.assertFalse((self.folder / "run/summary.json").exists(), "the run was over before it was hit")

    def resume(self, plan, *options):
        return self.train(plan, "run", "--epochs", self.epochs, *options)

    def go_on_to_the_bit(self, *plans):
        for plan in plans:
            with self.subTest(plan):
                reference, weights = self.reference(plan, "--epochs", self.epochs)
                self.interrupt(plan)
                run = self.resume(plan)
                self.assertGreater(run["recoveries"][0]["step"], 0)
                self.assert_same_run(run, reference, weights, bits=not self.caches(plan))
                shutil.rmtree(self.folder / "run")


class ResumeTest(InterruptedCase):
    epochs = FEWER_EPOCHS

    def test_the_next_start_goes_on_to_the_bit(self):
        self.go_on_to_the_bit("static.json", "pipetransformer.json")

    def test_delayed_updates_go_on_with_both_versions_of_the_weights(self):
        self.edit("static.json", lambda plan: plan["phases"][0].update(schedule="PipeDream-2BW", num_micro_batches=2))
        shutil.copy(self.folder / "static.json", self.folder / "delayed.json")
        self.go_on_to_the_bit("delayed.json")

    def test_delayed_updates_begin_anew_where_the_checkpoint_ends_with_a_phase(self):
        """The run resumes exactly where a freeze begins: the older weights in the checkpoint are those of the finished
        phase. Oracle: the uninterrupted run, bitwise."""

        def freeze_half_at_step_20(plan):
            plan["phases"][0].update(schedule="PipeDream-2BW", num_micro_batches=2)
            plan["phases"].append({**plan["phases"][0], "from_step": 20, "first_trainable_layer": 4})

        self.edit("static.json", freeze_half_at_step_20)
        reference = self.train("static.json", "whole", "--epochs", 3, "--checkpoint-every", 20)
        run = self.train("static.json", "run", "--epochs", 3, "--resume", "whole/checkpoints/step-00000020")
        self.assertEqual([phase["from_step"] for phase in run["phases"]], [0, 20])
        self.assert_same_run(run, reference, (self.folder / "whole/model/model.safetensors").read_bytes())

    def test_one_run_at_a_time_writes_into_a_folder(self):
        """The second start names the process that uses the folder, and the first run continues. A killed run blocks no
        other."""
        long = ("--epochs", 100 * EPOCHS)
        launcher = self.start_until(5, "static.json", *long)
        for options in ((), ("--overwrite", "--resume", "no")):
            done = self.run_tool(*self.train_arguments("static.json", "run", *long, *options), code=1,
                                 timeout=LIMIT_SECONDS)
            self.assertRegex(done.stderr, rf"/run: is being written by process {launcher.pid} on host \S+, since "
                                          r"2\d\d\d-")
        self.assertIsNone(launcher.ended_within(0), launcher.stderr)
        os.kill(launcher.pid, signal.SIGKILL)
        launcher.process.wait()
        again = self.start(*self.train_arguments("static.json", "run", *long), name="again")
        self.wait_until(lambda: "train " in again.stderr or again.ended_within(0) is not None, HANG_SECONDS,
                        lambda: again.stderr)
        self.assertIsNone(again.ended_within(0), again.stderr)

    def test_a_signal_ends_the_run_with_a_checkpoint(self):
        """The exit code is 128 + signal, no work is lost, and the next start ends bitwise equal to the uninterrupted
        run. Ranks ignore the terminal's interrupt, and its end."""
        # nohup has the tests, and what they start, ignore the end of the terminal.
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))
        for plan, number, send in (("static.json", signal.SIGINT, os.killpg), ("static.json", signal.SIGHUP, os.killpg),
                                   ("data-parallel.json", signal.SIGTERM, os.kill)):
            with self.subTest(plan=plan, number=number):
                reference, weights = self.reference(plan, "--epochs", self.epochs)
                launcher = self.start_until(10 * self.epochs // 4, plan, "--epochs", self.epochs,
                                            "--checkpoint-every", 0)
                send(launcher.pid, number)
                self.assertEqual(launcher.ended_within(LIMIT_SECONDS), 128 + number, launcher.stderr)
                self.assertNotRegex(launcher.stderr, NOT_FOR_USERS)
                self.assert_no_process_within(1)
                last = launcher.stderr.splitlines()[-1]
                stopped = re.fullmatch(rf"frostpipe: stopped after (\d+) of {10 * self.epochs} steps: the same command "
                                       r"again goes on from there", last)
                self.assertIsNotNone(stopped, last)
                self.assertFalse((self.folder / "run/summary.json").exists())
                step = int(stopped[1])
                self.assertEqual([path.name for path in (self.folder / "run/checkpoints").iterdir()],
                                 [f"step-{step:08}"])
                # The checkpoint has all finished steps: no step has figures and is not in the checkpoint.
                self.assertEqual(max(json.loads(line)["step"]
                                     for line in (self.folder / "run/steps.jsonl").read_text().splitlines()), step - 1)
                again = self.run_tool(*self.train_arguments(plan, "run", "--epochs", self.epochs))
                self.assertIn("at random", launcher.stderr)
                self.assertNotIn("at random", again.stderr, "the checkpoint has everything")
                run = self.read("run/summary.json")
                self.assertEqual([recovery["step"] for recovery in run["recoveries"]], [step])
                self.assert_same_run(run, reference, weights)
                shutil.rmtree(self.folder / "run")

    def test_a_checkpoint_holds_no_figures_of_steps_but_the_last(self):
        run = self.train("static.json", "run", "--epochs", 2, "--checkpoint-every", 5)
        for checkpoint in (self.folder / "run/checkpoints").iterdir():
            snapshot = self.read(checkpoint / "run.json")
            done = int(checkpoint.name[5:])
            self.assertEqual(snapshot["steps"], run["steps"][done - 1 : done])
            self.assertEqual(sum(phase["num_steps"] for phase in snapshot["phases"]), done)
        self.assertEqual([json.loads(line) for line in (self.folder / "run/steps.jsonl").read_text().splitlines()],
                         run["steps"])

    def test_another_runs_checkpoint_is_refused_by_name(self):
        self.interrupt("static.json")
        shutil.copytree(self.folder / "run/checkpoints", self.folder / "saved")
        for option, value, difference in (("--seed", 7, "seed: 1 in the checkpoint, 7 now"),
                                          ("--weight-decay", 0.1, "weight_decay: 0.01 in the checkpoint, 0.1 now"),
                                          ("--dropout", 0.1, "dropout: 0.0 in the checkpoint, 0.1 now"),
                                          ("--decay", "cosine", 'decay: "linear" in the checkpoint, "cosine" now'),
                                          ("--label-smoothing", 0.2,
                                           "label_smoothing: 0.0 in the checkpoint, 0.2 now")):
            # The checkpoint is given by its folder, and by its own path.
            named = ("other", "--resume", "saved") if option == "--dropout" else ("run",)
            with self.subTest(option):
                done = self.run_tool(*self.train_arguments("static.json", *named, "--epochs", self.epochs, option,
                                                           value), code=1)
                self.assertRegex(done.stderr, rf"{named[-1]}.*/step-\d+: is of another run: {difference}.*--resume no")
        run = self.train("static.json", "run", "--epochs", 1, "--resume", "no")
        self.assertEqual(run["num_steps"], 10)
        self.assertNotIn("recoveries", run)

    def test_a_folder_that_takes_no_checkpoints_costs_only_them(self):
        self.write("run/checkpoints", "a file")
        done = self.run_tool(*self.train_arguments("static.json", "run", "--epochs", 3, "--checkpoint-every", 10))
        self.assertRegex(done.stderr, r"the checkpoint of step 10 was not written: .*; training goes on")
        self.assertTrue((self.folder / "run/summary.json").exists())

    def test_inspect_shows_what_is_there(self):
        self.train("static.json", "run", "--epochs", 2, "--checkpoint-every", 5)
        shown = self.run_tool("inspect", "run").stdout
        self.assertRegex(shown, r"step \d+ of 20, loss [\d.]+")
        self.assertEqual(shown.count("first_moment, second_moment, weights"), 10)
        self.assertEqual(json.loads(self.run_tool("inspect", "run", "--format", "json").stdout)["faults"], [])
        layer = sorted((self.folder / "run/checkpoints").glob("step-????????"))[-1] / "layer-003.safetensors"
        whole = layer.read_bytes()
        layer.write_bytes(whole[:20] + b"\xff\xfe\xff" + whole[23:])  # in the header, and no UTF-8
        faults = json.loads(self.run_tool("inspect", "run", "--format", "json", code=1).stdout)["faults"]
        self.assertEqual(len(faults), 1)
        self.assertIn("layer-003.safetensors", faults[0])
        self.assert_refused("inspect", "model", says=["must be a checkpoint"])


class LongResumeTest(InterruptedCase):
    def test_the_next_start_goes_on_to_the_bit(self):
        self.go_on_to_the_bit("data-parallel.json")

    def test_a_torn_checkpoint_is_passed_over(self):
        reference, weights = self.reference("static.json", "--epochs", EPOCHS)
        self.interrupt("static.json")
        newest = sorted((self.folder / "run/checkpoints").glob("step-????????"))[-1]
        torn = newest / "layer-003.safetensors"
        torn.write_bytes(torn.read_bytes()[:1000])
        inspected = self.run_tool("inspect", newest, code=1)
        self.assertIn("DAMAGED", inspected.stdout)
        self.assertIn("layer-003.safetensors", inspected.stderr)
        done = self.run_tool(*self.train_arguments("static.json", "run", "--epochs", EPOCHS))
        self.assertRegex(done.stderr, r"a checkpoint is skipped: .*layer-003\.safetensors")
        self.assert_same_run(self.read("run/summary.json"), reference, weights)

    def test_damaged_checkpoints_alone_are_not_thrown_away(self):
        self.interrupt("static.json")
        checkpoints = sorted((self.folder / "run/checkpoints").glob("step-????????"))
        for checkpoint in checkpoints:
            (checkpoint / "checkpoint.json").write_text("{")
        self.assert_refused(*self.train_arguments("static.json", "run", "--epochs", EPOCHS),
                            says=["no checkpoint of it is whole", "--resume no"])
        self.assertTrue(all(checkpoint.exists() for checkpoint in checkpoints))
        self.assertEqual(self.train("static.json", "run", "--epochs", 1, "--resume", "no")["num_steps"], 10)

    def test_rules_that_look_at_gradients_go_on_to_the_bit(self):
        for rule in ("paper", "adaptive"):
            with self.subTest(rule):
                options = ("--freeze", rule, "--freeze-set", "warm-up=0.1")
                reference, weights = self.reference("static.json", "--epochs", EPOCHS, *options)
                self.interrupt("static.json", *options, steps=120)
                run = self.resume("static.json", *options)
                self.assertEqual([phase["frozen_blocks"] for phase in reference["phases"]][-1],
                                 run["phases"][-1]["frozen_blocks"])
                self.assert_same_run(run, reference, weights)
                shutil.rmtree(self.folder / "run")

    def test_another_layout_schedule_or_world_goes_on(self):
        reference, weights = self.reference("static.json", "--epochs", EPOCHS)
        fixed = ["--global-batch", 16, "--epochs", 6, "--profile", "profile.json"]
        self.run_tool("plan", *fixed, "--cluster", "cluster.json", "--method", "static", "--fix", "pp=2",
                      "--schedule", "GPipe", "--fix", "m=4", "-o", "gpipe.json")
        cluster = self.read("cluster.json")
        cluster["devices"] = cluster["devices"][:1]
        self.write("one.json", cluster)
        self.run_tool("plan", *fixed, "--cluster", "one.json", "--method", "exact", "-o", "alone.json")
        self.interrupt("static.json")
        shutil.copytree(self.folder / "run", self.folder / "saved")
        for plan in ("data-parallel.json", "gpipe.json", "alone.json"):
            with self.subTest(plan):
                shutil.rmtree(self.folder / "run")
                run = self.resume(plan, "--resume", "saved/checkpoints")
                self.assert_same_run(run, reference, weights, bits=False)
                self.assertTrue(any((self.folder / "saved/checkpoints").glob("step-*")),
                                "another run's checkpoints stay")

    def test_layers_freeze_and_train_again_with_their_moments(self):
        """A run with half its layers frozen resumes without frozen layers, and the other way round."""
        half = self.read("static.json")
        half["phases"].append({**half["phases"][0], "from_step": 30, "first_trainable_layer": 4})
        self.write("half.json", half)
        for first, then in (("half.json", "static.json"), ("static.json", "half.json")):
            with self.subTest(then):
                self.interrupt(first)
                run = self.resume(then)
                self.assertEqual(run["phases"][-1]["first_trainable_layer"], 0 if then == "static.json" else 4)
                self.assertEqual(len(run["steps"]), 10 * EPOCHS)
                self.run_tool("compare", then, "run/summary.json", "-o", "compared.json")
                shutil.rmtree(self.folder / "run")


if __name__ == "__main__":
    unittest.main()
