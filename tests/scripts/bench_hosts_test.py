"""scripts/bench-hosts with a script in place of frostpipe. Oracle: the script's made-up times, and the started
ranks."""
import json
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from fake_tool import FakeToolTest
from hosts import reason_without_hosts

# A pipeline takes 100 ms (110 predicted), replicas take 200 ms as predicted.
PROGRAM = """case "$1" in
  --version) echo "frostpipe made-up" ;;
  profile) echo "$RANK of $WORLD_SIZE on $(hostname)" >>"$0.started"
    test -z "$FAILS" || { echo "frostpipe: cannot measure" >&2; exit 1; }
    echo '{}' >profile.json; echo '{"inter_node": {"of": "the test"}}' >cluster.json ;;
  plan) test -z "$PLANS_NOTHING" || { echo "frostpipe: no plan fits" >&2; exit 1; }
    case "$*" in *pp=2*) layout=2 other=1 ns=110000000 ;; *) layout=1 other=2 ns=200000000 ;; esac
    for last; do :; done
    echo "{\\"phases\\": [{\\"layout\\": {\\"pipeline_parallel_size\\": $layout, \\"data_parallel_size\\": $other},
      \\"predicted\\": {\\"iteration_ns\\": $ns}}]}" >"$last" ;;
  train) mkdir -p "${2%.json}"
    case "$2" in pipeline*) ns=100000000 ;; *) ns=200000000 ;; esac
    echo "{\\"phases\\": [{\\"measured_iteration_ns\\": $ns}]}" >"${2%.json}/summary.json" ;;
esac"""


@unittest.skipIf(reason_without_hosts(), reason_without_hosts())
class BenchHostsTest(FakeToolTest):
    def setUp(self):
        super().setUp()
        (self.folder / "model").mkdir()
        (self.folder / "data.tsv").write_text("text\tlabel\n")

    def run_script(self, program, *more):
        self.tool_does(program)
        return subprocess.run([sys.executable, "-B", ROOT / "scripts/bench-hosts", "--frostpipe", self.tool, "--model",
                               self.folder / "model", "--data", self.folder / "data.tsv", "--megabits", "0", "--rounds",
                               "2", "-o", self.folder / "out", *more], capture_output=True, text=True, check=False)

    def figures(self):
        return json.loads((self.folder / "out/figures.json").read_text())

    def test_a_row_has_what_was_predicted_and_measured(self):
        done = self.run_script(PROGRAM)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| unshaped | 110 | 100 (100 to 100) | +10.0 | 200 | 200 (200 to 200) | +0.0 | 1 x 2 |\n",
                      done.stdout)
        started = (self.folder / "frostpipe.started").read_text().splitlines()
        self.assertEqual(sorted(started), ["0 of 2 on a", "1 of 2 on b"])
        self.assertEqual(self.figures()["cases"][0]["link"], {"of": "the test"})

    def test_a_rate_without_figures_is_named(self):
        done = self.run_script("FAILS=1\n" + PROGRAM)
        self.assertEqual(done.returncode, 1)
        self.assertIn("0 Mbit/s: no figures: frostpipe: cannot measure", done.stdout)
        self.assertEqual(self.figures()["missing"], ["0 Mbit/s"])

    def test_a_failed_plan_is_reported_and_the_next_rate_is_measured(self):
        first_rate = '[ "$(grep -c . "$0.started")" != 2 ]'  # its two ranks have profiled, and no others yet
        done = self.run_script(f"{first_rate} || PLANS_NOTHING=1\n{PROGRAM}", "--megabits", "1000", "0")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("1000 Mbit/s: no figures: frostpipe: no plan fits (status 1 of ", done.stdout)
        self.assertIn("| unshaped | 110 |", done.stdout)
        self.assertEqual(self.figures()["missing"], ["1000 Mbit/s"])

    def test_missing_files_are_reported_in_a_sentence(self):
        for option in ("--model", "--data", "--frostpipe"):
            with self.subTest(option):
                done = self.run_script(PROGRAM, option, self.folder / "nowhere")
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(done.stderr, rf"^bench-hosts: {option}: .*nowhere.*\n$")


if __name__ == "__main__":
    unittest.main()
