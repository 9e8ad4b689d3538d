"""Random faults at any time of a run: its start, training, changes of layout, checkpoints, the evaluation after the
last step, the final save.

Oracle: the undisturbed run. A disturbed run ends as that one, bitwise equal if the layout is the same, or ends with
exit code 1 and one message; then the same command line, run again, ends as the undisturbed run. Nothing hangs, no
process is left, no process dies except by our signals, and the run's folder has only files that the undisturbed run
leaves too.

    FROSTPIPE_FAULTS=20 FROSTPIPE_SEED=7     20 other runs
    FROSTPIPE_SEED=7 FROSTPIPE_FAULT=13      only number 13 of them: seed and number determine the fault and its time
"""

import collections
import concurrent.futures
import contextlib
import dataclasses
import os
import random
import re
import shutil
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import NOT_FOR_USERS, Started, processes_naming, rank_of_process
from recovery import SAID_WHILE_GOING_ON, RecoveryCase

SEED = int(os.environ.get("FROSTPIPE_SEED", 1))
ONLY = os.environ.get("FROSTPIPE_FAULT")
RUNS_AT_ONCE = 2
LONGEST_SECONDS = 60  # from a fault to the end of the run
NUM_RANKS = 2
NUM_STEPS = 120
LAUNCHER = -1

DIED_BY_ITSELF = re.compile(r"killed by signal (?!9 )")
LEFT_BEHIND = re.compile(r"\.part\b|\.written$|\.tmp$|probe")


@dataclasses.dataclass(frozen=True)
class Fault:
    """A signal to a process: the launcher, or the one that was started with this number (ranks first, then spares)."""

    victim: int
    number: signal.Signals
    moment: float  # as a fraction of the run's whole time, or of the time after its last step

    def __str__(self):
        return f"{self.number.name} to {'the launcher' if self.victim == LAUNCHER else f'process {self.victim}'}"


@dataclasses.dataclass(frozen=True)
class Disturbance:
    index: int
    job: str
    spares: int
    fault: Fault
    is_behind_last_step: bool
    second: Fault | None  # during the recovery from the first: its moment is in seconds

    @staticmethod
    def draw(index, jobs):
        numbers = random.Random(f"{SEED} {index}")
        job, spares = numbers.choice(jobs), numbers.choice((0, 1, 1))

        def fault(moment, *victims):
            victim = numbers.choice([*range(NUM_RANKS + spares), *victims])
            stops = victim != LAUNCHER and numbers.random() < 0.1
            return Fault(victim, signal.SIGSTOP if stops else signal.SIGKILL, moment)

        is_behind_last_step = numbers.random() < 0.25  # a small part of the time in which much happens
        first = fault(numbers.random(), *([LAUNCHER] if numbers.random() < 0.3 else []))
        has_second = first.victim != LAUNCHER and numbers.random() < 0.15
        second = fault(numbers.uniform(0, 0.5)) if has_second else None
        return Disturbance(index, job, spares, first, is_behind_last_step, second)

    def __str__(self):
        time_of = "what follows the last step" if self.is_behind_last_step else "the whole time"
        then = f", {self.second} {self.second.moment:.2f} s later" if self.second else ""
        return (f"FROSTPIPE_SEED={SEED} FROSTPIPE_FAULT={self.index}: {self.job}, {self.spares} spares, "
                f"{self.fault} at {100 * self.fault.moment:.0f} % of {time_of}{then}")


@dataclasses.dataclass
class Undisturbed:
    run: dict
    weights: bytes
    files: set
    seconds: float
    seconds_behind_last_step: float

    def learn(self, seconds, seconds_behind_last_step):
        """A run ended before its fault, since the machine is less busy than before."""
        self.seconds = min(self.seconds, seconds)
        self.seconds_behind_last_step = min(self.seconds_behind_last_step, seconds_behind_last_step)


def last_step_is_done(started):
    return f"step {NUM_STEPS}/{NUM_STEPS}" in started.stderr


