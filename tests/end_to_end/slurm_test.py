"""A real Slurm on two hosts queues a job again, which resumes. Oracle: the same plan on one host without
interruption."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS
from hosts import hosts_for, introduce
from launched import LaunchedBase
from slurm import SlurmCluster, programs_missing_for_slurm

STEPS = 300


class SlurmTest(LaunchedBase):
    def submit(self):
        """A job, started by the unchanged script, that has written a checkpoint."""
        if missing := programs_missing_for_slurm():
            print(f"\nSKIPPED LOUDLY: there is no {', '.join(missing)}", file=sys.stderr)
            self.skipTest("no Slurm")
        self.write_plan(STEPS)
        self.write("job.sh", self.launched("slurm", options=("--checkpoint-every", 20)))
        self.hosts = hosts_for(self, 2)
        introduce(self.hosts)
        self.slurm = SlurmCluster(self, self.hosts, PATH=self.path_of_tool())
        self.job = self.slurm.said_by("sbatch", "job.sh").split()[-1]
        self.wait_until(lambda: list(self.hosts[1].path("run/checkpoints").glob("step-????????/checkpoint.json")),
                        HANG_SECONDS, self.said)

    def state(self):
        return self.slurm.job(self.job).get("JobState")

    def said(self):
        """The files that the job wrote on the first host, where its script runs."""
        path = self.hosts[0].path(f"slurm-{self.job}.out")
        return path.read_text() if path.exists() else ""

    def goes_on_to_the_end(self):
        self.wait_until(lambda: self.state() == "PENDING", HANG_SECONDS, lambda: f"{self.state()}: {self.said()}")
        # Slurm gives the nodes two minutes to forget the job; if it begins sooner, it is ended as its previous run.
        self.wait_until(lambda: self.state() in ("COMPLETED", "FAILED"), HANG_SECONDS, self.said)
        self.assertEqual(self.state(), "COMPLETED", self.said())
        self.assertRegex(self.said(), rf"goes on with step \d+ of {STEPS}, from ")
        losses = self.losses(self.read(self.hosts[0].path("run/summary.json")))
        self.assertEqual(losses, self.losses_on_one_host())

    def test_a_job_that_is_requeued(self):
        self.submit()
        self.slurm.said_by("scontrol", "requeue", self.job)
        self.goes_on_to_the_end()

    def test_a_job_that_has_lost_a_host(self):
        self.submit()
        self.hosts[1].lose_power()
        self.wait_until(lambda: self.slurm.states() == {"idle", "down*"}, HANG_SECONDS, self.said)
        self.assertRegex(self.said(), r"frostpipe: rank 1 on host b has sent no heartbeat for \d+ s")
        self.hosts[1].switch_on()
        self.slurm.start_again(self.hosts[1])
        self.goes_on_to_the_end()


if __name__ == "__main__":
    unittest.main()
