"""scripts/gpu-check as on a machine with a GPU, on the CPU and with small models: every step is really made.
Oracle: nothing fails, and only what there is not on a CPU is skipped; steps beside PyTorch where scripts/setup-peers
has been."""

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
OF_CUDA = {"waits of the host within a step", "compute-sanitizer memcheck", "steps by CUDA graphs"}
MAY_NOT_SHOW = {"messages behind compute"}  # where the simulator hides none


@unittest.skipUnless("FROSTPIPE" in os.environ, "FROSTPIPE must name the tool")
class LongGpuCheckTest(unittest.TestCase):
    def test_every_step_is_made_on_the_cpu(self):
        has_torch = PYTHON_WITH_TORCH.exists()
        with tempfile.TemporaryDirectory(prefix="frostpipe-gpu-check-") as folder:
            done = subprocess.run([sys.executable, "-B", ROOT / "scripts/gpu-check", "--frostpipe",
                                   os.environ["FROSTPIPE"], "--device", "cpu", "--size", "small", "--minutes", "28",
                                   "--only-tests", SOME_TESTS,
                                   "--python", PYTHON_WITH_TORCH if has_torch else sys.executable, "-o", folder],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            result = json.loads((Path(folder) / "gpu-check.json").read_text())
            self.assertIn("not judged here", (Path(folder) / "gpu-check.txt").read_text())
        status = {check["name"]: check["status"] for check in result["checks"]}
        beside = {name for name in status if name.endswith("beside PyTorch eager")}
        self.assertEqual(len(beside), 4)
        skipped = {name for name, value in status.items() if value == "skipped"}
        self.assertEqual(skipped - MAY_NOT_SHOW, OF_CUDA | (set() if has_torch else beside))
        self.assertEqual({value for name, value in status.items() if name not in skipped}, {"passed"})
        tests = [check["name"] for check in result["checks"] if check["section"] == "tests"]
        self.assertLessEqual({"On/Devices.AGroupOfOneRankKeepsWhatItHas/cpu", "RanksOnDevice.EveryHead"}, set(tests))
        if has_torch:
            targets = {target["what"] for check in result["checks"] for target in check["targets"]}
            self.assertIn("bert-small-bfloat16: step, times PyTorch eager's", targets)


if __name__ == "__main__":
    unittest.main()
