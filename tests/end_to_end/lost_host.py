"""Two hosts train a tiny model, and a fault comes at a random moment. Oracle: the undisturbed run; see
lost_host_test.py."""

import collections
import contextlib
import dataclasses
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS, NOT_FOR_USERS, processes_naming
from hosts import hosts_for, rank_variables
from layouts import in_layout, on_nodes
from recovery import SAID_WHILE_GOING_ON, RecoveryCase
from torchrun import programs_missing_for_torchrun, torchruns_agent

NUM_FAULTS = int(os.environ.get("FROSTPIPE_HOST_FAULTS", 3))
SEED = int(os.environ.get("FROSTPIPE_SEED", 1))
ONLY = os.environ.get("FROSTPIPE_FAULT")
LIMIT_SECONDS = 20  # for every wait
NUM_STEPS = 120
JOBS = {"pipeline.json": 1, "replicas.json": 1, "both.json": 2, "apart.json": 2, "tensors.json": 2}  # ranks per host
FAULTY_JOBS = ("pipeline.json", "replicas.json", "both.json")

WAITS = re.compile(r"^frostpipe: rank \d+ on host \w+ (waits for ranks? |cannot reach .* for 10 s; waiting)")
UNRECORDED = re.compile(r"^frostpipe: .*: the figures of step (\d+) cannot be written; ", re.MULTILINE)


def sentences_of_the_end(started):
    others = (SAID_WHILE_GOING_ON, WAITS, UNRECORDED)
    return [line for line in started.stderr.splitlines()
            if line.startswith("frostpipe: ") and not any(said.search(line) for said in others)]


@dataclasses.dataclass
class Undisturbed:
    run: dict
    weights: bytes
    seconds: float  # duration on two hosts


