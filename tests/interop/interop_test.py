"""PyTorch's pipelining runs the schedules that `frostpipe schedule` writes, and gets the gradients of our executor."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import pytorch_ranks
import small_bert
import torch

FROSTPIPE, GRADIENTS = os.environ["FROSTPIPE"], os.environ["GRADIENTS"]
BOUND = 1e-5  # relative difference of a tensor's gradient

# Schedules by name, with their stages per rank: at most eight in all, the model's number of layers. PyTorch has the
# first seven by name; of the others it only has the actions.
TWO_RANKS = {"GPipe": [1], "1F1B": [1], "Interleaved1F1B": [2, 3, 4], "LoopedBFS": [2, 4],
             "InterleavedZeroBubble": [2, 3, 4], "ZBVZeroBubble": [2], "DualPipeV": [2],
             "ZB-H1": [1], "ZB-H2": [1], "AutoZeroBubble": [1]}
FOUR_RANKS = {name: stages[:1] for name, stages in TWO_RANKS.items()}

BY_FILE = ("AutoZeroBubble",)  # it depends on costs: our executor uses the same rows as PyTorch


class Comparison:
    """Tests with one number of ranks, and twice as many micro-batches, which every schedule allows."""

    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = Path(temporary.name)
        cls.num_micro_batches = 2 * cls.num_ranks
        subprocess.run([GRADIENTS, cls.folder, str(cls.num_ranks),
                        *(cls.case(name, v) for name, stages in cls.schedules.items() for v in stages)], check=True)

    @classmethod
    def case(cls, name, virtual_stages):
        file = ""
        if name in BY_FILE:
            file = f"/{cls.write_schedule(name, virtual_stages, 'compute_only') / 'schedule.csv'}"
        return f"{name}/{virtual_stages}/{cls.num_micro_batches}{file}"

    @classmethod
    def write_schedule(cls, name, virtual_stages, actions):
        stages = ["--virtual-stages", str(virtual_stages)] if virtual_stages > 1 else []
        written = subprocess.run([FROSTPIPE, "schedule", name, "--pp", str(cls.num_ranks), "--micro-batches",
                                  str(cls.num_micro_batches), *stages, "--actions", actions, "--format", "csv"],
                                 check=True, stdout=subprocess.PIPE)
        folder = Path(tempfile.mkdtemp(dir=cls.folder))
        (folder / "schedule.csv").write_bytes(written.stdout)
        return folder

    def largest_error(self, expected, found):
        """The largest relative difference of the tensors, with the tensor's name."""
        self.assertEqual(found.keys(), expected.keys())
        return max((((found[name] - gradient).norm() / gradient.norm()).item(), name)
                   for name, gradient in expected.items())

    def test_gradients_are_those_of_our_executor(self):
        for name, stages in self.schedules.items():
            for v in stages:
                ours = small_bert.Results(self.folder / f"{name}-{v}")
                for actions in ("compute_only", "compute_comms"):
                    with self.subTest(schedule=name, stages_per_rank=v, actions=actions):
                        folder = self.write_schedule(name, v, actions)
                        found = pytorch_ranks.gradients(self.num_ranks, folder, folder / "schedule.csv", actions,
                                                        self.num_micro_batches, ours)
                        error, tensor = self.largest_error(ours.gradients, found)
                        print(f"{name} x {v}, {self.num_ranks} ranks, {actions}: {error:.1e} ({tensor})", flush=True)
                        self.assertLessEqual(error, BOUND)


class TwoRanks(Comparison, unittest.TestCase):
    num_ranks, schedules = 2, TWO_RANKS


class FourRanks(Comparison, unittest.TestCase):
    num_ranks, schedules = 4, FOUR_RANKS


if __name__ == "__main__":
    unittest.main()
