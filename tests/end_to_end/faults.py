"""Runs in which ranks and launchers are killed or fall silent: every process ends in time and says why."""

import os
import shutil
import signal
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS, NOT_FOR_USERS, EndToEndTest, processes_naming, rank_of_process

LIMIT_SECONDS = 15  # within which every other process has ended
LONG = ("--epochs", 2000, "--max-restarts", 0)  # never reached


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class FaultTest(EndToEndTest):
    def is_training(self, started):
        return "train " in started.stderr

    def start_training(self, plan="static.json", *options):
        """The launcher, and the process of each rank, during the run."""
        launcher = self.start(*self.train_arguments(plan, "run", *LONG, *options), name="launcher")
        self.wait_until(lambda: self.is_training(launcher) or launcher.ended_within(0) is not None, HANG_SECONDS,
                        lambda: "first progress:\n" + launcher.stderr)
        self.assertIsNone(launcher.ended_within(0), launcher.stderr)
        ranks = {rank_of_process(pid): pid for pid in processes_naming(self.folder) if pid != launcher.pid}
        self.assertEqual(set(ranks), {0, 1})
        return launcher, ranks

    def start_ranks(self, plan="static.json", *options):
        """Two ranks as started by torchrun, during the run; rank 0 hosts the store."""
        port = free_port()
        arguments = self.train_arguments(plan, "run", *(options or LONG))
        ranks = [self.start(*arguments, name=f"rank{rank}", RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=2,
                            MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
                 for rank in (0, 1)]
        if not options:
            self.wait_until(lambda: self.is_training(ranks[0]) or ranks[0].ended_within(0) is not None, HANG_SECONDS,
                            lambda: "first progress:\n" + ranks[0].stderr)
            for rank in ranks:
                self.assertIsNone(rank.ended_within(0), rank.stderr)
        return ranks

    def stop_rank(self, victim, plan="static.json"):
        """SIGSTOP: a rank exists but is silent. The others name it and end in time."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        launcher, ranks = self.start_training(plan)
        os.kill(ranks[victim], signal.SIGSTOP)
        code = launcher.ended_within(LIMIT_SECONDS)
        self.assertEqual(code, 1, launcher.stderr)
        self.assert_said(launcher,
                         rf"frostpipe: rank {victim} \(process {ranks[victim]}\) has sent no heartbeat for 10 s")
        self.assert_no_process_within(1)

    def assert_clean(self, started):
        self.assertNotRegex(started.stderr, NOT_FOR_USERS)
        for line in started.stderr.splitlines():
            self.assertRegex(line, r"^(train |frostpipe: )")

    def assert_said(self, started, pattern):
        self.assertRegex(started.stderr, pattern)
        self.assert_clean(started)
        self.assertFalse((self.folder / "run/summary.json").exists(), "the run was over before it was hit")
