"""Runs the programs of a check, each within the remaining time, and keeps their output in files."""
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass

from running import Failure, environment_without_job, sentence_of

NOT_PASSED_ON = ("FROSTPIPE_TEST_DEVICE", "FROSTPIPE_CUDA_REPORT_WAITS")  # unless a check sets them
LEAST_SECONDS = 5  # needed to start a program


class NotDone(Exception):
    """Raised if a check is impossible on this machine; the text says why."""


class NoTime(Exception):
    """Raised if a check is left out, or not finished, for lack of time; the text says why."""


class TookTooLong(Failure):
    """Raised if a program was killed because it ran too long."""


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str
    seconds: float


def kill(process):
    """Kills a program and everything that it has started."""
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.killpg(process.pid, signal.SIGKILL)


class Programs:
    def __init__(self, options, folder, device, deadline):
        self.options, self.folder, self.device, self.deadline = options, folder, device, deadline
        self.end_of_section = deadline
        self.numbers = itertools.count(1)  # of the programs' logs
        self.running = set()

    def begin_section(self, share):
        """Gives the next section this share of the time that is left."""
        now = time.monotonic()
        self.end_of_section = now + share * (self.deadline - now)

    def next_log(self):
        """Returns the path of the next program's log files, without their extension."""
        return self.folder / "logs" / f"{next(self.numbers):03}"

    def environment(self, more):
        environment = {name: value for name, value in environment_without_job().items() if name not in NOT_PASSED_ON}
        visible = environment.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        environment.update(CUDA_VISIBLE_DEVICES=visible)  # one GPU, which all ranks share
        # With LAZY a program loads only the kernels that it needs; no rank waits on the device for another one.
        environment.setdefault("CUDA_MODULE_LOADING", "LAZY")
        environment.update(NVIDIA_TF32_OVERRIDE="0")  # no product is rounded to TF32
        environment.update({name: str(value) for name, value in more.items()})
        return environment

    def run(self, command, most_seconds=600, log=None, **more):
        """Runs the command and returns its output. Kills it, and all that it has started, after `most_seconds` or when
        the time of the section is over. `log` is a path from next_log(), by default a new one."""
        left = min(self.deadline, self.end_of_section) - time.monotonic()
        if left < LEAST_SECONDS:
            raise NoTime("the section has used its share of --minutes")
        base = log or self.next_log()
        begin = time.monotonic()
        with open(f"{base}.out", "w+b") as out, open(f"{base}.err", "w+b") as err:
            out.write((" ".join(map(str, command)) + "\n").encode())
            out.flush()
            process = subprocess.Popen([*map(str, command)], cwd=self.folder, env=self.environment(more),
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
            self.running.add(process)
            try:
                process.wait(min(left, most_seconds) if self.deadline else 0)  # end() may have come first
            except subprocess.TimeoutExpired:
                kill(process)
                process.wait()
                limit = "the rest of its section's share of --minutes" if left <= most_seconds else "its limit"
                raise TookTooLong(f"{command[0]} did not end within {min(left, most_seconds):.0f} s, {limit}, and was "
                              f"killed; see {base}.err") from None
            except BaseException:
                kill(process)
                process.wait()
                raise
            finally:
                self.running.discard(process)
            out.seek(0)
            err.seek(0)
            said = out.read().decode(errors="replace").partition("\n")[2], err.read().decode(errors="replace")
        return Done(process.returncode, *said, time.monotonic() - begin)

    def end(self):
        """Kills running programs and starts no more, since other threads may wait for programs."""
        self.deadline = 0
        for process in list(self.running):
            kill(process)

    def frostpipe(self, *words, code=0, **more):
        log = self.next_log()
        done = self.run([self.options.frostpipe, *words], log=log, **more)
        if done.returncode != code:
            raise Failure(f"frostpipe {words[0]} ended with {done.returncode} instead of {code}: "
                          f"{sentence_of(done.stderr)} ({log.relative_to(self.folder.parent)}.err)")
        return done

    def on_device(self):
        return ("--device", self.device)

    def train(self, plan, data, run, *words, keeps_model=False, **more):
        """Trains, and returns the run's summary and its stderr. Removes the model (gigabytes) unless `keeps_model`."""
        done = self.frostpipe("train", plan, "--data", data, "-o", run, "--overwrite", *self.on_device(), *words,
                              **more)
        if not keeps_model:
            shutil.rmtree(self.folder / run / "model")
        return self.read(f"{run}/summary.json"), done.stderr

    def compared(self, plan, run):
        """Returns the run from the summary of `compare`, with predictions."""
        said = self.frostpipe("compare", plan, f"{run}/summary.json", "--format", "json").stdout
        return next(iter(json.loads(said)["runs"].values()))

    def read(self, name):
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def write(self, name, value):
        (self.folder / name).write_text(json.dumps(value), encoding="utf-8")
