"""Layers split over tensor ranks. Oracles: the run of one process without tensor ranks (losses within float32
rounding), and the uninterrupted run of the same layouts, bitwise."""

import json
import os
import shutil
import signal
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import recovery
from end_to_end import HANG_SECONDS
from faults import free_port
from layouts import in_layout

NUM_STEPS = 20
SPLIT = "sequence parallelism"
ROUNDING = 1e-5  # relative error of losses over NUM_STEPS steps
AFTER_A_LOSS = 1e-3  # the same over ten times as many steps


class TensorParallelCase(recovery.RecoveryCase):
    def plan(self, name, *phases, num_steps=NUM_STEPS, cache=False):
        """`phases`: (from step, first trainable layer, p, d, t), and SPLIT for sequence parallelism; all use the same
        ranks. Returns train's options."""
        plan = self.read(self.of_length("static.json", num_steps))
        only = plan["phases"][0]
        world = max(p * d * t for _, _, p, d, t, *_ in phases)
        plan.update(world_size=world, phases=[], cache={"dtype": "float32", "memory_bytes": 1 << 20, "disk_bytes": 0})
        for from_step, first_trainable, p, d, t, *split in phases:
            plan["phases"].append({
                **in_layout(only, p, d, t, bool(split)), "from_step": from_step,
                "first_trainable_layer": first_trainable, "cache": {"on": cache and first_trainable > 0, "found": []}})
        self.write(name, plan)
        cluster = self.read("cluster.json")
        cluster["devices"] = cluster["devices"][:1] * world
        self.write(f"cluster-{world}.json", cluster)
        return ["--cluster", f"cluster-{world}.json", "--dropout", 0.1]

    def run_of(self, name, *phases, more=(), cache=False, output=None):
        options = self.plan(f"{name}.json", *phases, cache=cache)
        return self.train(f"{name}.json", output or name, *options, *more)

    def evaluation(self, run):
        done = self.run_tool("evaluate", "--model", f"{run}/model", "--data", "data.tsv", "--format", "json")
        return {key: value for key, value in json.loads(done.stdout).items() if key != "samples_per_second"}