class LostHostBase(RecoveryCase):
    def setUp(self):
        super().setUp()
        pipeline, replicas = (self.read(f"{name}.json")["phases"][0] for name in ("static", "data-parallel"))
        for job, phase in zip(FAULTY_JOBS, (pipeline, replicas, in_layout(pipeline, 2, 2, 1))):
            self.write_job(job, phase, NUM_STEPS)
        self.references = {}
        self.hosts = hosts_for(self, 2)

    def write_job(self, job, phase, num_steps):
        """A plan with only that phase, and the cluster of its ranks."""
        nodes = [node for node in (0, 1) for _ in range(JOBS[job])]
        self.write(f"hosts-of-{job}", on_nodes(self.read("cluster.json"), nodes))
        self.write(job, {**self.read("static.json"), "phases": [phase], "memory_limited": False,
                         "world_size": 2 * JOBS[job]})
        self.of_length(job, num_steps)

    def arguments(self, job, output="run"):
        """A loss ends all ranks; survivors_test.py tests runs that go on."""
        return self.train_arguments(job, output, "--checkpoint-every", 1, "--cluster", f"hosts-of-{job}",
                                    "--max-restarts", 0)

    def start_process(self, job, number):
        """A rank that is started by hand."""
        per_host = JOBS[job]
        return self.start(*self.arguments(job), name=f"rank{number}", wrapper=self.hosts[number // per_host].wrapper,
                          **rank_variables(self.hosts, number, per_host))

    def num_processes(self, job):
        return JOBS[job] * len(self.hosts)

    def start_job(self, job):
        self.started = [self.start_process(job, number) for number in range(self.num_processes(job))]

    def undisturbed(self, job):
        """The results are known exactly from a run on one host, its duration from one on two hosts."""
        if job not in self.references:
            out = f"one-host-{Path(job).stem}"
            self.run_tool(*self.arguments(job, out), "--nodes", 2)
            run = self.read(f"{out}/summary.json")
            weights = (self.folder / out / "model/model.safetensors").read_bytes()
            self.tidy_up()
            began = time.monotonic()
            self.start_job(job)
            for started in self.started:
                self.assertEqual(started.ended_within(HANG_SECONDS), 0, started.stderr)
            self.references[job] = Undisturbed(run, weights, time.monotonic() - began)
            self.assert_same_as(self.references[job])
        return self.references[job]

    def tidy_up(self):
        for host in self.hosts:
            host.run("sh", "-c", "mountpoint -q run && umount run; rm -rf run")

    def assert_same_as(self, undisturbed, said=""):
        """Results are bitwise equal; but figures of steps may be missing from the first step that could not be written
        and was reported."""
        run = self.read(self.hosts[0].path("run/summary.json"))
        losses, expected = ({step["step"]: step["loss"] for step in one["steps"]} for one in (run, undisturbed.run))
        if missing := expected.keys() - losses.keys():
            self.assertGreaterEqual(min(missing), min(map(int, UNRECORDED.findall(said)), default=NUM_STEPS))
        self.assertEqual(losses, {step: loss for step, loss in expected.items() if step not in missing})
        self.assertEqual(run["test_predictions"], undisturbed.run["test_predictions"])
        self.assertEqual(self.hosts[0].path("run/model/model.safetensors").read_bytes(), undisturbed.weights)

    # ---- one fault

    def settle(self):
        """Checks that every process has ended within the limit, or says for which rank it waits; returns those that
        wait."""
        until = time.monotonic() + LIMIT_SECONDS
        for started in self.started:
            while started.ended_within(0.05) is None and time.monotonic() < until:
                if any(WAITS.search(line) for line in started.stderr.splitlines()):
                    break
        waiting = [started for started in self.started if started.ended_within(0) is None]
        for started in waiting:
            if not any(WAITS.search(line) for line in started.stderr.splitlines()):
                self.fail(f"still there after {LIMIT_SECONDS} s, and says nothing")
        return waiting

    def assert_all_said_one_sentence(self):
        for started in self.started:
            code = started.ended_within(0)
            said = sentences_of_the_end(started)
            self.assertNotRegex(started.stderr, NOT_FOR_USERS)
            if code == 1:
                self.assertEqual(len(said), 1)
            elif code is not None:
                self.assertIn(code, (0, -signal.SIGKILL))
                self.assertEqual(said, [])

    def said_by_all(self):
        return "".join(started.stderr for started in self.started)

    def has_results(self):
        return self.hosts[0].path("run/summary.json").exists()

    def go_on(self, job):
        """Runs the same command again: for the ranks that have ended, if others wait for them; for all ranks, if none
        waits and there are no results."""
        waiting = self.settle()
        self.assert_all_said_one_sentence()
        is_over = not waiting and self.has_results()
        said = ", ".join(f"{self.state_of(started)}" for started in self.started)
        if is_over:
            return f"over: {said}"
        for number, started in enumerate(self.started):
            if started not in waiting:
                self.started[number] = self.start_process(job, number)
        for started in self.started:
            self.assertEqual(started.ended_within(HANG_SECONDS), 0)
            self.assertEqual(sentences_of_the_end(started), [])
        return f"started again, {len(waiting)} had waited: {said}"

    def state_of(self, started):
        code = started.ended_within(0)
        said = sentences_of_the_end(started)
        return "waits" if code is None else re.sub(r"^frostpipe: ", "", said[0])[:120] if said else f"code {code}"

    def one_fault(self, index, inflict, mend):
        numbers = random.Random(f"{SEED} {index} {self.id()}")
        job = numbers.choice(FAULTY_JOBS)
        undisturbed = self.undisturbed(job)
        moment = numbers.random()
        self.tidy_up()
        self.prepare_hosts()
        self.start_job(job)
        self.started[0].ended_within(moment * undisturbed.seconds)
        phase = ("the end" if f"step {NUM_STEPS}/{NUM_STEPS}" in self.started[0].stderr
                 else "training" if "train " in self.started[0].stderr else "the start")
        host = numbers.randrange(2)
        what = (f"FROSTPIPE_SEED={SEED} FROSTPIPE_FAULT={index}: {job}, host {self.hosts[host].name} at "
                f"{100 * moment:.0f} % of its time, in {phase}")
        try:
            inflict(self.hosts[host], numbers)
            if self.waits_before_mending:
                self.settle()
            mend(self.hosts[host])
            said = self.said_by_all()
            ending = self.go_on(job)
            self.wait_until(lambda: not processes_naming(self.folder / "run"), 5, "processes to be gone")
            self.assert_same_as(undisturbed, said + self.said_by_all())
            return what, phase, ending, None
        except Exception as error:
            said = "\n".join(f"-- {number}: {started.ended_within(0)}\n{started.stderr}"
                             for number, started in enumerate(self.started))
            print(f"\n{what}\n{type(error).__name__}: {str(error)[:1500]}\n{said}", file=sys.stderr, flush=True)
            self.mend_all()
            return what, phase, "FAILED", error
        finally:
            for pid in processes_naming(self.folder / "run"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for started in self.started:
                started.process.wait()

    waits_before_mending = True

    def prepare_hosts(self):
        pass

    def mend_all(self):
        for host in self.hosts:
            host.plug_the_cable_in()

    def run_faults(self, inflict, mend=lambda host: None):
        ended = [self.one_fault(index, inflict, mend) for index in ([int(ONLY)] if ONLY else range(NUM_FAULTS))]
        print(f"\n{self.id()}: {len(ended)} faults of seed {SEED}, "
              f"{dict(collections.Counter(phase for _, phase, _, _ in ended))}", file=sys.stderr)
        for what, _, ending, _ in ended:
            print(f"  {what}: {ending}", file=sys.stderr)
        self.assertEqual([what for what, _, _, error in ended if error], [])

    @staticmethod
    def kill(pids):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class AgentsBase(LostHostBase):
    """torchrun's agents start the ranks, one on each host."""

    def setUp(self):
        if missing := programs_missing_for_torchrun():
            print(f"\nSKIPPED LOUDLY: there is no {', '.join(missing)}", file=sys.stderr)
            self.skipTest("no torchrun")
        super().setUp()

    def num_processes(self, job):
        return len(self.hosts)

    def start_agent(self, job, number, *options):
        agent = torchruns_agent("--nproc-per-node", JOBS[job], *options)
        return self.start(*self.arguments(job), name=f"agent{number}", wrapper=[*self.hosts[number].wrapper, *agent])

    def settle(self):
        """The ranks end in time. An agent that has started none yet waits for the other agents until torchrun's
        timeout, and is ended."""
        until = time.monotonic() + LIMIT_SECONDS
        while any(started.ended_within(0.1) is None for started in self.started) and time.monotonic() < until:
            pass
        for started, host in zip(self.started, self.hosts):
            if started.ended_within(0) is None:
                self.assertEqual(host.processes(), [started.pid], "ranks are left")
                started.process.kill()
                started.process.wait()
        return []

    def assert_all_said_one_sentence(self):
        """The messages of its ranks, without the agent's."""
        for started in self.started:
            said = sentences_of_the_end(started)
            self.assertLessEqual(len(said), max(JOBS.values()))
            self.assertEqual(len(set(re.sub(r"rank \d+", "", one) for one in said)) <= 1, True, said)
