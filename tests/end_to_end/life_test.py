"""Random faults at any time of runs of pipelines and of nets; life.py says what is tested and how to repeat one."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import tiny_model
from families_test import write_pictures
from life import NUM_STEPS, LifeCase
from nets_test import CONFIG, split_evenly

NUM_TRAINING_SAMPLES, NUM_TEST_SAMPLES = 160, 600  # 10 steps an epoch, and evaluations long enough to be hit


class LifeTest(LifeCase):
    def write_plan(self, name, phases):
        """Writes a plan with phases at these first steps and with the run's length."""
        plan = self.read("pipetransformer.json")  # this plan has room for a cache
        plan["phases"] = [{**phase, "from_step": step} for step, phase in phases]
        self.write(name, plan)
        self.of_length(name, NUM_STEPS)

    def jobs(self):
        tiny_model.write_data(self.folder / "life.tsv", NUM_TRAINING_SAMPLES)
        tiny_model.write_data(self.folder / "life-test.tsv", NUM_TEST_SAMPLES, seed=2)
        pipeline, replicas = (self.read(f"{name}.json")["phases"][0] for name in ("static", "data-parallel"))
        self.write_plan("pipeline.json", [(0, pipeline)])
        self.write_plan("replicas.json", [(0, replicas)])
        steps = range(0, NUM_STEPS, 3)
        self.write_plan("changing.json", [(step, (pipeline, replicas)[step // 3 % 2]) for step in steps])
        # A quarter of the steps each have no, two, three and four blocks frozen; the layout changes every 5 steps.
        elastic = []
        for step in range(0, NUM_STEPS, 5):
            first_trainable, is_odd = (0, 5, 7, 9)[4 * step // NUM_STEPS], step // 5 % 2
            phase = {**(pipeline if first_trainable == 0 and not is_odd else replicas)}
            if first_trainable > 0:
                phase.update(first_trainable_layer=first_trainable, num_micro_batches=1 + is_odd)
                phase["cache"] = {"on": True, "found": []}
            elastic.append((step, phase))
        self.write_plan("elastic.json", elastic)
        every_step = ("--checkpoint-every", 1)
        return {"pipeline.json": every_step, "replicas.json": ("--checkpoint-every", 20), "changing.json": every_step,
                "elastic.json": every_step}

    def arguments(self, job, out, spares):
        options = (*self.options[job], "--test-data", "life-test.tsv", "--spares", spares)
        return self.train_arguments(job, out, *options, data="life.tsv")

    def test_random_faults(self):
        self.run_random_faults(300)


class NetsLifeTest(LifeCase):
    """Runs of a net on two unequal CPUs, split by samples, by layers, and in halves that freeze on the way."""

    def jobs(self):
        (self.folder / "net").mkdir()
        self.write("net/config.json", CONFIG)
        self.write("net/preprocessor_config.json", {"size": {"height": 16, "width": 16}})
        write_pictures(self.folder / "pictures", 16)  # 48 pictures, all of them to train on: 4 steps an epoch
        write_pictures(self.folder / "test-pictures", 100)
        self.run_tool("nets", "profile", "--model", "net", "--hardware", "cpu,cpu / 2", "--global-batch", 12,
                      "--quick", "-o", "operators.json", "--cluster", "unequal.json")
        for method in ("mtrain-data-parallel", "mtrain-pipeline", "mtrain-single"):
            self.run_tool("nets", "plan", "--method", method, "--profile", "operators.json", "--cluster",
                          "unequal.json", "-o", f"{method}.json")
        plan = self.read("mtrain-single.json")
        split_evenly(plan)
        self.write("halves.json", plan)
        freezing = "fixed:" + ",".join(["0"] * 10 + ["3"] * 10 + ["5"] * 10)  # layers, by epoch
        return {"mtrain-data-parallel.json": ("--checkpoint-every", 1),
                "mtrain-pipeline.json": ("--checkpoint-every", 20),
                "halves.json": ("--checkpoint-every", 5, "--freeze", freezing)}

    def arguments(self, job, out, spares):
        return ["nets", "train", job, "--model", "net", "--data", "pictures", "--test-data", "test-pictures",
                "--learning-rate", 0.02, "--epochs", NUM_STEPS // 4, "-o", self.folder / out, "--spares", spares,
                *self.options[job]]

    def caches(self, job):
        return False

    def assert_same_run(self, run, reference, weights, bits=True, out="run"):
        if bits:
            return super().assert_same_run(run, reference, weights, bits, out)
        self.assert_same_account(run, reference)
        # One device computes the same as two, up to rounding, which grows from step to step.
        lost_at = min(recovery["step"] for recovery in run["recoveries"])
        for one, other in zip(run["steps"][:lost_at + 20], reference["steps"]):
            self.assertAlmostEqual(one["loss"], other["loss"], delta=1e-3)

    def test_random_faults(self):
        self.run_random_faults(100)


if __name__ == "__main__":
    unittest.main()
