"""Ranks on two hosts that share only a network link. Oracle: the same plan on one host."""

import json
import os
import re
import shutil
import signal
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS, processes_naming
from faults import LIMIT_SECONDS, LONG
from hosts import MASTER_PORT, SECOND_CARD, hosts_for
from layouts import in_layout, on_nodes
from listening_sockets import listening_sockets
from torchrun import programs_missing_for_torchrun, torchruns_agent
from two_hosts import TwoHostsBase

SOME_STEPS = 40


class TwoHostsTest(TwoHostsBase):
    def summary(self):
        """Rank 0's file, on its host."""
        self.assertFalse((self.folder / "run").exists(), "a host's folder is seen outside")
        self.assertFalse(self.hosts[1].path("run/summary.json").exists(), "the hosts share a folder")
        return self.read(self.hosts[0].path("run/summary.json"))

    def assert_same_losses_as_on_one_host(self, plan):
        summary = self.summary()
        on_one_host = self.train(plan, "one-host", "--nodes", 2)  # the same shards of the data
        self.assertEqual(self.losses(summary), self.losses(on_one_host))
        self.assertEqual(len(summary["steps"]), SOME_STEPS)

    def train_on_hosts(self, plan):
        self.of_length(plan, SOME_STEPS)
        ranks = self.start_on_hosts(plan)
        for rank in ranks:
            self.assertEqual(rank.ended_within(HANG_SECONDS), 0, rank.stderr)
            self.assert_clean(rank)
        self.assertIn("accuracy", ranks[0].stdout)
        self.assertEqual(ranks[1].stdout, "")
        self.assert_same_losses_as_on_one_host(plan)

    def test_a_pipeline(self):
        self.train_on_hosts("static.json")

    def test_replicas(self):
        self.train_on_hosts("data-parallel.json")

    def test_a_name_with_addresses_that_lead_nowhere(self):
        self.of_length("static.json", SOME_STEPS)
        arguments = self.train_arguments("static.json", "run")
        self.hosts = hosts_for(self, 2)
        self.hosts[0].call_by_name("a", "127.0.1.1", self.hosts[0].address)
        self.hosts[1].call_by_name("a", "10.77.0.3", self.hosts[0].address)
        self.hosts[1].sends_in_vain_to("10.77.0.3")
        for rank in self.start_every_rank(*arguments, MASTER_ADDR="a"):
            self.assertEqual(rank.ended_within(HANG_SECONDS), 0, rank.stderr)
            self.assert_clean(rank)
        self.assert_same_losses_as_on_one_host("static.json")

    def test_torchruns_agents(self):
        if missing := programs_missing_for_torchrun():
            print(f"\nSKIPPED LOUDLY: there is no {', '.join(missing)}", file=sys.stderr)
            self.skipTest("no torchrun")
        self.of_length("static.json", SOME_STEPS)
        self.hosts = hosts_for(self, 2)
        agents = []
        for number, host in enumerate(self.hosts):
            agent = torchruns_agent("--nnodes", 2, "--node-rank", number, "--nproc-per-node", 1, "--master-addr",
                                    self.hosts[0].address, "--master-port", MASTER_PORT)
            agents.append(self.start(*self.train_arguments("static.json", "run"), name=f"agent{number}",
                                     wrapper=[*host.wrapper, *agent]))
        for agent in agents:
            self.assertEqual(agent.ended_within(HANG_SECONDS), 0, agent.stderr)
        self.assert_same_losses_as_on_one_host("static.json")

    def test_a_host_that_falls_silent_is_named(self):
        ranks = self.start_on_hosts("static.json", *LONG)
        self.wait_until(lambda: self.is_training(ranks[0]) or ranks[0].ended_within(0) is not None, HANG_SECONDS,
                        lambda: ranks[0].stderr)
        self.hosts[1].pull_the_cable()
        for rank, said in zip(ranks, (r"rank 0\b.*rank 1\b", r"rank 1\b.*rank 0\b")):
            self.assertEqual(rank.ended_within(LIMIT_SECONDS), 1, rank.stderr)
            self.assert_said(rank, said)

    def test_ports_are_open_at_the_address_between_the_hosts_alone(self):
        ranks = self.start_on_hosts("static.json", *LONG)
        self.wait_until(lambda: self.is_training(ranks[0]) or ranks[0].ended_within(0) is not None, HANG_SECONDS,
                        lambda: ranks[0].stderr)
        listeners = listening_sockets(processes_naming(self.folder))
        self.assertIn((self.hosts[0].address, MASTER_PORT), {listener.address for listener in listeners})
        self.assertEqual({listener.address[0] for listener in listeners}, {host.address for host in self.hosts})

    def test_messages_go_by_a_second_card_and_the_ranks_meet_at_the_first(self):
        arguments = self.train_arguments("static.json", "run", *LONG, "--interface", SECOND_CARD)
        self.hosts = hosts_for(self, 2)
        second_cards = {host.add_second_card() for host in self.hosts}
        ranks = self.start_every_rank(*arguments)
        self.wait_until(lambda: self.is_training(ranks[0]) or ranks[0].ended_within(0) is not None, HANG_SECONDS,
                        lambda: ranks[0].stderr)
        listeners = {listener.address for listener in listening_sockets(processes_naming(self.folder))}
        self.assertIn((self.hosts[0].address, MASTER_PORT), listeners)
        self.assertEqual({address for address, port in listeners if port != MASTER_PORT}, second_cards)