def sentences_of_the_end(started):
    return [line for line in started.stderr.splitlines() if not SAID_WHILE_GOING_ON.search(line)]


def recovery_seconds(recovery):
    return sum(recovery.get(part, 0) for part in ("detection_ns", "forming_ns", "restoring_ns")) / 1e9


class Clock:
    """The start of a run, and the time of its last step."""

    def __init__(self):
        self.began = self.last_step = time.monotonic()

    def wait_for_last_step(self, started):
        while not last_step_is_done(started) and started.ended_within(0.002) is None:
            pass
        self.last_step = time.monotonic()

    def read(self):
        """Seconds of the whole run, and after its last step."""
        return time.monotonic() - self.began, time.monotonic() - self.last_step


class LifeCase(RecoveryCase):
    """A class of tests gives jobs() and arguments()."""

    def jobs(self):
        """{plan: options}: runs of NUM_STEPS steps that spend most of their time in the tested operations."""
        raise NotImplementedError

    def arguments(self, job, out, spares):
        """Of the tool, to train by the job's plan into the folder `out`, whose full path marks the run's processes."""
        raise NotImplementedError

    def begin(self, job, out, spares, name):
        return Started(self, self.arguments(job, out, spares), self.environment(), name, ())

    def processes(self, out):
        return processes_naming(self.folder / out)

    def files(self, out):
        """The names of the files that a run leaves; all checkpoints have one name."""
        root = self.folder / out
        return {re.sub(r"step-\d{8}", "step-N", str(path.relative_to(root))) for path in root.rglob("*")}

    def undisturbed(self, job):
        out = f"undisturbed-{Path(job).stem}"
        clock = Clock()
        started = self.begin(job, out, 0, out)
        clock.wait_for_last_step(started)
        self.assertEqual(self.end_of(started, out), 0, started.stderr)
        weights = (self.folder / out / "model/model.safetensors").read_bytes()
        return Undisturbed(self.read(f"{out}/summary.json"), weights, self.files(out), *clock.read())

    def hit(self, fault, launcher, out):
        """Waits until the victim exists; returns whether it did."""
        while launcher.ended_within(0) is None:
            is_last_look = last_step_is_done(launcher)  # a process that does not exist now has been lost, or has ended
            found = {rank_of_process(pid): pid for pid in self.processes(out) if pid != launcher.pid}
            found[LAUNCHER] = launcher.pid
            try:
                if fault.victim in found:
                    os.kill(found[fault.victim], fault.number)
                    return True
            except ProcessLookupError:
                pass
            if is_last_look:
                break
        return False

    def disturb(self, what, undisturbed, launcher, clock, out):
        """Sends the signals; returns whether the first of them hit a process."""
        if what.is_behind_last_step:
            clock.wait_for_last_step(launcher)
            launcher.ended_within(what.fault.moment * undisturbed.seconds_behind_last_step)
        else:
            launcher.ended_within(what.fault.moment * undisturbed.seconds)
        has_hit = self.hit(what.fault, launcher, out)
        if has_hit and what.second:
            launcher.ended_within(what.second.moment)
            self.hit(what.second, launcher, out)
        return has_hit

    def end_of(self, launcher, out):
        """The exit code; no process may be left."""
        code = launcher.ended_within(LONGEST_SECONDS)
        if code is None:
            states = {pid: Path(f"/proc/{pid}/stat").read_text().split()[2] for pid in self.processes(out)}
            self.fail(f"it hangs, with processes {states}\n{launcher.stderr}")
        self.wait_until(lambda: not self.processes(out), 5,
                        lambda: f"processes {self.processes(out)} to be gone\n{launcher.stderr}")
        self.assertNotRegex(launcher.stderr, NOT_FOR_USERS)
        self.assertNotRegex(launcher.stderr, DIED_BY_ITSELF)
        return code

    def assert_ended_as(self, undisturbed, launcher, out, job):
        """The recoveries that the run reports."""
        run = self.read(f"{out}/summary.json")
        recoveries = run.get("recoveries", [])
        same_layout = all(recovery["world_size"] == NUM_RANKS for recovery in recoveries)
        bits = same_layout and not (recoveries and self.caches(job))
        self.assert_same_run(run, undisturbed.run, undisturbed.weights, bits=bits, out=out)
        left = self.files(out)
        self.assertEqual([name for name in left if LEFT_BEHIND.search(name)], [], launcher.stderr)
        no_checkpoints = re.compile(r"(?!checkpoints/)").match
        self.assertEqual(set(filter(no_checkpoints, left)), set(filter(no_checkpoints, undisturbed.files)))
        return recoveries

    def one_run(self, what):
        """How the run ended, as a word or its message, and the recoveries that it reports."""
        undisturbed = self.references[what.job]
        out = f"life-{what.index:04}"
        clock = Clock()
        launcher = self.begin(what.job, out, what.spares, out)
        has_hit = self.disturb(what, undisturbed, launcher, clock, out)
        code = self.end_of(launcher, out)
        if not has_hit:
            undisturbed.learn(*clock.read())
        said = sentences_of_the_end(launcher)
        if has_hit and what.fault.victim == LAUNCHER:
            self.assertEqual((code, said), (-signal.SIGKILL, []), launcher.stderr)
            ending = "everything was lost, and the next start ended well"
        elif code == 0:
            self.assertEqual(said, [], launcher.stderr)
            ending = "went on without what was lost" if has_hit else "met nobody"
        else:
            self.assertEqual((code, len(said), has_hit), (1, 1, True), launcher.stderr)
            ending = re.sub(r"\b(rank|process) \d+", r"\1 N", said[0])
        if code != 0 and not (self.folder / out / "summary.json").exists():  # a finished run writes it last
            launcher = self.begin(what.job, out, 0, f"{out}-again")
            self.assertEqual(self.end_of(launcher, out), 0, launcher.stderr)
        recoveries = self.assert_ended_as(undisturbed, launcher, out, what.job)
        return "recovered" if code == 0 and recoveries else ending, recoveries

    def report(self, what):
        """one_run; if it fails, the other runs go on."""
        out = f"life-{what.index:04}"
        try:
            return (what, *self.one_run(what), None)
        except Exception as error:  # also an error of the test itself: it is printed, and fails the test
            print(f"\n{what}\n{error}", file=sys.stderr, flush=True)
            return what, "FAILED", [], error
        finally:
            for pid in self.processes(out):
                with contextlib.suppress(ProcessLookupError):  # it ends just now
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self.folder / out, ignore_errors=True)

    def run_random_faults(self, count):
        count = int(os.environ.get("FROSTPIPE_FAULTS", count))
        self.options = self.jobs()
        shared_memory = set(os.listdir("/dev/shm"))
        began = time.monotonic()
        runs = [Disturbance.draw(i, sorted(self.options)) for i in ([int(ONLY)] if ONLY else range(count))]
        with concurrent.futures.ThreadPoolExecutor(RUNS_AT_ONCE) as pool:
            self.references = dict(zip(self.options, pool.map(self.undisturbed, self.options)))
            ended = list(pool.map(self.report, runs))
        recoveries = [recovery for _, _, found, _ in ended for recovery in found]
        slowest = max(map(recovery_seconds, recoveries), default=0)
        print(f"\n{len(ended)} disturbed runs of seed {SEED} in {time.monotonic() - began:.0f} s; "
              f"{len(recoveries)} recoveries, the slowest in {slowest:.2f} s", file=sys.stderr)
        for ending, count in collections.Counter(ending for _, ending, _, _ in ended).most_common():
            print(f"{count:5} {ending}", file=sys.stderr)
        self.assertEqual([str(what) for what, _, _, error in ended if error], [])
        new = set(os.listdir("/dev/shm")) - shared_memory
        self.assertEqual([name for name in new if name.startswith("frostpipe-")], [])

