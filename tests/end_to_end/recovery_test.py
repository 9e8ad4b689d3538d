"""Lost ranks, interrupted runs, damaged checkpoints. Oracle: the run that nothing has disturbed: the same losses and weights, to the bit where the layout
is the same, and every step of the epoch account once."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import tiny_model
from end_to_end import HANG_SECONDS, NOT_FOR_USERS, EndToEndTest, processes_naming, rank_of_process

LIMIT_SECONDS = 30  # for a recovery or a clear end
EPOCHS = 30         # 300 steps, some 3 seconds on two cores
FEWER_EPOCHS = 20   # of the unit tests: a signal after some 50 steps still comes long before the end


class RecoveryCase(EndToEndTest):
    epochs = EPOCHS
    references = {}

    def reference(self, plan, *options):
        """The summary and the weights of the run that nothing disturbs."""
        key = (plan, *options)
        if key not in self.references:
            run = self.train(plan, f"reference-{len(self.references)}", *options)
            self.references[key] = (run, (self.folder / f"reference-{len(self.references)}/model/model.safetensors").read_bytes())
        return self.references[key]

    def caches(self, plan):
        return any(phase["cache"]["on"] for phase in self.read(plan)["phases"])

    def ranks_of(self, launcher):
        return {rank_of_process(pid): pid for pid in processes_naming(self.folder) if pid != launcher.pid}

    def start_until(self, steps, plan, *options, name="launcher"):
        """The launcher, once so many steps are done: told by steps, the moment comes before the end on a fast machine, and
        behind the first checkpoints on a slow one."""
        launcher = self.start(*self.train_arguments(plan, "run", *options), name=name)
        scalars = self.folder / "run/scalars.jsonl"

        def is_there():
            return scalars.exists() and scalars.read_text().count('"loss"') >= steps

        self.wait_until(lambda: is_there() or launcher.ended_within(0) is not None, HANG_SECONDS, lambda: launcher.stderr)
        return launcher

    def assert_ended_well(self, launcher):
        code = launcher.ended_within(LIMIT_SECONDS + 30)
        self.assertEqual(code, 0, launcher.stderr)
        self.assertNotRegex(launcher.stderr, NOT_FOR_USERS)
        self.assert_no_process_within(5)
        return self.read("run/summary.json")

    def assert_same_account(self, run, reference):
        """Every sample of every epoch once."""
        for field in ("step", "samples", "learning_rate"):
            self.assertEqual([step[field] for step in run["steps"]], [step[field] for step in reference["steps"]], field)

    def assert_same_run(self, run, reference, weights, bits=True, out="run"):
        self.assert_same_account(run, reference)
        if bits:
            self.assertEqual([step["loss"] for step in run["steps"]], [step["loss"] for step in reference["steps"]])
            self.assertEqual((self.folder / out / "model/model.safetensors").read_bytes(), weights)
            self.assertEqual(run["test_predictions"], reference["test_predictions"])
        else:
            loss, expected = run["steps"][-1]["loss"], reference["steps"][-1]["loss"]
            self.assertLessEqual(abs(loss - expected), 1e-4 * abs(expected))


class LostRankTest(RecoveryCase):
    epochs = FEWER_EPOCHS

    def lose(self, victim, plan, *options, steps=50, number=signal.SIGKILL):
        options = ("--epochs", self.epochs, *options)
        launcher = self.start_until(steps, plan, *options)
        os.kill(self.ranks_of(launcher)[victim], number)
        run = self.assert_ended_well(launcher)
        self.assertEqual(len(run["recoveries"]), 1, launcher.stderr)
        self.assertEqual([path for path in (self.folder / "run").rglob("*") if ".part" in path.name or ".written" in path.name], [])
        return run, launcher

    def test_a_spare_restores_the_layout_from_a_checkpoint(self):
        reference, weights = self.reference("static.json", "--epochs", self.epochs)
        for victim in (0, 1):
            with self.subTest(victim=victim):
                run, launcher = self.lose(victim, "static.json", "--checkpoint-steps", 20, "--spares", 1)
                self.assertRegex(launcher.stderr, rf"rank {victim} \(process \d+\) was killed by signal 9 .*a spare takes the place")
                self.assertRegex(run["recoveries"][0]["source"], "checkpoint step-|the beginning")
                self.assert_same_run(run, reference, weights)
                shutil.rmtree(self.folder / "run")

    def test_a_replica_gives_what_was_lost_and_no_step_is_done_again(self):
        reference, weights = self.reference("data-parallel.json", "--epochs", self.epochs)
        run, _ = self.lose(0, "data-parallel.json", "--spares", 1)
        # Where the loss hit one rank before and the other behind its update, nobody has a common step.
        if run["recoveries"][0]["source"] == "the survivors' memory":
            self.assertEqual(run["recoveries"][0]["lost_steps"], 0)
        self.assert_same_run(run, reference, weights)

    def test_a_rank_is_lost_before_the_others_have_joined(self):
        """The others lose their connection to it, and come to the next forming."""
        started = self.start(*self.train_arguments("static.json", "run", "--epochs", 1, "--spares", 1))
        self.wait_until(lambda: 1 in self.ranks_of(started), HANG_SECONDS, "rank 1 was not started")
        os.kill(self.ranks_of(started)[1], signal.SIGKILL)
        run = self.assert_ended_well(started)
        self.assertEqual([recovery["world_size"] for recovery in run["recoveries"]], [2], started.stderr)
        self.assertNotIn("did not stop", started.stderr)

    def test_a_rank_that_fails_by_itself_is_not_started_again(self):
        done = self.run_tool("train", "static.json", "--data", "data.tsv", "-o", self.folder / "run", "--learning-rate", 1e6, "--gradient-clip", 0, code=1)
        self.assertIn("diverged", done.stderr)
        self.assertNotIn("restart", done.stderr)


class LossBehindTheLastStepTest(RecoveryCase):
    OPTIONS = ("--epochs", 2, "--test-data", "many.tsv")  # whose last evaluation takes long enough to be hit

    def make_elastic_plan(self):
        """Replicas throughout, which freeze and cache: whoever is left has the whole model, and no step is done again."""
        tiny_model.write_data(self.folder / "many.tsv", 30000)
        plan = self.read("data-parallel.json")
        limits = {"dtype": "float32", "memory_bytes": 1 << 20, "disk_bytes": 0}
        cached = {**plan["phases"][0], "from_step": 5, "first_trainable_layer": 5, "cache": {"on": True, "found": []}}
        plan.update(method="pipetransformer", cache=limits, phases=[plan["phases"][0], cached])
        self.write("elastic.json", plan)

    def test_the_one_that_is_left_evaluates_and_saves(self):
        """Behind the last step nothing computes with gradients any more: steps and weights equal the undisturbed run's to the bit."""
        self.make_elastic_plan()
        reference, weights = self.reference("elastic.json", *self.OPTIONS)
        for victim in (0, 1):
            with self.subTest(victim=victim):
                launcher = self.start(*self.train_arguments("elastic.json", "run", *self.OPTIONS))
                self.wait_until(lambda: " 100 %  step" in launcher.stderr or launcher.ended_within(0) is not None, HANG_SECONDS, lambda: launcher.stderr)
                os.kill(self.ranks_of(launcher)[victim], signal.SIGKILL)
                run = self.assert_ended_well(launcher)
                self.assertEqual([(one["step"], one["lost_steps"], one["world_size"]) for one in run["recoveries"]], [(reference["num_steps"], 0, 1)], launcher.stderr)
                self.assertEqual([step["loss"] for step in run["steps"]], [step["loss"] for step in reference["steps"]])
                self.assertEqual((self.folder / "run/model/model.safetensors").read_bytes(), weights)
                self.assertEqual(run["evaluations"][-1]["step"], reference["num_steps"])
                self.run_tool("compare", "elastic.json", "run/summary.json")
                shutil.rmtree(self.folder / "run")


