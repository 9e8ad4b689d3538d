"""scripts/gpu-check itself: its output without a GPU, that it goes on after failures, and its use of figures.
tests/end_to_end/gpu_check_test.py runs the whole script."""
import json
import pathlib
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(ROOT / "bench/gpu"))
sys.path.insert(0, str(ROOT / "tests/support"))
import facts
import inputs
import memcheck
import programs
import rest
import workflow
from fake_tool import FakeToolTest
from results import FAILED, Check, Results

class GpuCheckTest(FakeToolTest):
    def setUp(self):
        super().setUp()
        self.tool_does("echo 'frostpipe: profile: it is broken' >&2; exit 1")

    def run_script(self, *options):
        return subprocess.run([sys.executable, "-B", ROOT / "scripts/gpu-check", "--frostpipe", self.tool, "--python",
                               "/bin/false", "-o", self.folder / "out", *options], capture_output=True, text=True,
                              timeout=120, check=False)

    @unittest.skipIf(facts.gpus()[0], "this machine has a GPU")
    def test_without_a_gpu_it_says_so_in_one_sentence_and_writes_nothing(self):
        done = self.run_script()
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertRegex(done.stderr, r"^gpu-check: there is no GPU on this machine, so nothing was checked: [^\n]+\n$")
        self.assertFalse((self.folder / "out").exists())

    def test_wrong_use_is_said(self):
        for options in (["--sections", "all"], ["--device", "tpu"], ["--rounds", "0"],
                        ["--frostpipe", self.folder / "none"]):
            done = self.run_script(*options)
            self.assertEqual(done.returncode, 2)
            self.assertIn("error: ", done.stderr)

    def test_it_goes_on_after_failures_and_keeps_all_results(self):
        done = self.run_script("--device", "cpu", "--size", "small")
        self.assertEqual(done.returncode, 1, done.stderr)
        result = json.loads((self.folder / "out/gpu-check.json").read_text())
        text = (self.folder / "out/gpu-check.txt").read_text()
        self.assertEqual((result["format"], result["judges_targets"]), ("frostpipe.gpu_check", False))
        checks = {check["name"]: check for check in result["checks"]}
        self.assertEqual([check["section"] for check in result["checks"]],
                         ["first"] + 8 * ["steps"] + 2 * ["job"] + ["tests"] + 6 * ["ranks"] + 2 * ["nccl"] +
                         5 * ["rest"] + ["memcheck"])
        self.assertEqual(checks["all"]["status"], "skipped")  # no test program is beside the tool
        self.assertIn("frostpipe_executor_tests", checks["all"]["note"])
        broken = checks["a step of bert-small in float32 compared with eager PyTorch"]
        self.assertEqual(broken["status"], "failed")
        self.assertRegex(broken["note"], r"profile ended with 1 instead of 0: .*it is broken "
                                         r"\(gpu-check-work/logs/001\.err\)")
        self.assertEqual(checks["training resumes from a checkpoint"]["status"], "failed")  # there is none
        for name in checks:
            self.assertIn(name, text)

    def test_work_may_be_in_another_folder(self):
        self.run_script("--device", "cpu", "--size", "small", "--sections", "ranks", "--work", self.folder / "work")
        self.assertTrue((self.folder / "work/logs/001.err").exists())
        self.assertEqual({path.name for path in (self.folder / "out").iterdir()}, {"gpu-check.json", "gpu-check.txt"})

    def test_a_second_run_finds_nothing_of_the_first_and_leaves_what_is_not_its_own(self):
        own = self.folder / "out/gpu-check-work"
        others = [self.folder / "out" / name for name in ("notes.txt", "work/notes.txt", "logs/notes.txt")]
        for path in (own / "gpt2-two.plan.json", *others):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
        self.run_script("--device", "cpu", "--size", "small", "--sections", "ranks")
        self.assertFalse((own / "gpt2-two.plan.json").exists())
        self.assertTrue((own / "logs/001.err").exists())
        for path in others:
            self.assertTrue(path.exists(), path)

    def test_a_test_program_that_lists_no_tests_is_a_failure(self):
        listing = "#!/bin/sh\necho '%s.'; echo '  IsThere'\n"
        for script, options, note in (
                ("#!/bin/sh\necho 'no such library' >&2\nexit 127\n", [], "ended with 127: no such library"),
                ("#!/bin/sh\nexit 0\n", [], r"has no tests On/Devices\.\*/cpu; is it the program frostpipe_exec"),
                (listing % "RanksOnDevice", ["--only-tests", "None"], "--only-tests None: matches none of 3 tests, "
                                                                      r"such as RanksOnDevice\.IsThere")):
            program = self.folder / "tests"
            program.write_text(script)
            program.chmod(0o755)
            done = self.run_script("--device", "cpu", "--size", "small", "--sections", "tests", "--tests", program,
                                   *options)
            self.assertEqual(done.returncode, 1, done.stdout)
            check, *_ = json.loads((self.folder / "out/gpu-check.json").read_text())["checks"]
            self.assertEqual((check["name"], check["status"]), ("beginning of the tests", "failed"))
            self.assertRegex(check["note"], note)

    TESTS = """#!/bin/sh
case "$*" in
    *list_tests*On/*) echo 'On/Devices.'; echo '  First/cpu' ;;
    *list_tests*) echo 'RanksOnDevice.'; for i in 1 2 3 4 5 6; do echo "  Test$i"; done ;;
    *) echo $$ >>FOLDER/started; WAIT
       for last; do :; done
       echo '{"testsuites": [{"testsuite": [{"result": "COMPLETED"}]}]}' >${last#--gtest_output=json:} ;;
esac
"""

    def make_tests(self, wait):
        program = self.folder / "tests"
        program.write_text(self.TESTS.replace("WAIT", wait).replace("FOLDER", str(self.folder)))
        program.chmod(0o755)
        return ["--device", "cpu", "--size", "small", "--sections", "tests", "--tests", program]

    @staticmethod
    def runs(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except FileNotFoundError:
            return False

    def started(self):
        return [int(pid) for pid in (self.folder / "started").read_text().split()]

    def test_every_test_counts_with_its_own_time(self):
        self.assertEqual(self.run_script(*self.make_tests("sleep 0.2")).returncode, 0)
        checks = json.loads((self.folder / "out/gpu-check.json").read_text())["checks"]
        # Both patterns of tests that have the device alone match the first.
        self.assertEqual([check["status"] for check in checks], 8 * ["passed"])
        for check in checks:
            self.assertGreater(check["seconds"], 0.19, check["name"])

    def test_tests_of_ranks_run_at_once_where_there_are_the_cores(self):
        # Each of them ends when three of them have begun.
        until = "case \"$*\" in *Ranks*) until [ $(wc -l <FOLDER/started) -ge 5 ]; do sleep 0.01; done ;; esac"
        arguments = ["gpu-check", *map(str, self.make_tests(until)), "--frostpipe", str(self.tool), "--python",
                     "/bin/false", "-o", str(self.folder / "out"), "--minutes", "0.5"]
        script = runpy.run_path(str(ROOT / "scripts/gpu-check"))
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        with mock.patch("sys.argv", arguments), mock.patch("os.sched_getaffinity", lambda _: set(range(12))):
            self.assertEqual(script["main"](), 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        self.assertEqual(len(self.started()), 8)

    def test_a_signal_ends_it_and_all_that_it_has_started(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            (self.folder / "started").unlink(missing_ok=True)
            process = subprocess.Popen([sys.executable, "-B", ROOT / "scripts/gpu-check", "--frostpipe", self.tool,
                                        "--python", "/bin/false", "-o", self.folder / "out", "--only-tests", "Test",
                                        *self.make_tests("sleep 600")], stdout=subprocess.DEVNULL)
            while not (self.folder / "started").exists() or not self.started():
                time.sleep(0.01)
            process.send_signal(number)
            self.assertEqual(process.wait(20), 128 + number)
            for pid in self.started():
                while self.runs(pid):  # until the signal has ended it
                    time.sleep(0.01)

    def test_no_mistake_in_a_check_or_in_a_list_of_checks_ends_the_script(self):
        script = runpy.run_path(str(ROOT / "scripts/gpu-check"))

        def divide(check):
            if isinstance(check, Check):
                check.figures["found before"] = 2
            return 1 / 0

        results = Results(self.folder, {}, judges=True)
        script["perform"](Check("ranks", "one"), divide, results)
        script["SECTIONS"]["ranks"] = mock.Mock(checks=divide)
        self.assertEqual(list(script["checks_of"]("ranks", None, results)), [])
        self.assertEqual([(check.name, check.status, check.note) for check in results.checks],
                         [(name, FAILED, "ZeroDivisionError: division by zero")
                          for name in ("one", "beginning of the ranks")])
        self.assertEqual(results.checks[0].figures, {"found before": 2})  # what was measured is not lost

    def test_checks_that_do_not_fit_into_the_time_are_left_out(self):
        done = self.run_script("--device", "cpu", "--size", "small", "--minutes", "0", "--sections", "steps")
        self.assertEqual(done.returncode, 1)
        result = json.loads((self.folder / "out/gpu-check.json").read_text())
        self.assertEqual([check["status"] for check in result["checks"]][:2], ["left out", "left out"])

    def test_the_diagnosis_is_kept_where_something_is_missing(self):
        problem = {"missing": "LibTorch", "to_do": "install it"}
        self.tool_does(f"echo '{json.dumps({'problems': [problem]})}'; exit 1")
        self.assertEqual(facts.all_facts(self.tool, sys.executable, (None, ""))["doctor"], {"problems": [problem]})

    def test_a_doctor_without_a_diagnosis_ends_nothing(self):
        for script, kept in (("echo 'no JSON'", "no JSON"),
                             ("kill $$", "frostpipe doctor failed, or did not end within 300 s")):
            self.tool_does(script)
            self.assertEqual(facts.all_facts(self.tool, sys.executable, (None, ""))["doctor"], kept)


class ProgramsTest(unittest.TestCase):
    def test_a_program_that_hangs_has_failed_whichever_limit_comes_first(self):
        folder = tempfile.TemporaryDirectory(prefix="frostpipe-gpu-check-")
        self.addCleanup(folder.cleanup)
        (pathlib.Path(folder.name) / "logs").mkdir()
        for left, most, limit in ((1, 600, "the rest of its section's share of --minutes"), (600, 1, "its limit")):
            runner = programs.Programs(None, pathlib.Path(folder.name), "cpu", time.monotonic() + left)
            with mock.patch("programs.LEAST_SECONDS", 0), self.assertRaisesRegex(
                    programs.Failure, rf"^sleep did not end within 1 s, {limit}, and was killed; see "):
                runner.run(["sleep", 1000], most_seconds=most)

    def test_a_section_that_hangs_leaves_those_after_it_their_share(self):
        folder = tempfile.TemporaryDirectory(prefix="frostpipe-gpu-check-")
        self.addCleanup(folder.cleanup)
        (pathlib.Path(folder.name) / "logs").mkdir()
        runner = programs.Programs(None, pathlib.Path(folder.name), "cpu", time.monotonic() + 100)
        with mock.patch("programs.LEAST_SECONDS", 0):
            runner.begin_section(0.005)
            with self.assertRaises(programs.TookTooLong):
                runner.run(["sleep", 1000])
            with self.assertRaises(programs.NoTime):
                runner.run(["true"])
            runner.begin_section(1)
            self.assertEqual(runner.run(["true"]).returncode, 0)


class WaitsTest(unittest.TestCase):
    def waits(self, per_step):
        """The result for a run that waits this often in a step, and three times at its beginning and end."""
        steps = []

        def plan(_, *words, **__):
            steps.append(words[words.index("--steps") + 1])

        def train(*_, **__):
            return {}, f"{rest.WAITED}\n" * (3 + per_step * steps[-1])

        runner = mock.Mock(device="cuda", jobs=inputs.SMALL, folder=pathlib.Path("none"), frostpipe=plan, train=train)
        check = Check("rest", "waits")
        rest.waits_of_the_host(runner, check)
        return check.figures, check.targets

    def test_one_in_an_iteration_is_well_and_more_are_not(self):
        for per_step in (1, 2, 3):
            figures, targets = self.waits(per_step)
            self.assertEqual(figures, {"host's waits per iteration": per_step,
                                       "host's waits per iteration with CUDA graphs": per_step})
            self.assertEqual([target.is_met for target in targets], 2 * [per_step <= 1])


class SanitizerTest(unittest.TestCase):
    """Uses a program that reports no errors, and `results` for the tests that it ran."""

    def watch(self, *results):
        folder = tempfile.TemporaryDirectory(prefix="frostpipe-gpu-check-")
        self.addCleanup(folder.cleanup)
        folder = pathlib.Path(folder.name)
        (folder / "logs").mkdir()
        report = json.dumps({"testsuites": [{"testsuite": [{"result": result} for result in results]}]})
        fake = folder / "compute-sanitizer"
        fake.write_text(f"#!/bin/sh\necho '========= ERROR SUMMARY: 0 errors'\n"
                        f"for last; do :; done\necho '{report}' > ${{last#--gtest_output=json:}}\n")
        fake.chmod(0o755)
        runner = programs.Programs(types.SimpleNamespace(tests=folder / "tests"), folder, "cuda", time.monotonic() + 60)
        runner.sanitizer, runner.libraries = fake, {}
        check = Check("tests", "memcheck")
        memcheck.sanitizer(runner, check)
        return check.figures

    def test_it_has_watched_a_test(self):
        self.assertEqual(self.watch("COMPLETED", "SKIPPED"), {"said": "ERROR SUMMARY: 0 errors", "tests": 1})
        for results in ([], ["SKIPPED", "SKIPPED"]):
            with self.assertRaisesRegex(programs.Failure, "no test ran under compute-sanitizer"):
                self.watch(*results)


class LossesTest(unittest.TestCase):
    def test_losses_that_are_no_numbers_are_never_alike(self):
        self.assertAlmostEqual(workflow.require_alike([2.02, 3.0], [2.0, 3.0], 0.011, "the others"), 0.01)
        for ours, others in (([2.03], [2.0]), ([float("nan")], [2.0]), ([2.0, 1.0], [2.0, float("nan")])):
            with self.assertRaisesRegex(programs.Failure, "our losses and the others differ by"):
                workflow.require_alike(ours, others, 0.011, "the others")


if __name__ == "__main__":
    unittest.main()
