"""scripts/bench-schedules and scripts/bench-zero-bubble if frostpipe gives no figures. Oracle: a script in its place
that follows the test; exit code, message, and the content of figures.json."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
PROGRAM = """#!/bin/sh
case "$1" in
  --version) echo "frostpipe made-up" ;;
  profile) case "$*" in *nosuch*) echo "frostpipe: nosuch: is no shape" >&2; exit 1 ;; esac ;;
  plan) %s ;;
  simulate) echo '{}' ;;
esac
"""


class BenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_script(self, name, *arguments, plan="echo '{}'"):
        program = self.folder / "frostpipe"
        program.write_text(PROGRAM % plan)
        program.chmod(0o755)
        return subprocess.run([sys.executable, "-B", SCRIPTS / name, "--frostpipe", program, "-o", self.folder / "out",
                               *arguments], capture_output=True, text=True, check=False)

    def figures(self):
        return json.loads((self.folder / "out/figures.json").read_text())

    def test_a_case_without_figures_is_named(self):
        refuses = 'echo "frostpipe: too few samples" >&2; exit 1'
        for name, arguments, cases in [
            ("bench-schedules", ("--ranks", "4", "--schedules", "1F1B", "ZB-H1"),
             ["bert-large 1F1B on 4 ranks", "bert-large ZB-H1 on 4 ranks"]),
            ("bench-schedules", ("--ranks", "4", "--baselines", "--predict-only"),
             [f"bert-large {kind} {schedule} on 4 ranks" for kind in ("unfrozen", "frozen")
              for schedule in ("best", "GPipe", "1F1B")]),
            ("bench-zero-bubble", ("--models", "1.5B", "--micro-batches", "24", "--schedules", "ZB-H1"),
             ["1.5B, 24 micro-batches, ZB-H1"]),
        ]:
            with self.subTest(name, arguments=arguments):
                done = self.run_script(name, *arguments, plan=refuses)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"{cases[0]}: no figures: frostpipe: too few samples", done.stdout)
                self.assertEqual(done.stderr, f"{name}: {len(cases)} of {len(cases)} cases have no figures: "
                                              f"{', '.join(cases)}\n")
                self.assertEqual(self.figures(),
                                 {"frostpipe": ["frostpipe made-up"], "missing": cases, "cases": []})

    def test_a_model_that_has_no_profile_takes_no_figures_from_the_others(self):
        for arguments, of_one in [
            (("--schedules", "1F1B", "ZB-H1"), ["1F1B on 4 ranks", "ZB-H1 on 4 ranks"]),
            (("--baselines", "--predict-only"), [f"{kind} {schedule} on 4 ranks" for kind in ("unfrozen", "frozen")
                                                 for schedule in ("best", "GPipe", "1F1B")])]:
            with self.subTest(arguments=arguments):
                done = self.run_script("bench-schedules", "--ranks", "4", "--like", "nosuch", "bert-large", *arguments)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("no figures: frostpipe: nosuch: is no shape", done.stdout)
                # bert-large has none either, but each case was begun: this frostpipe's plans are empty.
                self.assertEqual(self.figures()["missing"],
                                 [f"{model} {case}" for model in ("nosuch", "bert-large") for case in of_one])

    def test_a_field_that_is_not_there_is_named(self):
        done = self.run_script("bench-schedules", "--ranks", "4", "--schedules", "1F1B")
        self.assertEqual(done.returncode, 1)
        self.assertIn("4.1F1B.json: has no field phases; is the program of the same version as this script?",
                      done.stdout)

    def test_invalid_json_is_reported(self):
        done = self.run_script("bench-schedules", "--ranks", "4", "--schedules", "1F1B", plan="echo none")
        self.assertEqual(done.returncode, 1)
        self.assertIn("plan 1F1B: is no JSON", done.stdout)

    def test_wrong_use(self):
        for name, arguments, says in [("bench-schedules", ("--schedules", "2F2B"), "invalid choice: '2F2B'"),
                                      ("bench-schedules", ("--steps", "2"), "--steps: must be at least 3, is 2"),
                                      ("bench-zero-bubble", ("--steps", "1"), "--steps: must be at least 2, is 1")]:
            with self.subTest(name, arguments=arguments):
                done = self.run_script(name, *arguments)
                self.assertEqual(done.returncode, 2)
                self.assertIn(says, done.stderr)

    def test_a_program_that_is_not_there(self):
        for name in ("bench-schedules", "bench-zero-bubble"):
            done = self.run_script(name, "--frostpipe", self.folder / "none")
            self.assertEqual((done.returncode, done.stderr),
                             (1, f"{name}: --frostpipe: {self.folder}/none cannot be run (No such file or directory); "
                                 "give the path of a built frostpipe\n"))


if __name__ == "__main__":
    unittest.main()
