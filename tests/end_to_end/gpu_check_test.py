"""scripts/gpu-check as on a machine with a GPU, with small models: every step really runs, on a fake GPU and on the
CPU. Oracle: nothing fails, and only checks that such a machine cannot do are skipped. Steps are compared with PyTorch
if scripts/setup-peers has installed it."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON_WITH_TORCH = ROOT / ".deps/peers/bin/python"
SOME_TESTS = r"^On/|RanksOnDevice\.(EveryHead|Bfloat16|CheckpointAndResume)"  # the others are unit tests, too
NOT_WITHOUT_A_GPU = {"compute-sanitizer memcheck"}
OF_CUDA = {"waits of the host within a step"}
MAY_NOT_SHOW = {"messages overlap with compute"}  # if the simulator hides none


class OnSmallModels(unittest.TestCase):
    def results_of(self, tool, device, *options, **more):
        """Checks that gpu-check reports success; returns its results, and the status of each check by its name."""
        with tempfile.TemporaryDirectory(prefix="frostpipe-gpu-check-") as folder:
            done = subprocess.run([sys.executable, "-B", ROOT / "scripts/gpu-check", "--frostpipe", tool, "--device",
                                   device, "--size", "small", "--minutes", "28", "-o", folder, *options],
                                  capture_output=True, text=True, check=False, env={**os.environ, **more})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            result = json.loads((Path(folder) / "gpu-check.json").read_text())
            self.assertIs(result["judges_targets"], False)
        status = {check["name"]: check["status"] for check in result["checks"]}
        self.assertLessEqual(set(status.values()), {"passed", "skipped"})
        return result, status

    @staticmethod
    def compared_with_pytorch(status):
        return {name for name in status if " compared with " in name}

    @staticmethod
    def skipped(status):
        return {name for name, value in status.items() if value == "skipped"}


@unittest.skipUnless("FROSTPIPE" in os.environ, "FROSTPIPE must name the tool")
class FakeGpuTest(OnSmallModels):
    """tests/executor/fake_gpu replaces CUDA, with a fake driver. The executor's tests run on it separately."""

    def results_on_fake_gpus(self, *options, **more):
        build = Path(os.environ["FROSTPIPE"]).parent
        with tempfile.TemporaryDirectory(prefix="frostpipe-fake-driver-") as folder:
            (Path(folder) / "libcuda.so.1").symlink_to(build / "tests/libfrostpipe_fake_driver.so")
            return self.results_of(build / "fake_gpu/frostpipe", "cuda", "--python", "/bin/false", *options,
                                   LD_LIBRARY_PATH=folder, **more)

    def test_all_but_the_executors_tests_is_made(self):
        result, status = self.results_on_fake_gpus("--sections", "first", "steps", "job", "ranks", "rest")
        self.assertEqual(self.skipped(status) - MAY_NOT_SHOW, self.compared_with_pytorch(status))
        waits = [target for check in result["checks"] for target in check["targets"]
                 if target["what"].startswith("host's waits per iteration")]
        self.assertEqual([(target["is_met"], target["value"]) for target in waits], 2 * [(True, waits[0]["most"])])

    def test_two_gpus_run_the_section_of_nccl(self):
        _, status = self.results_on_fake_gpus("--sections", "nccl", "--only-tests", "RanksOnDevice.EveryHead",
                                              FROSTPIPE_FAKE_GPUS="2")
        self.assertEqual(status, {"GPT-2 on two GPUs: pp=2, dp=2, tp=2": "passed",
                                  "settings of NCCL and the allocator": "passed", "RanksOnDevice.EveryHead": "passed"})

    def test_one_gpu_leaves_out_the_section_of_nccl(self):
        _, status = self.results_on_fake_gpus("--sections", "nccl", CUDA_VISIBLE_DEVICES="0")
        self.assertEqual(status, {"ranks with a GPU each": "skipped"})


@unittest.skipUnless("FROSTPIPE" in os.environ, "FROSTPIPE must name the tool")
class LongGpuCheckTest(OnSmallModels):
    def test_every_step_is_made_on_the_cpu(self):
        has_torch = PYTHON_WITH_TORCH.exists()
        result, status = self.results_of(os.environ["FROSTPIPE"], "cpu", "--only-tests", SOME_TESTS, "--python",
                                         PYTHON_WITH_TORCH if has_torch else sys.executable)
        beside = self.compared_with_pytorch(status)
        self.assertEqual(len(beside), 11)
        self.assertEqual(self.skipped(status) - MAY_NOT_SHOW,
                         NOT_WITHOUT_A_GPU | OF_CUDA | (set() if has_torch else beside))
        tests = [check["name"] for check in result["checks"] if check["section"] == "tests"]
        self.assertLessEqual({"On/Devices.AGroupOfOneRankKeepsWhatItHas/cpu", "RanksOnDevice.EveryHead"}, set(tests))
        if has_torch:
            targets = {target["what"] for check in result["checks"] for target in check["targets"]}
            for step in ("bert-small-float32: step, times PyTorch eager's",
                         "bert-small-bfloat16: step, times PyTorch eager, autocast's",
                         "qwen2-small-float32: step, times PyTorch eager's",
                         "bert-small-mixed-bfloat16: times as fast as eager, padded"):
                self.assertIn(step, targets)


if __name__ == "__main__":
    unittest.main()
