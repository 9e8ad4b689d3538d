"""`schedule`: its output in every format, and the messages of --check."""

import re
import unittest
import xml.etree.ElementTree

from support import CliTest


class ScheduleTest(CliTest):
    def test_1f1b_as_text(self):
        done = self.run_tool("schedule", "1F1B", "--pp", 2, "--micro-batches", 3, "--format", "text")
        self.assertEqual(done.stdout, "rank 0: 0F0 0F1 0B0 0F2 0B1 0B2\nrank 1: 1F0 1B0 1F1 1B1 1F2 1B2\n")
        self.assertEqual(done.stderr, "")

    def test_names_in_any_case(self):
        for name in ("gpipe", "GPipe"):
            done = self.run_tool("schedule", name, "--pp", 2, "--micro-batches", 2, "--format", "csv")
            self.assertEqual([line.split(",")[:3] for line in done.stdout.split()],
                             [["0F0", "0F1", "0B0"], ["1F0", "1F1", "1B0"]])

    def test_frozen_stages_run_forward_only(self):
        done = self.run_tool("schedule", "1F1B", "--pp", 2, "--micro-batches", 2, "--first-trainable-stage", 1,
                             "--format", "text", "--actions", "compute_comms")
        self.assertIn("rank 0: 0F0 0SEND_F0 0F1 0SEND_F1\n", done.stdout)

    def test_grid_is_the_default(self):
        self.assertIn("rank 1", self.run_tool("schedule", "GPipe", "--pp", 2).stdout)

    def test_schedule_check(self):
        made = self.run_tool("schedule", "ZBVZeroBubble", "--pp", 2, "--micro-batches", 3, "--actions", "compute_comms",
                             "--format", "csv").stdout
        (self.folder / "zbv.csv").write_text(made)
        self.assertIn("valid compute_comms with 2 ranks, 4 stages, 3 micro-batches",
                      self.run_tool("schedule", "--check", "zbv.csv").stdout)
        self.assertEqual(self.run_tool("schedule", "zbv.csv", "--format", "csv", "--actions", "compute_comms").stdout,
                         made)
        self.assert_refused("schedule", "zbv.csv", "--pp", 3, code=2, says="zbv.csv: says itself how many ranks")
        (self.folder / "stuck.csv").write_text("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n")
        self.assert_refused("schedule", "--check", "stuck.csv", code=1,
                            says=["wait for each other forever", "1RECV_F1", "waits for"])
        (self.folder / "twice.csv").write_text("0F0,0F1,,0F2,0F3,0F3\n1F0,1F1,1F2,1F3,1B0,1B1,1B2,1B3\n")
        self.assert_refused("schedule", "--check", "twice.csv", code=1,
                            says="pipeline rank 0, compute action 5: 0F3 stands twice (first: compute action 4)")
        self.assert_refused("schedule", "--check", "nowhere.csv", code=1, says="nowhere.csv")
        (self.folder / "one.csv").write_text("0F0,0B0\n")
        self.assertEqual(self.run_tool("schedule", "--check", "one.csv").stdout,
                         "one.csv: valid compute_only with 1 rank, 1 stage, 1 micro-batch\n")
        (self.folder / "frozen.csv").write_text("0F0\n1F0,1B0\n")
        self.assertIn(", the first stage frozen\n", self.run_tool("schedule", "--check", "frozen.csv").stdout)

    def test_options_that_a_check_ignores_are_refused(self):
        (self.folder / "mine.csv").write_text("0F0,0B0\n")
        for shape in (["--pp", 3], ["--micro-batches", 2], ["--virtual-stages", 2], ["--max-in-flight", 3]):
            self.assert_refused("schedule", "--check", "mine.csv", *shape, code=2,
                                says="mine.csv: says itself how many ranks")
        for name in ("mine.csv", "1F1B"):
            for shown in (["--format", "grid"], ["--actions", "compute_only"]):
                self.assert_refused("schedule", "--check", name, *shown, code=2, says=f"--check excludes {shown[0]}")
        for arguments in (["schedule", "--check", "1F1X"], ["schedule", "1F1X"],
                          ["schedule", "1F1X", "--format", "times"]):
            self.assert_refused(*arguments, code=2, says=["must be one of GPipe, 1F1B", "AutoZeroBubble", "\"1F1X\""])

    def test_a_check_compares_the_order_of_messages(self):
        # Rank 1 receives its second activation first. Matched by name each message finds its receive, by order none
        # does.
        (self.folder / "crossed.csv").write_text(
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
            "1RECV_F1,1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n")
        verdict = self.run_tool("schedule", "--check", "crossed.csv").stdout.splitlines()
        self.assertEqual(verdict[0], "crossed.csv: valid compute_comms with 2 ranks, 2 stages, 2 micro-batches")
        self.assertIn("PyTorch matches messages between two ranks by their order: message 1 from rank 0 to rank 1 is "
                      "0SEND_F0, which 1RECV_F1 would receive", verdict[1])
        mended = self.run_tool("schedule", "crossed.csv", "--actions", "compute_comms", "--format", "csv").stdout
        (self.folder / "mended.csv").write_text(mended)
        self.assertEqual(len(self.run_tool("schedule", "--check", "mended.csv").stdout.splitlines()), 1)
        messages = lambda text: re.findall(r"\d+(?:SEND|RECV)_[FB]\d+", text)
        shape = ["--pp", 2, "--micro-batches", 4, "--actions", "compute_comms"]
        for name in ("Interleaved1F1B", "ZBVZeroBubble", "DualPipeV", "LoopedBFS"):
            csv = self.run_tool("schedule", name, *shape, "--format", "csv").stdout
            (self.folder / "made.csv").write_text(csv)
            self.assertNotIn("PyTorch", self.run_tool("schedule", "--check", "made.csv").stdout)
            text = self.run_tool("schedule", name, *shape, "--format", "text").stdout
            self.assertEqual([messages(line) for line in text.splitlines()],
                             [messages(line) for line in csv.splitlines()])

    def test_blocking_sends_are_proven_or_their_cycle_is_shown(self):
        def verdict(*arguments):
            return self.run_tool("schedule", "--check", *arguments, "--blocking-sends").stdout.splitlines()[1]

        self.assertEqual(verdict("InterleavedZeroBubble", "--pp", 8, "--micro-batches", 32, "--virtual-stages", 4),
                         "InterleavedZeroBubble: blocking sends cannot deadlock; rank 0 posts up to 5 receives of "
                         "activations from rank 7 ahead, no rank more")
        self.assertIn("blocking sends cannot deadlock; rank 0 posts up to 2", verdict("autozerobubble"))
        self.assertIn("blocking sends cannot deadlock; rank 0 posts up to 2", verdict("PipeDream-2BW"))
        self.assertIn("there are none", verdict("GPipe", "--pp", 1))
        for name in ("1F1B", "PipeDream-2BW"):
            (self.folder / "made.csv").write_text(self.run_tool("schedule", name, "--actions", "compute_comms",
                                                                "--format", "csv").stdout)
            self.assertEqual(verdict("made.csv"),
                             "made.csv: blocking sends cannot deadlock; each receive is posted where it stands")
        (self.folder / "at_use.csv").write_text("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                                                "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n")
        self.assertIn("valid compute_comms", self.run_tool("schedule", "--check", "at_use.csv").stdout)
        self.assert_refused("schedule", "--check", "at_use.csv", "--blocking-sends", code=1,
                            says=["at_use.csv: blocking sends deadlock where the receives stand",
                                  "0SEND_F1 (pipeline rank 0, after compute action 2) waits for 1RECV_F1"])
        self.assert_refused("schedule", "1F1B", "--blocking-sends", code=2, says="--blocking-sends requires --check")
        self.assert_refused("schedule", "--check", "ZB-H2", "--pp", 8, code=2, says="must be >= 2 p - 1")

    def test_schedule_as_a_picture(self):
        svg = self.run_tool("schedule", "Seq1F1B", "--pp", 2, "--micro-batches", 2, "--format", "svg").stdout
        root = xml.etree.ElementTree.fromstring(svg)  # well-formed
        boxes = list(root.iter("{http://www.w3.org/2000/svg}g"))
        self.assertEqual(len(boxes), 2 * 2 * 4 * 2)  # ranks x micro-batches x slices x (F, B)


if __name__ == "__main__":
    unittest.main()
