"""Ranks and launchers are killed during a run (SIGKILL, SIGTERM, SIGINT) or fall silent (SIGSTOP): every process ends
in time and says why."""

import os
import signal
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import is_alive
from faults import LIMIT_SECONDS, LONG, FaultTest


class DeathTest(FaultTest):
    """Ranks and launchers get SIGKILL, SIGTERM or SIGINT."""

    def kill_rank(self, plan, victim):
        launcher, ranks = self.start_training(plan)
        os.kill(ranks[victim], signal.SIGKILL)
        code = launcher.ended_within(LIMIT_SECONDS)
        self.assertEqual(code, 1, launcher.stderr)
        self.assert_said(launcher, rf"frostpipe: rank {victim} \(process {ranks[victim]}\) was killed by signal 9")
        self.assertNotRegex(launcher.stderr, rf"rank {1 - victim} \(process \d+\)")
        self.assertEqual(launcher.stdout, "")
        self.assert_no_process_within(1)

    def test_kill_rank_1_of_a_pipeline(self):
        self.kill_rank("static.json", 1)

    def test_kill_rank_0_of_a_pipeline(self):
        self.kill_rank("static.json", 0)

    def test_kill_a_replica(self):
        self.kill_rank("data-parallel.json", 1)

    def test_kill_the_launcher(self):
        launcher, _ = self.start_training()
        os.kill(launcher.pid, signal.SIGKILL)
        launcher.process.wait()
        self.assert_no_process_within(5)

    def test_kill_the_launcher_while_it_starts(self):
        for delay in (0.05, 0.3, 0.8):
            with self.subTest(delay=delay):
                launcher = self.start(*self.train_arguments("static.json", "run", *LONG), name=f"launcher-{delay}")
                time.sleep(delay)
                os.kill(launcher.pid, signal.SIGKILL)
                launcher.process.wait()
                self.assert_no_process_within(5)

    def test_ask_the_launcher_to_end(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name):
                launcher, _ = self.start_training()
                os.kill(launcher.pid, number)
                self.assertEqual(launcher.ended_within(LIMIT_SECONDS), 128 + number, launcher.stderr)
                self.assert_said(launcher, r"frostpipe: stopped after \d+ of \d+ steps: the same command again goes on")
                self.assertNotRegex(launcher.stderr, r"rank \d+ \(process")
                self.assert_no_process_within(1)

    def test_interrupt_from_the_terminal_reaches_all(self):
        """Ctrl-C is sent to the ranks too; the launcher still reports the interruption, not that a rank was killed."""
        launcher, _ = self.start_training()
        os.killpg(launcher.pid, signal.SIGINT)
        self.assertEqual(launcher.ended_within(LIMIT_SECONDS), 128 + signal.SIGINT, launcher.stderr)
        self.assert_said(launcher, r"frostpipe: stopped after \d+ of \d+ steps: the same command again goes on")
        self.assertNotRegex(launcher.stderr, r"rank \d+ \(process")
        self.assert_no_process_within(1)


class SilenceTest(FaultTest):
    """A rank gets SIGSTOP, so that it exists but is silent."""

    def test_stop_rank_1(self):
        self.stop_rank(1)


class LongSilenceTest(SilenceTest):
    test_stop_rank_1 = None

    def test_stop_rank_0(self):
        self.stop_rank(0)

    def test_a_suspended_job_goes_on(self):
        """Ctrl-Z, a pause, fg: all processes were silent, but none is lost."""
        launcher, ranks = self.start_training()
        everyone = [launcher.pid, *ranks.values()]
        for pid in everyone:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(12)
        for pid in everyone:
            os.kill(pid, signal.SIGCONT)
        time.sleep(3)
        self.assertIsNone(launcher.ended_within(0), launcher.stderr)
        self.assertTrue(all(map(is_alive, everyone)))


if __name__ == "__main__":
    unittest.main()