class OwnFilesTest(TwoHostsBase):
    """A missing or different file on a host ends all ranks in time, with the same message. Oracle: the test's
    change."""

    def start_with(self, change, options_of_second=(), arguments=()):
        """Starts both ranks on hosts after `change` has changed their files."""
        arguments = arguments or self.train_arguments("static.json", "run", *LONG)
        self.hosts = hosts_for(self, 2)
        change(*self.hosts)
        return [self.start_rank(rank, *arguments, *more, CUDA_VISIBLE_DEVICES="")
                for rank, more in enumerate(((), options_of_second))]

    def assert_all_say(self, ranks, pattern):
        for rank in ranks:
            self.assertEqual(rank.ended_within(LIMIT_SECONDS), 1, rank.stderr)
            self.assert_clean(rank)
            self.assertRegex(rank.stderr, rf"(?m)^frostpipe: {pattern}")
        self.assertEqual(ranks[0].stderr, ranks[1].stderr)

    def test_data_that_one_lacks(self):
        for number, name in enumerate("ab"):
            with self.subTest(name):
                ranks = self.start_with(lambda *hosts: hosts[number].path("data.tsv").unlink())
                self.assert_all_say(ranks, f"host {name}: data.tsv: ")

    def test_a_plan_that_one_lacks(self):
        ranks = self.start_with(lambda a, b: b.path("static.json").unlink())
        self.assert_all_say(ranks, "host b: static.json: ")

    @staticmethod
    def change_data(_, b):
        path = b.path("data.tsv")
        path.write_text(path.read_text().replace(" the", " tha", 1))

    def test_data_of_another_content(self):
        self.assert_all_say(self.start_with(self.change_data),
                            r"host b: data.tsv: must be the same as on host a \(\w{16}\), is \w{16}")

    def test_a_profile_is_measured_of_the_same_on_all_hosts(self):
        arguments = ("profile", "--model", "model", "--data", "data.tsv", "--global-batch", 16, "--quick", "-o",
                     self.folder / "two-profile.json")
        same = r"must be the same as on host a \(\w+\), is \w+"
        for change, options, said in ((lambda a, b: b.path("data.tsv").unlink(), (), "host b: data.tsv: "),
                                      (lambda a, b: a.path("model/config.json").unlink(), (), "host a: model"),
                                      (self.change_data, (), f"host b: data.tsv: {same}"),
                                      (lambda a, b: None, ("--tokens", 8), r"host b: --tokens: must be ")):
            with self.subTest(said):
                self.assert_all_say(self.start_with(change, options, arguments), said)

    def test_a_device_that_one_lacks(self):
        ranks = self.start_with(lambda *hosts: None, ("--device", "cuda"))
        self.assert_all_say(ranks, "host b: .*(CUDA|GPU)")

    def test_weights_of_another_model(self):
        def change(_, b):
            path = b.path("model/model.safetensors")
            content = bytearray(path.read_bytes())
            content[-1] ^= 1
            path.write_bytes(content)
        self.assert_all_say(self.start_with(change), "host b: model/model.safetensors: must be the same as on host a ")

    def test_another_plan(self):
        def change(_, b):
            plan = json.loads(b.path("static.json").read_text())
            plan["phases"][0]["predicted"]["iteration_ns"] += 1
            b.path("static.json").write_text(json.dumps(plan))
        self.assert_all_say(self.start_with(change), "host b: static.json: must be the same as on host a ")

    def test_other_options(self):
        ranks = self.start_with(lambda *hosts: None, ("--seed", 7))
        self.assert_all_say(ranks, r"host b: seed: must be the same as on host a \(1\), is 7")


