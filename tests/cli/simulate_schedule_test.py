"""`schedule --format json` predicts a schedule from the times of its actions."""

import json
import unittest

from support import CliTest


class SimulateScheduleTest(CliTest):
    def simulate(self, *options):
        return json.loads(self.run_tool("schedule", *options, "--format", "json").stdout)

    def test_zero_bubbles_published_rate(self):
        """Table 5 of Zero Bubble (Qi et al. 2023), 1.5B, p = 8, m = 24: ZB-H1 .1585, 1F1B .2431."""
        times = ("--pp", 8, "--micro-batches", 24, "--compute-ms", "18.522,18.086,9.337",
                 "--latency-ms", 0.601)
        found = self.simulate("ZB-H1", *times)
        self.assertAlmostEqual(found["span_bubble_fraction"], 0.1585, delta=0.00005)
        self.assertEqual(found["peak_in_flight"], [8] * 8)
        self.assertAlmostEqual(self.simulate("1f1b", *times)["span_bubble_fraction"], 0.2431, delta=0.00005)

    def test_closed_forms(self):
        """GPipe takes (m + p - 1)(F + I + W); if messages occupy their link, a hop adds their time."""
        found = self.simulate("GPipe", "--pp", 4, "--micro-batches", 8)
        self.assertEqual(found["makespan_ns"], 33_000_000)
        self.assertAlmostEqual(found["bubble_overhead"], 3 / 8)
        self.assertAlmostEqual(found["bubble_fraction"], 3 / 11)
        two = ("GPipe", "--pp", 2, "--micro-batches", 1)
        self.assertEqual(self.simulate(*two, "--message-ms", 1)["makespan_ns"], 8_000_000)
        self.assertEqual(self.simulate(*two, "--latency-ms", 0.5)["makespan_ns"], 7_000_000)

    def test_token_slices_shrink_the_bubble(self):
        """(m n + p - 1) (F + B), with the times of one slice."""
        for name in ("TeraPipe", "Seq1F1B"):
            found = self.simulate(name, "--pp", 4, "--micro-batches", 2, "--token-slices", 4)
            self.assertEqual(found["makespan_ns"], (2 * 4 + 3) * 3_000_000)

    def test_double_buffered_weights_leave_no_bubble(self):
        """PipeDream-2BW: an iteration takes the time of its work, m (F + B); a single iteration takes as long as
        1F1B."""
        found = self.simulate("PipeDream-2BW", "--pp", 4, "--micro-batches", 4)
        self.assertEqual((found["makespan_ns"], found["iteration_ns"]), (21_000_000, 12_000_000))
        self.assertEqual(found["steady_bubble_fraction"], 0)
        self.assertEqual(found["peak_in_flight"], [4, 3, 2, 1])

    def test_automatic_schedule_uses_the_memory_that_it_may(self):
        """Table 5 of Zero Bubble, ZB-2p .0433 + .005; with p micro-batches no worse than ZB-H1."""
        times = ("--pp", 8, "--micro-batches", 24, "--compute-ms", "18.522,18.086,9.337",
                 "--latency-ms", 0.601)
        found = self.simulate("AutoZeroBubble", *times, "--max-in-flight", 16)
        self.assertLessEqual(found["span_bubble_fraction"], 0.0483)
        self.assertLessEqual(max(found["peak_in_flight"]), 16)
        tight = self.simulate("AutoZeroBubble", *times, "--max-in-flight", 8)
        self.assertLessEqual(tight["span_bubble_fraction"], 0.1586)
        self.assertLessEqual(max(tight["peak_in_flight"]), 8)

    def test_a_csv_file_is_simulated(self):
        (self.folder / "mine.csv").write_text(self.run_tool("schedule", "1F1B", "--pp", 4, "--micro-batches", 8,
                                                            "--actions", "compute_comms",
                                                            "--format", "csv").stdout)
        found = self.simulate("mine.csv")
        self.assertEqual((found["makespan_ns"], found["ranks"], found["num_micro_batches"]), (33_000_000, 4, 8))
        self.assertEqual(found["engine"], "fast path")

    def test_text_names_its_figures(self):
        text = self.run_tool("schedule", "ZBVZeroBubble", "--format", "times").stdout
        for word in ("makespan", "span_bubble_fraction", "peak in flight"):
            self.assertIn(word, text)

    def test_shapes_that_there_are_not_are_wrong_use(self):
        self.assert_refused("schedule", "ZB-H2", "--pp", 8, "--micro-batches", 8, "--format", "times", code=2,
                            says="must be >= 2 p - 1")


if __name__ == "__main__":
    unittest.main()
