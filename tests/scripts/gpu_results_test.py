"""The results that scripts/gpu-check keeps of its checks, and its synthetic models and data."""
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/gpu"), str(ROOT / "bench/peers")]
import inputs
import order
from results import FAILED, LEFT_OUT, SKIPPED, Check, Results, Target


class ResultsTest(unittest.TestCase):
    def results(self, judges):
        folder = tempfile.TemporaryDirectory(prefix="frostpipe-gpu-check-")
        self.addCleanup(folder.cleanup)
        return Results(pathlib.Path(folder.name), {"facts": {"gpus": []}}, judges)

    def test_targets_are_met_at_their_limits_and_never_by_what_is_no_number(self):
        self.assertTrue(Target("", 1.05, 1.05).is_met)
        self.assertFalse(Target("", 1.0501, 1.05).is_met)
        self.assertTrue(Target("", 0.8, least=0.8).is_met)
        self.assertFalse(Target("", 0.79, least=0.8).is_met)
        self.assertFalse(Target("", float("nan"), 1).is_met)

    def test_a_missed_target_counts_where_targets_are_judged(self):
        for judges in (True, False):
            results = self.results(judges)
            results.add(Check("rest", "a step", targets=[Target("step", 2, 1)]))
            self.assertEqual(results.is_good(), not judges)
            self.assertIn("missed    step: 2 (at most 1)", results.text())
            self.assertEqual(results.verdict(), "1 passed; 1 targets missed" if judges else "1 passed")

    def test_results_are_written_at_once(self):
        results = self.results(True)
        written = lambda: json.loads((results.folder / "gpu-check.json").read_text())
        self.assertEqual(written()["facts"], {"gpus": []})
        results.add(Check("steps", "a", figures={"ours [ms]": 2}))
        self.assertEqual(written()["checks"][0]["figures"], {"ours [ms]": 2})

    def test_skipped_checks_are_good_and_failed_ones_are_not(self):
        results = self.results(True)
        results.add(Check("tests", "a", SKIPPED, note="why"))
        self.assertTrue(results.is_good())
        results.add(Check("tests", "b", FAILED))
        self.assertFalse(results.is_good())
        self.assertEqual(results.verdict(), "1 failed, 1 skipped")

    def test_a_check_that_was_left_out_has_not_passed(self):
        results = self.results(True)
        results.add(Check("tests", "a", LEFT_OUT))
        self.assertFalse(results.is_good())
        self.assertEqual(results.verdict(), "1 left out")


class InputsTest(unittest.TestCase):
    def test_data_have_as_many_training_samples_as_an_epoch_of_the_steps_takes(self):
        with tempfile.TemporaryDirectory(prefix="frostpipe-gpu-check-") as name:
            folder = pathlib.Path(name)
            inputs.write_all(folder, inputs.SMALL)
            for job in inputs.SMALL.values():
                if job.reads_blocks:
                    blocks = len((folder / job.data).read_text()) // job.tokens
                    training = blocks - int(blocks * 0.2 + 0.5)
                else:
                    rows = (folder / job.data).read_text().splitlines()[1:]
                    labels = [int(row.rpartition("label")[2]) for row in rows]
                    self.assertEqual(set(labels), set(range(inputs.LABELS)))
                    training = len(order.hold_out(labels, 0.2, 1)[0])
                    words = (folder / job.name / "vocab.txt").read_text().splitlines()
                    self.assertEqual(len(words), job.config["vocab_size"])
                    self.assertLessEqual({word for row in rows for word in row.split("\t")[0].split()}, set(words))
                self.assertGreaterEqual(training * job.epochs, job.batch * job.steps, job.name)

    def test_the_llama_is_qwens(self):
        """The model has 494,032,768 parameters, as on the card of Qwen2.5-0.5B."""
        config = inputs.FULL["llama"].config
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        keys = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
        block = 2 * hidden + hidden * (2 * hidden + 2 * keys + 3 * inner) + hidden + 2 * keys
        self.assertEqual(config["vocab_size"] * hidden + config["num_hidden_layers"] * block + hidden, 494_032_768)


if __name__ == "__main__":
    unittest.main()