class OwnCheckpointsTest(TwoHostsBase):
    """Each host keeps the files of its ranks. Oracle: the same plan on one host without interruption."""

    STEPS = 600

    def files_of(self, host):
        """{step: file names} of the host's checkpoints."""
        folder = host.path("run/checkpoints")
        return {int(path.name[5:]): {file.name for file in path.iterdir()} for path in sorted(folder.glob("step-*"))
                if re.fullmatch(r"step-\d+", path.name)}

    def interrupted(self, *options):
        """Hosts whose ranks were killed after some checkpoints, and the arguments with which they were started."""
        self.of_length("static.json", self.STEPS)
        arguments = self.train_arguments("static.json", "run", "--checkpoint-every", 20, *options)
        self.hosts = hosts_for(self, 2)
        self.interrupt_when(lambda: all(self.newest_of(host) >= 40 for host in self.hosts),
                            self.start_every_rank(*arguments))
        return arguments

    def newest_of(self, host):
        return max(self.files_of(host), default=0)

    def interrupt_when(self, condition, ranks):
        self.wait_until(lambda: condition() or ranks[0].ended_within(0) is not None, HANG_SECONDS,
                        lambda: ranks[0].stderr)
        for rank in ranks:
            os.killpg(rank.pid, signal.SIGKILL)
            rank.process.wait()

    def trained_on(self, *ranks):
        for rank in ranks:
            self.assertEqual(rank.ended_within(HANG_SECONDS), 0, rank.stderr)
            self.assert_clean(rank)
        self.assertRegex(ranks[0].stderr, r"goes on with step \d+ of 600, from ")

    def test_each_host_has_the_layers_of_its_ranks_and_the_run_goes_on_from_them(self):
        arguments = self.interrupted()
        for (_, first), (_, second) in zip(self.files_of(self.hosts[0]).items(), self.files_of(self.hosts[1]).items()):
            layers = [{name for name in files if name.startswith("layer-")} for files in (first, second)]
            self.assertFalse(layers[0] & layers[1])
            self.assertTrue(all(layers))
        self.trained_on(*self.start_every_rank(*arguments))
        on_one_host = self.train("static.json", "one-host", "--nodes", 2)
        self.assertEqual(self.losses(self.read(self.hosts[0].path("run/summary.json"))), self.losses(on_one_host))

    def test_another_run_goes_on_from_one_checkpoint_that_is_named(self):
        """The ranks have changed hosts, so that each host lacks the layers that it needs."""
        self.interrupted()
        step = min(max(self.files_of(host)) for host in self.hosts)
        arguments = self.train_arguments("static.json", "other", "--resume", f"run/checkpoints/step-{step:08}")
        self.hosts.reverse()
        self.trained_on(*self.start_every_rank(*arguments))
        on_one_host = self.train("static.json", "one-host", "--nodes", 2)
        last = self.losses(self.read(self.hosts[0].path("other/summary.json")))[-1]
        self.assertEqual(last, self.losses(on_one_host)[-1])

    def change_hosts(self, *options):
        arguments = self.interrupted(*options)
        self.hosts.reverse()
        self.trained_on(*self.start_every_rank(*arguments))
        on_one_host = self.train("static.json", "one-host", "--nodes", 2, *options)
        last = self.losses(self.read(self.hosts[0].path("run/summary.json")))[-1]
        self.assertEqual(last, self.losses(on_one_host)[-1])

    def test_the_one_that_the_run_went_on_from_stays_until_all_hosts_have_a_newer_one(self):
        """The disk of one host is full from then on."""
        arguments = self.interrupted()
        self.hosts[1].small_disk("run")
        ranks = self.start_every_rank(*arguments)
        self.wait_until(lambda: "goes on with step" in ranks[0].stderr, HANG_SECONDS, lambda: ranks[0].stderr)
        filler = self.hosts[1].fill_disk("run")
        began = self.newest_of(self.hosts[1])
        self.interrupt_when(lambda: self.newest_of(self.hosts[0]) >= began + 80, ranks)
        filler.unlink()
        self.assertEqual(self.newest_of(self.hosts[1]), began)
        self.trained_on(*self.start_every_rank(*arguments))

    def test_ranks_may_change_hosts(self):
        self.change_hosts()

    def test_tensor_ranks_that_split_tokens_may_change_hosts(self):
        """Two ranks on each host, of one stage."""
        self.ranks_per_host = 2
        self.write("cluster.json", on_nodes(self.read("cluster.json"), (0, 0, 1, 1)))
        self.edit("static.json", lambda plan: plan.update(
            world_size=4, phases=[in_layout(plan["phases"][0], 2, 1, 2, splits_tokens=True)]))
        self.change_hosts("--cluster", "cluster.json")

    def test_layers_that_no_host_has_any_more_are_named(self):
        arguments = self.interrupted()
        lost = min(name for files in self.files_of(self.hosts[1]).values() for name in files
                   if name.startswith("layer"))
        shutil.rmtree(self.hosts[1].path("run/checkpoints"))
        ranks = self.start_every_rank(*arguments)
        for rank in ranks:
            self.assertEqual(rank.ended_within(LIMIT_SECONDS), 1, rank.stderr)
            self.assertRegex(rank.stderr, rf"frostpipe: checkpoint of step \d+: no host has {lost}, .* whole, which "
                                          "host b wrote. Start the run on the hosts that wrote it")


