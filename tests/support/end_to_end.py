"""Runs the tool as a user does, on the tiny model. Every process that a test starts is ended with the test."""

import atexit
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "bench"))
import tiny_model
from running import environment_without_job

FROSTPIPE = os.path.abspath(os.environ["FROSTPIPE"]) if "FROSTPIPE" in os.environ else shutil.which("frostpipe")
GLOBAL_BATCH = 16
DATA_SAMPLES = 200      # of data.tsv, of which a fifth is held out unless there is other data to test on
LEARNING_RATE = 0.005  # the tiny model learns its data in some 60 steps of this
HANG_SECONDS = 300  # after this a command counts as hanging, even on a slow machine

# The folder that CTest's fixture fills for all of its tests (fill_shared); without it, every run of Python fills one.
SHARED_FOLDER = os.environ.get("FROSTPIPE_SHARED_FOLDER")

# Output that no user should ever see: a C++ stack, a library's own log, an uncaught exception.
NOT_FOR_USERS = re.compile(r"frame #|Exception raised from|terminate called|what\(\)|core dumped|this is a "
                           r"bug|^\[[WEI]\d{3}", re.MULTILINE)


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def processes_naming(folder):
    """Running processes whose command line names `folder`."""
    found, name = [], os.fsencode(str(folder))
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            command = Path(f"/proc/{entry}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if name in command and is_alive(int(entry)):
            found.append(int(entry))
    return found


def rank_of_process(pid):
    """RANK in the process's environment; None if it has none."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    for entry in environment.split(b"\0"):
        if entry.startswith(b"RANK="):
            return int(entry[5:])
    return None


def has_done(scalars, steps):
    """Whether the run that writes its figures to that file has done this number of steps."""
    return scalars.exists() and scalars.read_text().count('"loss"') >= steps


class Started:
    """A process whose output goes to files, so that it can be read while the process runs."""

    def __init__(self, test, arguments, environment, name, wrapper):
        self.out_path, self.err_path = test.folder / f"{name}.out", test.folder / f"{name}.err"
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen([*wrapper, FROSTPIPE, *map(str, arguments)], cwd=test.folder,
                                            env=environment, stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=err, start_new_session=True)
        self.pid = self.process.pid

    @property
    def stdout(self):
        return self.out_path.read_text()

    @property
    def stderr(self):
        return self.err_path.read_text()

    def ended_within(self, seconds):
        """The exit code, or None if it still runs after `seconds` seconds."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


class EndToEndTest(unittest.TestCase):
    maxDiff = None

    data = "data.tsv"  # the default training data
    shared = None  # a folder with the tiny model, its data, its profile on two ranks and a plan of each method

    @classmethod
    def setUpClass(cls):
        if not FROSTPIPE:
            raise unittest.SkipTest("FROSTPIPE must name the tool")
        if EndToEndTest.shared is not None:
            return
        if SHARED_FOLDER:
            EndToEndTest.shared = Path(SHARED_FOLDER)
            return
        folder = Path(tempfile.mkdtemp(prefix="frostpipe-e2e-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        cls.fill_shared(folder)
        EndToEndTest.shared = folder

    @classmethod
    def fill_shared(cls, folder):
        tiny_model.write_model(folder / "model")
        tiny_model.write_data(folder / "data.tsv")
        cls.call(folder, "profile", "--model", "model", "--data", "data.tsv", "--global-batch", GLOBAL_BATCH,
                 "--micro-batch-sizes", "1,4,16",
                 "--memory-limit", "64MiB", "--cluster", "cluster.json", "-o", "profile.json")
        for method in ("data-parallel", "static", "pipetransformer", "pipetransformer-published"):
            # This excludes data parallelism and other schedules, which may be faster on a busy machine.
            start = {"pipetransformer": ["--fix", "pp=2"], "static": ["--schedule", "1F1B"]}.get(method, [])
            cls.call(folder, "plan", "--profile", "profile.json", "--cluster", "cluster.json",
                     "--global-batch", GLOBAL_BATCH,
                     "--method", method, *start, "--epochs", 6, "-o", f"{method}.json")

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="frostpipe-e2e-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for entry in self.shared.iterdir():
            if entry.is_dir():
                shutil.copytree(entry, self.folder / entry.name)
            else:
                shutil.copy(entry, self.folder / entry.name)
        self.addCleanup(self.end_every_process)

    def end_every_process(self):
        for pid in processes_naming(self.folder):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    # ---- files

    def write(self, name, value):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path

    def read(self, name):
        return json.loads((self.folder / name).read_text())

    def edit(self, name, change):
        value = self.read(name)
        change(value)
        self.write(name, value)

    def contents(self, folder):
        """{relative path: bytes} of every file below."""
        root = self.folder / folder
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}

    # ---- processes

    @staticmethod
    def environment(**more):
        environment = environment_without_job()
        environment.setdefault("OMP_WAIT_POLICY", "passive")  # spinning, threads take the cores of other tests
        environment.update({key: str(value) for key, value in more.items()})
        return environment

    @classmethod
    def call(cls, folder, *arguments, code=0, timeout=HANG_SECONDS, environment=None, prepare=None):
        """The finished process, whose exit code must be `code`. Its whole session is killed if it takes too long."""
        process = subprocess.Popen([FROSTPIPE, *map(str, arguments)], cwd=folder, env=environment or cls.environment(),
                                   text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True,
                                   preexec_fn=prepare, restore_signals=prepare is None)
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            raise AssertionError(f"{arguments}: still running after {timeout} s\n{stdout}\n{stderr}") from None
        if process.returncode != code:
            raise AssertionError(f"{arguments}: exit code {process.returncode}, not {code}\n{stdout}\n{stderr}")
        if NOT_FOR_USERS.search(stderr):
            raise AssertionError(f"{arguments}: says what is not for users:\n{stderr}")
        return subprocess.CompletedProcess(arguments, process.returncode, stdout, stderr)

    def run_tool(self, *arguments, **keywords):
        return self.call(self.folder, *arguments, **keywords)

    def start(self, *arguments, name="started", wrapper=(), **variables):
        started = Started(self, arguments, self.environment(**variables), name, wrapper)
        self.addCleanup(started.process.wait, 10)  # cleanups run last first: killed, then reaped
        self.addCleanup(self.end_every_process)
        return started

    def wait_until(self, condition, seconds, what):
        until = time.monotonic() + seconds
        while not (value := condition()):
            self.assertLess(time.monotonic(), until, f"not within {seconds} s: {what() if callable(what) else what}")
            time.sleep(0.05)
        return value

    def assert_no_process_within(self, seconds):
        self.wait_until(lambda: not processes_naming(self.folder), seconds,
                        lambda: f"processes {processes_naming(self.folder)} to be gone")

    def assert_refused(self, *arguments, says, code=1, **keywords):
        """The command fails with this code, says all of this on stderr in one line and nothing on stdout."""
        done = self.run_tool(*arguments, code=code, **keywords)
        self.assertEqual(done.stdout, "")
        lines = [line for line in done.stderr.splitlines() if all(text in line for text in says)]
        self.assertTrue(lines, f"no line says all of {says}:\n{done.stderr}")
        self.assertTrue(lines[0].startswith("frostpipe: "), done.stderr)
        self.assert_no_process_within(2)
        return done.stderr

    # ---- training

    def of_length(self, plan, num_steps, forget=("epochs", "workload")):
        """Changes the plan to `num_steps` steps on any data; its phases do not change."""
        value = self.read(plan)
        for known in forget:
            value.pop(known, None)
        value["num_steps"] = num_steps
        value["phases"] = [phase for phase in value["phases"] if phase["from_step"] < num_steps]
        self.write(plan, value)
        return plan

    def train_arguments(self, plan, output, *options, data=None):
        """For --epochs N, which `train` does not have, the plan is changed to that length."""
        data = data or self.data
        epochs = 0
        if "--epochs" in options:
            at = options.index("--epochs")
            epochs, options = int(options[at + 1]), (*options[:at], *options[at + 2:])
        if epochs > 0 and data == "data.tsv":
            training_samples = DATA_SAMPLES if "--test-data" in options else DATA_SAMPLES * 4 // 5
            num_steps = epochs * -(-training_samples // self.read(plan)["global_batch_size"])
            if self.read(plan)["num_steps"] != num_steps:
                self.of_length(plan, num_steps)
            elif self.read(plan).get("epochs", epochs) != epochs:
                self.edit(plan, lambda known: known.update(epochs=epochs))
        # The full path of the output marks the processes of this run.
        return ["train", plan, "--data", data, "--learning-rate", LEARNING_RATE, "-o", self.folder / output, *options]

    def train(self, plan, output, *options, data=None, **keywords):
        """The run's summary."""
        done = self.run_tool(*self.train_arguments(plan, output, *options, data=data), **keywords)
        for line in done.stderr.splitlines():
            self.assertRegex(line, r"^(train |frostpipe: )")
        return self.read(f"{output}/summary.json")

    def losses(self, run):
        return [step["loss"] for step in run["steps"]]

    def assert_losses_equal(self, first, second, num_steps, tolerance):
        self.assertGreaterEqual(min(len(first["steps"]), len(second["steps"])), num_steps)
        for step, (a, b) in enumerate(zip(self.losses(first)[:num_steps], self.losses(second))):
            self.assertLessEqual(abs(a - b), tolerance * max(abs(a), abs(b)), f"step {step}: {a} and {b}")


def limit_file_size(num_bytes):
    """For `prepare`: limits every file that the process writes, with an error as on a full disk."""

    def prepare():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, num_bytes))

    return prepare


if __name__ == "__main__":  # CTest's fixture: end_to_end.py FOLDER
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    EndToEndTest.fill_shared(Path(sys.argv[1]))
