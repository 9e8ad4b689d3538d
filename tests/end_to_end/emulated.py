"""Training on emulated devices, on an estimated profile."""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import EndToEndTest


class RehearsalCase(EndToEndTest):
    @classmethod
    def setUpClass(cls):
        cls.shared_rehearsal = tempfile.TemporaryDirectory(prefix="frostpipe-e2e-")
        cls.addClassCleanup(cls.shared_rehearsal.cleanup)
        folder = Path(cls.shared_rehearsal.name)
        cls.call(folder, "profile", "--like", "vit-b16", "--nproc-per-node", 4, "--global-batch", 32, "--samples", 128,
                 "--memory-limit", "4GiB",
                 "--cluster", "cluster.json", "-o", "profile.json")
        for method in ("static", "pipetransformer-published", "pipetransformer"):
            cls.call(folder, "plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 32,
                     "--method", method, "--epochs", 4,
                     "--freeze-set", "warm-up=0.25", "--freeze-set", "interval=0.25", "-o", f"{method}.json")
        EndToEndTest.shared, cls.kept = folder, EndToEndTest.shared

    @classmethod
    def tearDownClass(cls):
        EndToEndTest.shared = cls.kept

    def rehearse(self, plan, output, *options, **keywords):
        done = self.run_tool("train", plan, "--device", "emulated", "-o", self.folder / output, *options, **keywords)
        return done, self.read(f"{output}/summary.json")