class SlowCableTest(TwoHostsBase):
    """Oracle: the rate to which the hosts' cards are limited. Beside running compilers, collectives have been measured
    at 0.81 of it."""

    MEGABITS = 100

    def profiled_cluster(self):
        """The cluster as measured by ranks on all hosts."""
        arguments = ("profile", "--model", "model", "--data", "data.tsv", "--global-batch", 16, "--micro-batch-sizes",
                     4, "--quick", "--cluster", "measured.json", "-o", self.folder / "measured-profile.json")
        ranks = self.start_every_rank(*arguments)
        for rank in ranks:
            self.assertEqual(rank.ended_within(HANG_SECONDS), 0, rank.stderr)
        cluster = self.read(self.hosts[0].path("measured.json"))
        self.assertEqual([device["node"] for device in cluster["devices"]],
                         [rank // self.ranks_per_host for rank in range(len(ranks))])
        return cluster

    def assert_slow(self, links, *uses):
        for use in uses:
            rate = links[use]["bandwidth_bytes_per_second"] * 8 / 1e6
            self.assertTrue(0.75 <= rate / self.MEGABITS <= 1.1, f"{use}: {rate} Mbit/s")

    def test_profile_measures_the_links_between_hosts(self):
        self.hosts = hosts_for(self, 2)
        for host in self.hosts:
            host.slow_down(self.MEGABITS)
        cluster = self.profiled_cluster()
        self.assert_slow(cluster["inter_node"], "point_to_point", "collective")
        self.assertNotIn("node_pairs", cluster)

    def test_profile_finds_the_card_that_ranks_of_a_host_share(self):
        """A sum over the first ranks uses the whole card; messages of all ranks at once share it."""
        self.ranks_per_host = 2
        self.hosts = hosts_for(self, 2)
        for host in self.hosts:
            host.slow_down(self.MEGABITS)
        cluster = self.profiled_cluster()
        card, = cluster["shared_links"]
        self.assertEqual(card["nodes"], 1)
        self.assert_slow({"together": card}, "together")
        self.assert_slow(cluster["inter_node"], "point_to_point", "collective")
        self.assertEqual(cluster["communication"]["all_reduce"], "direct")

    def test_profile_tells_a_slow_cable_from_the_others(self):
        """The link of the last of three hosts is slow, so nodes 0 and 1 are the better connected pair."""
        self.hosts = hosts_for(self, 3)
        self.hosts[2].slow_down_cable(self.MEGABITS)
        cluster = self.profiled_cluster()
        self.assert_slow(cluster["inter_node"], "point_to_point")
        pair, = cluster["node_pairs"]
        self.assertEqual((pair["node"], pair["other_node"]), (0, 1))
        for use in ("point_to_point", "collective"):
            self.assertGreater(pair[use]["bandwidth_bytes_per_second"],
                               2 * cluster["inter_node"][use]["bandwidth_bytes_per_second"], use)


if __name__ == "__main__":
    unittest.main()
