"""A rank, a host, its cable or its disk is lost at a random moment of a run on two hosts without our launcher.

Oracle: the undisturbed run. Every process ends within LIMIT_SECONDS, with the results of that run or with one message;
or, if the ranks have not connected yet, it says within that time for which rank it waits. Then the same command, after
the fault is repaired, ends bitwise equal to the undisturbed run. No process or file is left behind.

    FROSTPIPE_HOST_FAULTS=20 FROSTPIPE_SEED=7     20 other faults of each kind
    FROSTPIPE_SEED=7 FROSTPIPE_FAULT=13           only number 13 of each kind
"""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS
from hosts import MASTER_PORT
from lost_host import AgentsBase, LostHostBase


class LostHostTest(LostHostBase):
    def test_a_rank_is_killed(self):
        def inflict(host, numbers):
            if ranks := sorted(host.processes()):
                self.kill([numbers.choice(ranks)])
        self.run_faults(inflict)

    def test_a_host_is_lost(self):
        """Its processes are killed, and no connection is closed."""
        self.run_faults(lambda host, _: host.lose_power(), lambda host: host.switch_on())

    def test_a_cable_is_pulled(self):
        self.run_faults(lambda host, _: host.pull_the_cable(), lambda host: host.plug_the_cable_in())


class KilledAgentTest(AgentsBase):
    def start_process(self, job, number):
        return self.start_agent(job, number, "--nnodes", 2, "--node-rank", number, "--master-addr",
                                self.hosts[0].address, "--master-port", MASTER_PORT)

    def test_an_agent_is_killed(self):
        """The agent's ranks end too."""
        def inflict(host, _):
            agent = self.started[self.hosts.index(host)]
            self.kill([agent.pid])
            agent.process.wait()
            self.wait_until(lambda: not host.processes(), 2, "the agent's ranks to be gone")
        self.run_faults(inflict)


class FullDiskTest(LostHostBase):
    waits_before_mending = False

    def prepare_hosts(self):
        for host in self.hosts:
            host.small_disk("run")

    def test_a_disk_fills_up(self):
        def empty(host):
            self.settle_disk()
            host.path("run/filler").unlink()
        self.run_faults(lambda host, _: host.fill_disk("run"), empty)

    def settle_disk(self):
        """A full disk ends no process before the run's end."""
        for started in self.started:
            self.assertIsNotNone(started.ended_within(HANG_SECONDS), "it hangs")


if __name__ == "__main__":
    unittest.main()