class LongLostRankTest(LostRankTest):
    epochs = EPOCHS

    test_a_spare_restores_the_layout_from_a_checkpoint = None
    test_a_replica_gives_what_was_lost_and_no_step_is_done_again = None
    test_a_rank_is_lost_before_the_others_have_joined = None
    test_a_rank_that_fails_by_itself_is_not_started_again = None

    def test_without_a_spare_fewer_ranks_go_on(self):
        reference, weights = self.reference("static.json", "--epochs", EPOCHS)
        run, launcher = self.lose(1, "static.json", "--checkpoint-steps", 20)
        self.assertIn("1 rank goes on", launcher.stderr)
        self.assertEqual(run["phases"][-1]["stages"], 1)
        self.assert_same_run(run, reference, weights, bits=False)
        compared = self.run_tool("compare", "static.json", "run/summary.json", "-o", "compared.json").stdout
        self.assertRegex(compared, r"static_pipeline +\d+ +\d+ +0 +1 x 1")

    def test_losses_in_a_run_that_freezes_and_caches(self):
        plan = "pipetransformer.json"
        reference, weights = self.reference(plan, "--epochs", EPOCHS)
        run, _ = self.lose(1, plan, "--checkpoint-steps", 30, "--spares", 1, steps=30)
        self.assert_same_run(run, reference, weights, bits=False)  # what was cached, and what is computed again, differ by rounding: other samples beside them
        self.assertEqual(run["phases"][-1]["frozen_layers"], reference["phases"][-1]["frozen_layers"])


    def test_fewer_ranks_freeze_at_the_step_of_the_plan(self):
        """What the cache would hold if nothing more froze changes at every epoch's end, and so behind the next freeze
        too. Oracle: how many blocks are frozen at each step; and the losses, as long as training has not amplified that
        one rank adds gradients in another order than two (1e-7 then, 2e-6 after 30 more steps, 1e-3 after 100)."""
        tiny_model.write_data(self.folder / "long.tsv", 3200)  # 160 steps an epoch
        plan = self.read("pipetransformer.json")
        phase = self.read("data-parallel.json")["phases"][0]
        cached = {**phase, "cache": {"on": True, "found": []}}
        plan["phases"] = [phase, {**cached, "from_step": 10, "first_trainable_layer": 5},
                          {**cached, "from_step": 150, "first_trainable_layer": 7}]
        self.write("freezing.json", plan)
        self.of_length("freezing.json", 320)
        reference = self.train("freezing.json", "reference", data="long.tsv")
        launcher = self.start(*self.train_arguments("freezing.json", "run", data="long.tsv"))
        scalars = self.folder / "run/scalars.jsonl"
        self.wait_until(lambda: scalars.exists() and scalars.read_text().count("\n") > 20, HANG_SECONDS, lambda: launcher.stderr)
        os.kill(self.ranks_of(launcher)[1], signal.SIGKILL)
        run = self.assert_ended_well(launcher)
        self.assertEqual([recovery["world_size"] for recovery in run["recoveries"]], [1], launcher.stderr)
        lost_at = run["recoveries"][0]["step"]
        self.assertLess(lost_at, 100)
        self.assert_losses_equal(run, reference, lost_at + 30, 1e-4)
        frozen_at = {line["step"]: line["frozen_layers"] for line in map(json.loads, scalars.read_text().splitlines())
                     if "frozen_layers" in line}
        self.assertEqual(frozen_at, {step: 0 if step <= 10 else 2 if step <= 150 else 3 for step in range(1, 321)})