class TensorParallelTest(TensorParallelCase):
    def test_layouts_with_tensor_ranks_train_as_one_process(self):
        one = self.run_of("one", (0, 0, 1, 1, 1))
        for p, d, t, *split in ((1, 1, 2), (2, 1, 2), (1, 2, 2), (2, 1, 2, SPLIT)):
            name = f"p{p}d{d}t{t}{len(split)}"
            run = self.run_of(name, (0, 0, p, d, t, *split))
            self.assert_losses_equal(run, one, NUM_STEPS, ROUNDING)
            self.assertEqual([phase["tensor_ranks"] for phase in run["phases"]], [2])
            self.assertEqual(run["test_accuracy"], one["test_accuracy"])
            self.assertEqual(self.evaluation(name), self.evaluation("one"))

    def test_frozen_layers_and_the_cache_are_shared(self):
        phases = [(0, 0), (8, 5)]
        one = self.run_of("one", *[(*phase, 1, 1, 1) for phase in phases], cache=True)
        self.assertGreater(one["phases"][1]["cache_hit_fraction"], 0)
        for name, *split in (("two",), ("split", SPLIT)):
            run = self.run_of(name, *[(*phase, 2, 1, 2, *split) for phase in phases], cache=True)
            self.assert_losses_equal(run, one, NUM_STEPS, ROUNDING)
            # A sample of the last step of an epoch and the first of the next one may be read before it is written.
            self.assertAlmostEqual(run["phases"][1]["cache_hit_fraction"], one["phases"][1]["cache_hit_fraction"],
                                   delta=2 / 192)

    def test_the_number_of_tensor_ranks_changes_during_a_run_and_at_a_resume(self):
        phases = [(0, 0, 2, 1, 2), (6, 3, 1, 2, 2, SPLIT), (12, 5, 1, 4, 1), (16, 7, 2, 1, 2, SPLIT)]
        one = self.run_of("one", *[(*phase[:2], 1, 1, 1) for phase in phases])
        run = self.run_of("live", *phases, more=("--checkpoint-every", 3, "--keep-checkpoints", 9))
        self.assert_losses_equal(run, one, NUM_STEPS, ROUNDING)
        # A checkpoint is skipped while a rank still writes the previous one, so on a slow disk one may be missing.
        written = [step for step in (6, 9, 15) if (self.folder / f"live/checkpoints/step-{step:08}").exists()]
        self.assertTrue(written)
        for step in written:
            resume = ("--resume", f"live/checkpoints/step-{step:08}")
            again = self.run_of("live", *phases, more=resume, output=f"again-{step}")
            self.assertEqual(self.losses(again), self.losses(run), step)
            other = self.run_of("one", *[(*phase[:2], 1, 1, 1) for phase in phases], more=resume,
                                output=f"other-{step}")
            self.assert_losses_equal(other, one, NUM_STEPS, ROUNDING)

    def test_under_another_launcher_the_bits_are_the_same(self):
        """Four ranks, whose sums depend on the order, with whole activations and with sequence parallelism."""
        options = self.plan("four.json", (0, 0, 1, 2, 2), (10, 0, 1, 2, 2, SPLIT))
        ours = self.train("four.json", "ours", *options)
        port = free_port()
        ranks = [self.start(*self.train_arguments("four.json", "theirs", *options), name=f"rank{rank}", RANK=rank,
                            LOCAL_RANK=rank, WORLD_SIZE=4, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
                 for rank in range(4)]
        for rank in ranks:
            self.assertEqual(rank.ended_within(HANG_SECONDS), 0, rank.stderr)
        self.assertEqual(self.losses(self.read("theirs/summary.json")), self.losses(ours))

    def peaks(self, *options):
        """
        Bytes of each of two tensor ranks, measured and predicted. The number of micro-batches is given, since the
        measured times would choose it, and peaks of different micro-batches cannot be compared.
        """
        self.run_tool("plan", "--profile", "two-profile.json", "--cluster", "two.json", "--global-batch", 16,
                      "--method", "static", "--fix", "tp=2", "--fix", "m=4", *options, "--steps", NUM_STEPS,
                      "-o", "two.plan.json")
        [planned] = self.read("two.plan.json")["phases"]
        self.assertEqual(planned["layout"].get("sequence_parallel", False), "--sequence-parallel" in options)
        [phase] = self.train("two.plan.json", "two", "--overwrite")["phases"]
        self.assertEqual(phase["tensor_ranks"], 2)
        return list(zip(phase["measured_peak_memory_bytes"], planned["predicted"]["peak_memory_bytes"], strict=True))

    def test_measured_tensor_ranks_are_planned_and_trained(self):
        profile = ["profile", "--model", "model", "--data", "data.tsv", "--global-batch", 16, "--quick",
                   "--cluster", "two.json", "-o", "two-profile.json"]
        self.run_tool(*profile, "--tensor-parallel", 2, "--sequence-parallel")
        keys = [measurement["key"] for measurement in self.read("two-profile.json")["measurements"]]

        def measured(t, split):
            return [{**key, "tensor_parallel_size": 1, "sequence_parallel": False} for key in keys
                    if (key["device_type"], key["tensor_parallel_size"]) == ("cpu", t)
                    and key.get("sequence_parallel", False) == split]

        self.assertTrue(measured(2, False))
        self.assertEqual(measured(2, False), measured(1, False), "the same layers and sizes")
        self.assertEqual(measured(2, True), measured(1, False), "the same layers and sizes")
        whole, split = self.peaks(), self.peaks("--sequence-parallel")
        for (peak, expected), (split_peak, split_expected) in zip(whole, split, strict=True):
            self.assertAlmostEqual(split_peak / peak, split_expected / expected, delta=0.03)
            for ratio in (peak / expected, split_peak / split_expected):  # planned for the largest micro-batch
                self.assertTrue(0.75 <= ratio <= 1.05, ratio)
        too_many = "at most 2, the model's attention heads"
        for wrong, says in ((3, "must divide the 2 ranks"), (4, "must divide")):
            self.assert_refused(*profile, "--tensor-parallel", wrong, says=["--tensor-parallel", says])
        self.assert_refused(*profile, "--tensor-parallel", 4, "--nproc-per-node", 4,
                            says=["--tensor-parallel", too_many, "is 4"])
        port = free_port()
        ranks = [self.start(*profile, "--tensor-parallel", 4, name=f"rank{rank}", RANK=rank, LOCAL_RANK=rank,
                            WORLD_SIZE=4, MASTER_ADDR="127.0.0.1", MASTER_PORT=port) for rank in range(4)]
        for rank in ranks:
            self.assertEqual(rank.ended_within(HANG_SECONDS), 1, rank.stderr)
            self.assertIn(too_many, rank.stderr)

    def test_more_tensor_ranks_than_heads_are_refused(self):
        options = self.plan("many.json", (0, 0, 1, 1, 3))
        self.assert_refused(*self.train_arguments("many.json", "run", *options),
                            says=["many.json: layout.tensor_parallel_size: must be at most 2", "heads", "is 3"])


class LostTensorRankTest(TensorParallelCase):
    def lose_a_rank(self, name, layout, source, *options, victim=3):
        """The run that went on from `source`, and the undisturbed one. If a loss hits one rank before and another after
        its update, memory may have no whole step; then the test causes another loss."""
        options = [*self.plan(f"{name}.json", (0, 0, *layout), num_steps=200), *options]
        reference = self.train(f"{name}.json", f"{name}-reference", *options)
        for attempt in range(5):
            launcher = self.start_until(40, f"{name}.json", *options, name=f"{name}-{attempt}")
            os.kill(self.ranks_of(launcher)[victim], signal.SIGKILL)
            run = self.assert_ended_well(launcher)
            self.assertEqual(len(run["recoveries"]), 1, launcher.stderr)
            shutil.rmtree(self.folder / "run")
            if run["recoveries"][0]["source"].startswith(source):
                return run, reference
        self.fail(f"{attempt + 1} losses, of which none was made up for from {source}")

    def test_a_spare_takes_a_lost_tensor_ranks_part_from_its_replica(self):
        run, reference = self.lose_a_rank("replicas", (1, 2, 2), "the survivors' memory", "--spares", 1)
        self.assertEqual(self.losses(run), self.losses(reference))

    def test_fewer_ranks_go_on_without_tensor_ranks_where_a_replica_is_left(self):
        run, reference = self.lose_a_rank("fewer", (1, 2, 2), "the survivors' memory")
        self.assertEqual([phase["tensor_ranks"] for phase in run["phases"]], [2, 1])
        lost = run["recoveries"][0]["step"]
        self.assertGreaterEqual(lost, 40)
        self.assertEqual(self.losses(run)[:lost], self.losses(reference)[:lost])
        self.assert_losses_equal(run, reference, 200, AFTER_A_LOSS)

    def test_a_part_that_is_lost_comes_from_a_checkpoint(self):
        run, reference = self.lose_a_rank("parts", (2, 1, 2), "checkpoint step-", "--spares", 1,
                                          "--checkpoint-every", 10)
        self.assertEqual(self.losses(run), self.losses(reference))


if __name__ == "__main__":
    unittest.main()
