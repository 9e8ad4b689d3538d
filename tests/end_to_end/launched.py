"""Ranks started by the commands that `launch` prints."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import FROSTPIPE, HANG_SECONDS
from faults import FaultTest
from layouts import on_nodes, two_by_two
from torchrun import PYTHON_WITH_TORCHRUN


class LaunchedBase(FaultTest):
    num_ranks = 2

    def write_plan(self, num_steps):
        """The same number of ranks on each of two hosts, with the cluster two.json."""
        self.of_length("static.json", num_steps)
        nodes = [rank * 2 // self.num_ranks for rank in range(self.num_ranks)]
        self.write("two.json", on_nodes(self.read("cluster.json"), nodes))

    def launched(self, launcher, *hosts, options=()):
        """The output of `launch` for the plan."""
        _, plan, *words = self.train_arguments("static.json", "run", "--cluster", "two.json", *options)
        which = ["--hosts", ",".join(hosts)] if hosts else []
        return self.run_tool("launch", launcher, *which, plan, "--", *words).stdout

    @staticmethod
    def path_of_tool():
        """The PATH of a user who has the tool in that folder."""
        return f"{os.path.dirname(FROSTPIPE)}:{PYTHON_WITH_TORCHRUN.parent}:{os.environ['PATH']}"

    def start_line(self, line, name, wrapper=(), **variables):
        """Runs a command as a user in a shell of that host."""
        return self.start(name=name, wrapper=[*wrapper, "bash", "-c", line], PATH=self.path_of_tool(), **variables)

    def losses_on_one_host(self):
        """Trains with our own launcher, with the same shards of the data."""
        return self.losses(self.train("static.json", "one-host", "--cluster", "two.json", "--nodes", 2))

    def assert_ended_well(self, *started):
        for one in started:
            self.assertEqual(one.ended_within(HANG_SECONDS), 0, one.stderr)


class TwoByTwoBase(LaunchedBase):
    """Two hosts with two ranks each: two stages, each with a replica on either host."""

    num_ranks = 4

    def write_plan(self, num_steps):
        super().write_plan(num_steps)
        self.edit("static.json", lambda plan: plan.update(
            world_size=self.num_ranks, phases=[two_by_two(phase) for phase in plan["phases"]]))
