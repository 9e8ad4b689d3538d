"""Hosts are lost under torchrun's elastic agents. Oracle: the undisturbed run on one host, within 1e-4, since another
layout has trained."""

import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS, has_done
from hosts import MASTER_PORT, introduce
from layouts import in_layout, two_by_two
from lost_host import FAULTY_JOBS, JOBS, AgentsBase

SOME_STEPS = 400


class ElasticAgentsTest(AgentsBase):
    # Less than torchrun's default, and enough for agents on a busy machine.
    IN_TIME = ("--rdzv-conf", "last_call_timeout=10,keep_alive_interval=2,keep_alive_max_attempt=5")

    def setUp(self):
        super().setUp()
        pipeline, replicas = (self.read(job)["phases"][0] for job in FAULTY_JOBS[:2])
        phases = {"pipeline.json": pipeline, "replicas.json": replicas, "apart.json": two_by_two(pipeline),
                  "tensors.json": in_layout(replicas, 1, 2, 2)}  # each host has a replica of two tensor ranks
        introduce(self.hosts)  # torch looks up their names
        for job, phase in phases.items():
            self.write_job(job, phase, SOME_STEPS)
            for host in self.hosts:
                for name in (job, f"hosts-of-{job}"):
                    shutil.copy(self.folder / name, host.path(name))

    def arguments(self, job, output="run"):
        return self.train_arguments(job, output, "--checkpoint-every", 20, "--cluster", f"hosts-of-{job}")

    def start_process(self, job, number):
        return self.start_agent(job, number, "--nnodes", "1:2", "--max-restarts", 3, "--rdzv-backend", "c10d",
                                "--rdzv-endpoint", f"{self.hosts[0].address}:{MASTER_PORT}", "--rdzv-id", "job",
                                *self.IN_TIME)

    def has_done_on_any(self, steps):
        """The last stage writes the figures of steps."""
        return any(has_done(host.path("run/scalars.jsonl"), steps) for host in self.hosts)

    def wait_for(self, condition, what):
        self.wait_until(lambda: condition() or self.started[0].ended_within(0) is not None, HANG_SECONDS,
                        lambda: f"{what}\n{self.started[0].stderr}")
        self.assertTrue(condition(), f"{what}\n{self.started[0].stderr}")

    def assert_ended_as_on_one_host(self, job):
        self.assertEqual(self.started[0].ended_within(HANG_SECONDS), 0, self.started[0].stderr)
        run = self.read(self.hosts[0].path("run/summary.json"))
        out = f"one-host-{Path(job).stem}"
        self.run_tool(*self.arguments(job, out), "--nodes", 2)
        reference = self.read(f"{out}/summary.json")
        self.assert_same_account(run, reference)
        self.assertAlmostEqual(self.losses(run)[-1], self.losses(reference)[-1], delta=1e-4)
        return run

    def lose_and_go_on(self, job, steps):
        self.start_job(job)
        self.wait_for(lambda: self.has_done_on_any(steps), "steps on both hosts")
        self.hosts[1].lose_power()
        self.wait_for(lambda: "of the plan's" in self.started[0].stderr, "a plan for the host that is left")

    def test_the_host_that_is_left_goes_on(self):
        for job in ("replicas.json", "apart.json", "tensors.json"):
            with self.subTest(job):
                self.tidy_up()
                try:
                    self.lose_and_go_on(job, 40)
                    run = self.assert_ended_as_on_one_host(job)
                finally:
                    self.hosts[1].switch_on()
                self.assertEqual(run["recoveries"][-1]["world_size"], JOBS[job])
                self.assertGreaterEqual(run["recoveries"][-1]["step"], 20)

    def test_layers_that_were_on_the_lost_host_alone_are_named(self):
        self.start_job("pipeline.json")
        self.wait_for(lambda: self.has_done_on_any(40), "steps on both hosts")
        self.hosts[1].lose_power()
        self.assertEqual(self.started[0].ended_within(HANG_SECONDS), 1, self.started[0].stderr)
        self.assertRegex(self.started[0].stderr, r"frostpipe: checkpoint of step \d+: no host has layer-\d+.* whole, "
                                                 "which host b wrote")

    def test_without_a_profile_one_sentence_says_so(self):
        for host in self.hosts:
            host.path("profile.json").unlink()
        self.start_job("replicas.json")
        self.wait_for(lambda: self.has_done_on_any(40), "steps on both hosts")
        self.hosts[1].lose_power()
        self.assertEqual(self.started[0].ended_within(HANG_SECONDS), 1, self.started[0].stderr)
        self.assertIn("no layout for the 1 rank that is left: profile.json", self.started[0].stderr)


if __name__ == "__main__":
    unittest.main()
