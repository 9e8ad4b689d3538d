"""The job that `launch` prints for Slurm goes on when it has lost a host. Oracle: the same plan on one host without
interruption, within 1e-4, since another layout adds in another order."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS, has_done
from hosts import hosts_for, introduce
from launched import TwoByTwoBase
from recovery import FROM_MEMORY
from slurm import SlurmCluster, programs_missing_for_slurm

STEPS = 300


class LaunchedSurvivorsTest(TwoByTwoBase):
    def setUp(self):
        super().setUp()
        self.write_plan(STEPS)

    def make_hosts(self):
        self.hosts = hosts_for(self, 2)
        introduce(self.hosts)

    def assert_ended_as_on_one_host(self, num_ranks):
        run = self.read(self.hosts[0].path("run/summary.json"))
        self.assertEqual([one["world_size"] for one in run["recoveries"]], [num_ranks])
        self.assertEqual(len(run["steps"]), STEPS)
        self.assertAlmostEqual(self.losses(run)[-1], self.losses_on_one_host()[-1], delta=1e-4)

    def test_a_host_under_srun(self):
        if missing := programs_missing_for_slurm():
            print(f"\nSKIPPED LOUDLY: there is no {', '.join(missing)}", file=sys.stderr)
            self.skipTest("no Slurm")
        self.write("job.sh", self.launched("slurm"))
        self.make_hosts()
        slurm = SlurmCluster(self, self.hosts, PATH=self.path_of_tool())
        job = slurm.said_by("sbatch", "job.sh").split()[-1]
        output = self.hosts[0].path(f"slurm-{job}.out")
        scalars = self.hosts[0].path("run/scalars.jsonl")
        self.wait_until(lambda: has_done(scalars, 20), HANG_SECONDS,
                        lambda: output.read_text() if output.exists() else "")
        self.hosts[1].lose_power()
        self.wait_until(self.hosts[0].path("run/summary.json").exists, HANG_SECONDS, output.read_text)
        self.assertRegex(output.read_text(), FROM_MEMORY)
        self.assert_ended_as_on_one_host(2)


if __name__ == "__main__":
    unittest.main()
