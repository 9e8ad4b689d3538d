"""Ranks are lost during a run: the others continue, with a spare, with a replica, or with fewer ranks."""

import json
import os
import shutil
import signal
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import tiny_model
from end_to_end import DATA_SAMPLES, HANG_SECONDS
from recovery import EPOCHS, FEWER_EPOCHS, RecoveryCase


class LostRankTest(RecoveryCase):
    epochs = FEWER_EPOCHS

    def lose(self, victim, plan, *options, steps=None, number=signal.SIGKILL):
        options = ("--epochs", self.epochs, *options)
        launcher = self.start_until(steps or 10 * self.epochs // 4, plan, *options)
        os.kill(self.ranks_of(launcher)[victim], number)
        run = self.assert_ended_well(launcher)
        self.assertEqual(len(run["recoveries"]), 1, launcher.stderr)
        self.assertEqual([path for path in (self.folder / "run").rglob("*") if ".part" in path.name
                          or ".written" in path.name], [])
        return run, launcher

    def kill(self, launcher, victims):
        ranks = self.ranks_of(launcher)
        for victim in victims:
            os.kill(ranks[victim], signal.SIGKILL)

    def test_a_spare_restores_the_layout_from_a_checkpoint(self):
        reference, weights = self.reference("static.json", "--epochs", self.epochs)
        for victim in (0, 1):
            with self.subTest(victim=victim):
                run, launcher = self.lose(victim, "static.json", "--checkpoint-every", 20, "--spares", 1)
                self.assertRegex(launcher.stderr, rf"rank {victim} \(process \d+\) was killed by signal 9 .*a spare "
                                                  "takes the place")
                self.assertRegex(run["recoveries"][0]["source"], "checkpoint step-|the beginning")
                self.assert_same_run(run, reference, weights)
                shutil.rmtree(self.folder / "run")

    def test_a_replica_gives_what_was_lost_and_no_step_is_done_again(self):
        reference, weights = self.reference("data-parallel.json", "--epochs", self.epochs)
        run, _ = self.lose(0, "data-parallel.json", "--spares", 1)
        # If the loss hit one rank before and the other after its update, their layers are from different steps.
        if run["recoveries"][0]["source"] == "the survivors' memory":
            self.assertEqual(run["recoveries"][0]["lost_steps"], 0)
        self.assert_same_run(run, reference, weights)

    def test_a_rank_is_lost_before_the_others_have_joined(self):
        """The others lose their connection to the rank, and join the next round."""
        started = self.start(*self.train_arguments("static.json", "run", "--epochs", 1, "--spares", 1))
        self.wait_until(lambda: 1 in self.ranks_of(started), HANG_SECONDS, "rank 1 was not started")
        os.kill(self.ranks_of(started)[1], signal.SIGKILL)
        run = self.assert_ended_well(started)
        self.assertEqual([recovery["world_size"] for recovery in run["recoveries"]], [2], started.stderr)
        self.assertNotIn("did not stop", started.stderr)

    def test_a_loss_before_the_first_step_continues_no_other_run(self):
        """Ranks are lost before they have loaded anything, in a folder with checkpoints of a run that has ended.
        Oracle: the undisturbed run in an empty folder."""
        reference, weights = self.reference("static.json", "--epochs", 1, "--seed", 7)
        for victims, options in (([1], ()), ([0, 1], ("--resume", "no"))):
            with self.subTest(victims=victims):
                self.train("static.json", "run", "--epochs", 1, "--checkpoint-every", 5, "--overwrite")
                started = self.start(*self.train_arguments("static.json", "run", "--epochs", 1, "--seed", 7,
                                                           "--spares", 2, "--overwrite", *options))
                self.wait_until(lambda: all(victim in self.ranks_of(started) for victim in victims), HANG_SECONDS,
                                "the ranks were not started")
                self.kill(started, victims)
                run = self.assert_ended_well(started)
                self.assertEqual([one["source"] for one in run["recoveries"]], ["the beginning"], started.stderr)
                self.assert_same_run(run, reference, weights)

    def test_a_loss_goes_back_to_the_other_run_from_which_this_one_began(self):
        """The run has no checkpoint of its own yet. Even if no rank is left that has seen the other run, spares know
        it. Oracle: the undisturbed run."""
        reference, weights = self.reference("static.json", "--epochs", self.epochs)
        self.train("static.json", "first", "--epochs", self.epochs, "--checkpoint-every", 50)
        for victims in ([1], [0, 1]):
            with self.subTest(victims=victims):
                launcher = self.start_until(10, "static.json", "--epochs", self.epochs, "--checkpoint-every", 0,
                                            "--spares", 2, "--resume", "first/checkpoints/step-00000050")
                self.kill(launcher, victims)
                run = self.assert_ended_well(launcher)
                self.assertEqual(run["recoveries"][-1]["source"], "checkpoint step-00000050", launcher.stderr)
                self.assert_same_run(run, reference, weights)
                shutil.rmtree(self.folder / "run")

    def test_a_rank_that_fails_by_itself_is_not_started_again(self):
        done = self.run_tool("train", "static.json", "--data", "data.tsv", "-o", self.folder / "run",
                             "--learning-rate", 1e6, "--gradient-clip", 0, code=1)
        self.assertIn("diverged", done.stderr)
        self.assertNotIn("restart", done.stderr)


class LossInAnEvaluationTest(RecoveryCase):
    OPTIONS = ("--epochs", 2, "--test-data", "many.tsv")  # its evaluations take long enough to be hit

    def freezing_plan(self, from_step, caches=True):
        """The name of a plan that only has replicas, with freezing and perhaps a cache: each remaining rank has the
        whole model, and no step is repeated."""
        tiny_model.write_data(self.folder / "many.tsv", 30000)
        plan = self.read("data-parallel.json")
        limits = {"dtype": "float32", "memory_bytes": 1 << 20, "disk_bytes": 0}
        cached = {**plan["phases"][0], "from_step": from_step, "first_trainable_layer": 5,
                  "cache": {"on": caches, "found": []}}
        plan.update(method="pipetransformer", cache=limits, phases=[plan["phases"][0], cached])
        name = f"freezes-before-{from_step}.json"
        self.write(name, plan)
        return name

    def test_the_one_that_is_left_evaluates_and_saves(self):
        """After the last step gradients are not computed any more, so steps and weights are bitwise equal to the
        undisturbed run's. With a cache they are not: it depends on timing whether a sample that comes again in the very
        next step is already found, and cached activations were computed in a batch with other samples."""
        plan = self.freezing_plan(5, caches=False)
        reference, weights = self.reference(plan, *self.OPTIONS)
        for victim in (0, 1):
            with self.subTest(victim=victim):
                launcher = self.start(*self.train_arguments(plan, "run", *self.OPTIONS))
                self.wait_until(lambda: " 100 %  step" in launcher.stderr or launcher.ended_within(0) is not None,
                                HANG_SECONDS, lambda: launcher.stderr)
                os.kill(self.ranks_of(launcher)[victim], signal.SIGKILL)
                run = self.assert_ended_well(launcher)
                self.assertEqual([(one["step"], one["lost_steps"], one["world_size"]) for one in run["recoveries"]],
                                 [(reference["num_steps"], 0, 1)], launcher.stderr)
                self.assertEqual([step["loss"] for step in run["steps"]], [step["loss"] for step in reference["steps"]])
                self.assertEqual((self.folder / "run/model/model.safetensors").read_bytes(), weights)
                self.assertEqual(run["evaluations"][-1]["step"], reference["num_steps"])
                self.run_tool("compare", plan, "run/summary.json")
                shutil.rmtree(self.folder / "run")

    def test_a_loss_exactly_before_a_freeze_undoes_no_step(self):
        """The loss comes in the evaluation of the first epoch, after which the plan freezes. Oracle: the steps at which
        blocks are frozen, and the losses except for the order in which one rank adds gradients. The accuracy guard
        watches the freeze at the right step."""
        epoch = -(-DATA_SAMPLES // self.read("data-parallel.json")["global_batch_size"])
        plan = self.freezing_plan(epoch)
        reference, _ = self.reference(plan, *self.OPTIONS)
        for options in ((), ("--checkpoint-every", epoch // 2), ("--accuracy-guard", 100)):
            with self.subTest(options=options):
                launcher = self.start_until(epoch, plan, *self.OPTIONS, *options)
                os.kill(self.ranks_of(launcher)[1], signal.SIGKILL)
                run = self.assert_ended_well(launcher)
                self.assertEqual([(one["step"], one["lost_steps"], one["source"]) for one in run["recoveries"]],
                                 [(epoch, 0, "the survivors' memory")], launcher.stderr)
                self.assert_losses_equal(run, reference, 2 * epoch, 1e-4)
                self.assertEqual([(phase["from_step"], phase["frozen_blocks"]) for phase in run["phases"]],
                                 [(0, 0), (epoch, 2)])
                if "--accuracy-guard" in options:
                    baseline = self.read(f"run/checkpoints/step-{epoch:08}/checkpoint.json")
                    self.assertEqual(baseline["watched_step"], epoch)
                shutil.rmtree(self.folder / "run")


class LongLostRankTest(LostRankTest):
    epochs = EPOCHS

    test_a_spare_restores_the_layout_from_a_checkpoint = None
    test_a_replica_gives_what_was_lost_and_no_step_is_done_again = None
    test_a_rank_is_lost_before_the_others_have_joined = None
    test_a_loss_before_the_first_step_continues_no_other_run = None
    test_a_loss_goes_back_to_the_other_run_from_which_this_one_began = None
    test_a_rank_that_fails_by_itself_is_not_started_again = None

    def test_without_a_spare_fewer_ranks_go_on(self):
        reference, weights = self.reference("static.json", "--epochs", EPOCHS)
        run, launcher = self.lose(1, "static.json", "--checkpoint-every", 20)
        self.assertIn("1 rank goes on", launcher.stderr)
        self.assertEqual(run["phases"][-1]["stages"], 1)
        self.assert_same_run(run, reference, weights, bits=False)
        compared = self.run_tool("compare", "static.json", "run/summary.json", "-o", "compared.json").stdout
        self.assertRegex(compared, r"static_pipeline +\d+ +\d+ +0 +1 x 1")

    def test_losses_in_a_run_that_freezes_and_caches(self):
        plan = "pipetransformer.json"
        reference, weights = self.reference(plan, "--epochs", EPOCHS)
        run, _ = self.lose(1, plan, "--checkpoint-every", 30, "--spares", 1, steps=30)
        # Cached and recomputed activations differ by rounding, since they were computed with different other samples.
        self.assert_same_run(run, reference, weights, bits=False)
        self.assertEqual(run["phases"][-1]["frozen_blocks"], reference["phases"][-1]["frozen_blocks"])


    def test_fewer_ranks_freeze_at_the_step_of_the_plan(self):
        """The expected content of the cache changes at every epoch's end, also after the next freeze. Oracle: the
        number of frozen blocks at each step, and the losses, as long as training has not amplified the different order
        in which one rank and two ranks add gradients (1e-7 then, 2e-6 after 30 more steps, 1e-3 after 100)."""
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
        self.wait_until(lambda: scalars.exists() and scalars.read_text().count("\n") > 20, HANG_SECONDS,
                        lambda: launcher.stderr)
        os.kill(self.ranks_of(launcher)[1], signal.SIGKILL)
        run = self.assert_ended_well(launcher)
        self.assertEqual([recovery["world_size"] for recovery in run["recoveries"]], [1], launcher.stderr)
        lost_at = run["recoveries"][0]["step"]
        self.assertLess(lost_at, 100)
        self.assert_losses_equal(run, reference, lost_at + 30, 1e-4)
        frozen_at = {line["step"]: line["frozen_blocks"] for line in map(json.loads, scalars.read_text().splitlines())
                     if "frozen_blocks" in line}
        self.assertEqual(frozen_at, {step: 0 if step <= 10 else 2 if step <= 150 else 3 for step in range(1, 321)})


if __name__ == "__main__":
    unittest.main()
