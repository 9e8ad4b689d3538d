"""Ranks on hosts that share only network links."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from faults import FaultTest
from hosts import hosts_for, rank_variables


class TwoHostsBase(FaultTest):
    ranks_per_host = 1

    def start_on_hosts(self, plan, *options):
        """All ranks, started as by torchrun."""
        arguments = self.train_arguments(plan, "run", *options)  # may change the plan, which the hosts copy
        self.hosts = hosts_for(self, 2)
        return self.start_every_rank(*arguments)

    def start_every_rank(self, *arguments, **variables):
        return [self.start_rank(rank, *arguments, **variables)
                for rank in range(self.ranks_per_host * len(self.hosts))]

    def start_rank(self, rank, *arguments, **variables):
        return self.start(*arguments, name=f"rank{rank}", wrapper=self.hosts[rank // self.ranks_per_host].wrapper,
                          **{**rank_variables(self.hosts, rank, self.ranks_per_host), **variables})