class InterruptedCase(RecoveryCase):
    def interrupt(self, plan, *options, steps=None):
        """Kills the launcher of a run with checkpoints, once there is one: all of it is gone at once."""
        launcher = self.start_until(steps or 8 * self.epochs // 3, plan, "--epochs", self.epochs, "--checkpoint-steps", 10, *options, name="interrupted")
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

    def test_one_run_at_a_time_writes_into_a_folder(self):
        """The second start is told who is there, and the first goes on. Killed, it holds nobody up."""
        long = ("--epochs", 100 * EPOCHS)
        launcher = self.start_until(5, "static.json", *long)
        for options in ((), ("--overwrite", "--resume", "no")):
            done = self.run_tool(*self.train_arguments("static.json", "run", *long, *options), code=1, timeout=LIMIT_SECONDS)
            self.assertRegex(done.stderr, rf"/run: is being written by process {launcher.pid} on host \S+, since 2\d\d\d-")
        self.assertIsNone(launcher.ended_within(0), launcher.stderr)
        os.kill(launcher.pid, signal.SIGKILL)
        launcher.process.wait()
        again = self.start(*self.train_arguments("static.json", "run", *long), name="again")
        self.wait_until(lambda: "train " in again.stderr or again.ended_within(0) is not None, HANG_SECONDS, lambda: again.stderr)
        self.assertIsNone(again.ended_within(0), again.stderr)

    def test_a_signal_ends_the_run_with_a_checkpoint(self):
        """Exit code 128 + signal, nothing of the work is lost, and the next start ends to the bit as the run that nobody
        ended. Ranks that the terminal interrupts too do not mind."""
        for plan, number, send in (("static.json", signal.SIGINT, os.killpg), ("data-parallel.json", signal.SIGTERM, os.kill)):
            with self.subTest(plan):
                reference, weights = self.reference(plan, "--epochs", self.epochs)
                launcher = self.start_until(50, plan, "--epochs", self.epochs, "--checkpoint-minutes", 0)
                send(launcher.pid, number)
                self.assertEqual(launcher.ended_within(LIMIT_SECONDS), 128 + number, launcher.stderr)
                self.assertNotRegex(launcher.stderr, NOT_FOR_USERS)
                self.assert_no_process_within(1)
                last = launcher.stderr.splitlines()[-1]
                self.assertRegex(last, rf"^frostpipe: stopped before step \d+ of {10 * self.epochs}: the same command again goes on from step \d+$")
                self.assertFalse((self.folder / "run/summary.json").exists())
                step = int(last.split()[-1])
                self.assertEqual([path.name for path in (self.folder / "run/checkpoints").iterdir()], [f"step-{step:08}"])
                # All that was done: no step has figures and is not in the checkpoint.
                self.assertEqual(max(json.loads(line)["step"] for line in (self.folder / "run/steps.jsonl").read_text().splitlines()), step - 1)
                run = self.resume(plan)
                self.assertEqual([recovery["step"] for recovery in run["recoveries"]], [step])
                self.assert_same_run(run, reference, weights)
                shutil.rmtree(self.folder / "run")

    def test_a_checkpoint_holds_no_figures_of_steps_but_the_last(self):
        run = self.train("static.json", "run", "--epochs", 2, "--checkpoint-steps", 5)
        for checkpoint in (self.folder / "run/checkpoints").iterdir():
            moment = self.read(checkpoint / "run.json")
            done = int(checkpoint.name[5:])
            self.assertEqual(moment["steps"], run["steps"][done - 1 : done])
            self.assertEqual(sum(phase["num_steps"] for phase in moment["phases"]), done)
        self.assertEqual([json.loads(line) for line in (self.folder / "run/steps.jsonl").read_text().splitlines()], run["steps"])

    def test_another_runs_checkpoint_is_refused_by_name(self):
        self.interrupt("static.json")
        shutil.copytree(self.folder / "run/checkpoints", self.folder / "saved")
        for option, value, difference in (("--seed", 7, "(data_fingerprint|seed): .* in the checkpoint, .* now"),
                                          ("--weight-decay", 0.1, "weight_decay: 0.01 in the checkpoint, 0.1 now"),
                                          ("--dropout", 0.1, "dropout: 0.0 in the checkpoint, 0.1 now"),
                                          ("--decay", "cosine", 'decay: "linear" in the checkpoint, "cosine" now'),
                                          ("--label-smoothing", 0.2, "label_smoothing: 0.0 in the checkpoint, 0.2 now")):
            named = ("other", "--resume", "saved") if option == "--dropout" else ("run",)  # by its folder, and by itself
            with self.subTest(option):
                done = self.run_tool(*self.train_arguments("static.json", *named, "--epochs", self.epochs, option, value), code=1)
                self.assertRegex(done.stderr, rf"{named[-1]}.*/step-\d+: is of another run: {difference}.*--resume no")
        run = self.train("static.json", "run", "--epochs", 1, "--resume", "no")
        self.assertEqual(run["num_steps"], 10)
        self.assertNotIn("recoveries", run)

    def test_a_folder_that_takes_no_checkpoints_costs_only_them(self):
        self.write("run/checkpoints", "a file")
        done = self.run_tool(*self.train_arguments("static.json", "run", "--epochs", 3, "--checkpoint-steps", 10))
        self.assertRegex(done.stderr, r"the checkpoint of step 10 was not written: .*; training goes on")
        self.assertTrue((self.folder / "run/summary.json").exists())

    def test_inspect_shows_what_is_there(self):
        self.train("static.json", "run", "--epochs", 2, "--checkpoint-steps", 5)
        shown = self.run_tool("inspect", "run").stdout
        self.assertRegex(shown, r"step \d+ of 20, loss [\d.]+")
        self.assertEqual(shown.count("first_moment, second_moment, weights"), 10)
        self.assertEqual(json.loads(self.run_tool("inspect", "run", "--format", "json").stdout)["faults"], [])
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
        self.assertRegex(done.stderr, r"a checkpoint is passed over: .*layer-003\.safetensors")
        self.assert_same_run(self.read("run/summary.json"), reference, weights)

    def test_damaged_checkpoints_alone_are_not_thrown_away(self):
        self.interrupt("static.json")
        checkpoints = sorted((self.folder / "run/checkpoints").glob("step-????????"))
        for checkpoint in checkpoints:
            (checkpoint / "checkpoint.json").write_text("{")
        self.assert_refused(*self.train_arguments("static.json", "run", "--epochs", EPOCHS), says=["no checkpoint of it is whole", "--resume no"])
        self.assertTrue(all(checkpoint.exists() for checkpoint in checkpoints))
        self.assertEqual(self.train("static.json", "run", "--epochs", 1, "--resume", "no")["num_steps"], 10)

    def test_rules_that_look_at_gradients_go_on_to_the_bit(self):
        for rule in ("paper", "adaptive"):
            with self.subTest(rule):
                options = ("--freeze", rule, "--freeze-warm-up", 0.1)
                reference, weights = self.reference("static.json", "--epochs", EPOCHS, *options)
                self.interrupt("static.json", *options, steps=120)
                run = self.resume("static.json", *options)
                self.assertEqual([phase["frozen_layers"] for phase in reference["phases"]][-1], run["phases"][-1]["frozen_layers"])
                self.assert_same_run(run, reference, weights)
                shutil.rmtree(self.folder / "run")

    def test_another_layout_schedule_or_world_goes_on(self):
        reference, weights = self.reference("static.json", "--epochs", EPOCHS)
        fixed = ["--global-batch", 16, "--epochs", 6, "--profile", "profile.json"]
        self.run_tool("plan", *fixed, "--cluster", "cluster.json", "--method", "static", "--pp", 2, "--schedule", "GPipe", "--fix", "m=4", "-o", "gpipe.json")
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
                self.assertTrue(any((self.folder / "saved/checkpoints").glob("step-*")), "another run's checkpoints stay")

    def test_layers_freeze_and_train_again_with_their_moments(self):
        """A run that froze half its layers goes on with nothing frozen, and the other way round."""
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


class GuardTest(RecoveryCase):
    def test_a_freeze_that_costs_accuracy_is_taken_back(self):
        """Labels that mean nothing: what the test accuracy does is chance, and with a tolerance of 0 one freeze or another is followed by a fall. The steps done again are, to the bit,
        those of a run that never froze."""
        header, *rows = (self.folder / "data.tsv").read_text().splitlines()
        labels = [row.split("\t")[1] for row in rows]
        random.Random(1).shuffle(labels)
        self.write("noise.tsv", "\n".join([header, *(f"{row.split(chr(9))[0]}\t{label}" for row, label in zip(rows, labels))]) + "\n")
        options = ("train", self.of_length("static.json", 200), "--data", "noise.tsv")
        for rate, warm_up in ((0.001, 0.1), (0.001, 0.3), (0.005, 0.5), (0.003, 0.3), (0.01, 0.1)):
            for folder in ("run", "never"):
                shutil.rmtree(self.folder / folder, ignore_errors=True)
            freezing = ("--freeze", "fixed:2", "--freeze-warm-up", warm_up, "--freeze-interval", 0.15, "--accuracy-guard", 0)
            done = self.run_tool(*options, "--learning-rate", rate, "-o", self.folder / "run", *freezing)
            run = self.read("run/summary.json")
            self.assertEqual([step["step"] for step in run["steps"]], list(range(200)))
            taken_back = [one for one in run.get("recoveries", []) if "before the freeze" in one["cause"]]
            if taken_back:
                break
        self.assertTrue(taken_back, done.stderr)
        self.assertIn("the freeze is taken back, nothing freezes before step", done.stderr)
        self.run_tool(*options, "--learning-rate", rate, "-o", self.folder / "never")
        never = self.read("never/summary.json")
        frozen_from = next((phase["from_step"] for phase in run["phases"] if phase["frozen_layers"] > 0), 200)
        self.assertGreaterEqual(frozen_from, taken_back[0]["step"] + taken_back[0]["lost_steps"])
        self.assertEqual([step["loss"] for step in run["steps"][:frozen_from]], [step["loss"] for step in never["steps"][:frozen_from]])


class ChaosTest(RecoveryCase):
    """Signals at random moments, to ranks at random, of jobs that do little else than what is to be hit: computing, sending and reducing; writing checkpoints; changing their
    layout; filling the cache."""

    def jobs(self):
        changing = self.read("static.json")
        other = self.read("data-parallel.json")["phases"][0]
        changing["phases"] = [{**(changing["phases"][0] if i % 2 == 0 else other), "from_step": 3 * i} for i in range(10 * EPOCHS // 3)]
        changing["num_steps"] = 10 * EPOCHS
        self.write("changing.json", changing)
        return [("static.json", "--checkpoint-steps", 25), ("data-parallel.json", "--checkpoint-steps", 100), ("static.json", "--checkpoint-steps", 1),
                ("changing.json", "--checkpoint-steps", 20), ("pipetransformer.json", "--checkpoint-steps", 10)]

    def four_ranks(self):
        """Pipelines with replicas, which lose half of their stages when layers freeze: most of what a rank holds is with another one too."""
        plan = self.read("static.json")
        phase = {**plan["phases"][0], "predicted": {**plan["phases"][0]["predicted"], "peak_memory_bytes": []}}
        halves = {**phase, "partition": [{"begin": 0, "end": 5}, {"begin": 5, "end": 10}], "num_micro_batches": 2,
                  "layout": {"pipeline_parallel_size": 2, "data_parallel_size": 2, "tensor_parallel_size": 1, "placement": []}}
        whole = {**phase, "partition": [{"begin": 0, "end": 10}], "from_step": 5 * EPOCHS, "first_trainable_layer": 3, "num_micro_batches": 1,
                 "layout": {"pipeline_parallel_size": 1, "data_parallel_size": 4, "tensor_parallel_size": 1, "placement": []}}
        plan.update(world_size=4, memory_limited=False, num_steps=10 * EPOCHS, phases=[halves, whole])
        self.write("four.json", plan)
        cluster = self.read("cluster.json")
        cluster["devices"] = cluster["devices"] * 2
        self.write("four-ranks.json", cluster)
        return [("four.json", "--checkpoint-steps", 40, "--cluster", "four-ranks.json")]

    def recoveries_of(self, launcher, plan, index, num_ranks):
        """Of a run that was hit, which must end as the one that was not."""
        code = launcher.ended_within(LIMIT_SECONDS + 30)
        # Hit while the others were ending, the run ends with a sentence, and the next start finishes it.
        if code == 1 and "while the others were ending" in launcher.stderr:
            launcher = self.start(*self.train_arguments(plan, "run", "--epochs", EPOCHS, "--overwrite"), name=f"again-{index}")
        run = self.assert_ended_well(launcher)
        recoveries = run.get("recoveries", [])
        same_layout = all(recovery["world_size"] == num_ranks for recovery in recoveries)
        reference, weights = self.reference(plan, "--epochs", EPOCHS)
        self.assert_same_run(run, reference, weights, bits=same_layout and not (recoveries and self.caches(plan)))
        return recoveries

    def run_chaos(self, count, seed, number, jobs=None, num_ranks=2):
        numbers = random.Random(seed)
        spares_to_have = (0, 1) if jobs is None else (1,)
        jobs = jobs or self.jobs()
        slowest, sources = 0.0, {}
        for index in range(count):
            plan, *options = jobs[index % len(jobs)]
            spares = numbers.choice(spares_to_have)
            self.reference(plan, "--epochs", EPOCHS)  # before the machine has another run to do
            launcher = self.start_until(1, plan, "--epochs", EPOCHS, *options, "--spares", spares, name=f"launcher-{index}")
            time.sleep(numbers.uniform(0, 2.0 if num_ranks == 2 else 6.0))
            ranks = {rank: pid for rank, pid in self.ranks_of(launcher).items() if rank is not None and rank < num_ranks}
            what = f"{index}: {plan} {options}, {spares} spares"
            if ranks:
                victim = numbers.choice(sorted(ranks))
                what += f", {number.name} to rank {victim}"
                try:
                    os.kill(ranks[victim], number)
                except ProcessLookupError:
                    pass
            with self.subTest(what):
                try:
                    recoveries = self.recoveries_of(launcher, plan, index, num_ranks)
                except Exception as error:  # said at once: hours of others may follow, or be interrupted
                    print(f"\n{what}: FAILED\n{str(error)[:2000]}\n{launcher.stderr}", file=sys.stderr, flush=True)
                    self.end_every_process()
                    raise
                for recovery in recoveries:
                    sources[recovery["source"].split(" step-")[0]] = sources.get(recovery["source"].split(" step-")[0], 0) + 1
                    slowest = max(slowest, (recovery["detection_ns"] + recovery["forming_ns"] + recovery["restoring_ns"]) / 1e9)
            shutil.rmtree(self.folder / "run", ignore_errors=True)
        print(f"\n{count} times {number.name}: recovered from {sources}; slowest recovery {slowest:.2f} s", file=sys.stderr)

    def test_100_kills(self):
        self.run_chaos(int(os.environ.get("FROSTPIPE_KILLS", 100)), 1, signal.SIGKILL)

    def test_30_kills_of_four_ranks(self):
        self.run_chaos(int(os.environ.get("FROSTPIPE_KILLS", 30)), 3, signal.SIGKILL, self.four_ranks(), num_ranks=4)

    def test_10_stops(self):
        self.run_chaos(int(os.environ.get("FROSTPIPE_STOPS", 10)), 2, signal.SIGSTOP)


if __name__ == "__main__":
    unittest.main()
