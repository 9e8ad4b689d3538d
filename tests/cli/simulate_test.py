"""The output of simulate for a plan: times, memory, and what-ifs compared with the unchanged plan."""

import json
import math
import re
import shutil
import unittest

from support import CliTest, synthetic_cluster


class SimulateTest(CliTest):
    def test_it_predicts_what_the_plan_says(self):
        self.plan("elastic.json", "pipetransformer")
        done = self.run_tool("simulate", "elastic.json", "--format", "json")
        self.assertEqual(done.stderr, "")
        simulated, plan = json.loads(done.stdout), self.read("elastic.json")
        self.assertEqual([p["iteration_ns"] for p in simulated["phases"]],
                         [p["predicted"]["iteration_ns"] for p in plan["phases"]])
        self.assertEqual([p["peak_memory_bytes"] for p in simulated["phases"]],
                         [p["predicted"]["peak_memory_bytes"] for p in plan["phases"]])
        self.assertEqual(sum(p["num_steps"] for p in simulated["phases"]), plan["num_steps"])
        total = sum(p["num_steps"] * p["iteration_ns"] + p["transformation_ns"] for p in simulated["phases"])
        self.assertEqual(simulated["predicted_run_ns"], total)
        self.assertAlmostEqual(simulated["device_hours"], 2 * total / 3.6e12)
        for phase in simulated["phases"]:
            busy = [time for time in phase["busy_ns"] if time > 0]
            self.assertAlmostEqual(phase["steady_bubble_fraction"],
                                   max(0, 1 - sum(busy) / (len(busy) * phase["iteration_ns"])))
            # The parts add up to the peak.
            self.assertIn(sum(phase["memory_of_positions"][0].values()), phase["peak_memory_bytes"])

    def test_text_has_units_in_its_headers(self):
        self.plan("static.json", "static")
        text = self.run_tool("simulate", "static.json").stdout
        for header in ("iteration [ms]", "makespan [ms]", "bubble_fraction", "busy per rank [ms]", "peak in flight",
                       "memory per rank [MiB]"):
            self.assertIn(header, text)

    def test_timeline_is_a_chrome_trace(self):
        self.plan("elastic.json", "pipetransformer")
        self.run_tool("simulate", "elastic.json", "--timeline", "trace.json")
        names = {event["name"] for event in self.read("trace.json")["traceEvents"]}
        self.assertIn("0F0", names)
        self.assertIn("phase from step 0", names)

    def test_a_profile_without_the_times_of_a_schedule_is_named_and_asked_for_again(self):
        shutil.copy(self.folder / "profile.json", self.folder / "old.json")
        self.edit("profile.json", lambda profile: [
            one["cost"].update(split_backward={"input_ns": one["cost"]["input_gradient_ns"],
                                               "weight_ns": one["cost"]["weight_gradient_ns"], "kept_bytes": 0})
            for one in profile["measurements"]])
        gap = json.loads(self.plan("split.json", "static", "--schedule", "ZB-H1", "--format", "json").stdout)["gap"]
        self.assertGreaterEqual(gap, 0)
        self.run_tool("simulate", "split.json")
        self.assert_refused("simulate", "split.json", "--profile", "old.json",
                            says="old.json: profile of synthetic: must have measured I and W, which ZB-H1 has in place "
                                 "of B (profile again)")

    def test_paths_count_from_the_plans_folder(self):
        self.plan("deep/er/static.json", "static")
        shutil.move(self.folder / "deep", self.folder / "moved")
        self.run_tool("simulate", "moved/er/static.json")
        shutil.move(self.folder / "moved/er/static.json", self.folder / "static.json")
        self.assert_refused("simulate", "static.json", says=["profile.json", "--profile FILE"])
        self.run_tool("simulate", "static.json", "--profile", "profile.json", "--cluster", "cluster.json")


class MemoryTest(CliTest):
    def test_recomputing_is_planned_takes_longer_and_keeps_less(self):
        self.plan("kept.json", "static", "--schedule", "GPipe")
        self.plan("again.json", "static", "--schedule", "GPipe", "--recompute", "layers")
        self.assertEqual(self.read("again.json")["phases"][0]["recompute"], "layers")
        kept, again = (self.read(name)["phases"][0]["predicted"] for name in ("kept.json", "again.json"))
        self.assertGreater(again["iteration_ns"], kept["iteration_ns"])
        self.assertLess(max(again["peak_memory_bytes"]), max(kept["peak_memory_bytes"]))
        rows = json.loads(self.run_tool("simulate", "again.json", "--set", "recompute=off",
                                        "--format", "json").stdout)["rows"]
        self.assertLess(rows[1]["times_base"], 1)

    def test_memory_over_time_peaks_where_the_table_says(self):
        self.plan("static.json", "static")
        result = json.loads(self.run_tool("simulate", "static.json", "--memory", "memory.csv",
                                          "--format", "json").stdout)
        self.assertEqual(result["does_not_fit"], [])
        lines = (self.folder / "memory.csv").read_text().splitlines()
        self.assertEqual(lines[0], "from_step,rank,at_ns,bytes,action")
        rows = [line.split(",") for line in lines[1:]]
        for rank, peak in enumerate(result["phases"][0]["peak_memory_bytes"]):
            self.assertEqual(max(int(row[3]) for row in rows if row[1] == str(rank)), peak)
        self.run_tool("simulate", "static.json", "--memory", "memory.svg")
        self.assertIn("rank 1", (self.folder / "memory.svg").read_text())
        self.assert_refused("simulate", "static.json", "--memory", "memory.txt", code=2,
                            says="must end in .svg or .csv")

    def test_an_exceeded_memory_limit_is_reported_with_action_and_time(self):
        self.plan("static.json", "static", "--schedule", "1F1B")
        self.edit("cluster.json", lambda cluster: cluster["devices"][1].update(memory_limit_bytes=1000))
        done = self.run_tool("simulate", "static.json", "--cluster", "cluster.json")
        self.assertRegex(done.stdout, r"does not fit: from step 0, rank 1 needs .* in 1F\d+, .* into the iteration: .* "
                                      "more than its 0.977 KiB")


class SimulateLossTest(CliTest):
    """A rank is lost without a spare."""

    def loss_of(self, plan, rank):
        return json.loads(self.run_tool("simulate", plan, "--lose", rank, "--format", "json").stdout)["phases"]

    def test_both_ways_are_priced_and_the_cheaper_is_named(self):
        self.write("cluster.json", synthetic_cluster(4, 1000))
        self.plan("replicas.json", "static", "--fix", "pp=2", "--fix", "dp=2", "--fix", "m=4", "--schedule", "1F1B")
        for rank in range(4):
            [loss] = self.loss_of("replicas.json", rank)
            # One rank has twice the micro-batches; on stage 0 the large gradients of the embedding stay on it.
            times = loss["rerouted_iteration_ns"] / loss["undisturbed_iteration_ns"]
            self.assertTrue(0.9 < times < 1.1 if rank < 2 else 1.1 < times < 2, times)
            self.assertEqual(loss["reroutes"], loss["rerouted_ns"] < loss["replanned_ns"])
            self.assertEqual(loss["choice"].startswith("rerouted"), loss["reroutes"])
        text = self.run_tool("simulate", "replicas.json", "--lose", 3).stdout
        self.assertIn("rerouted [ms]", text)
        self.assertIn("rank 3 lost at step 0: ", text)

    def test_a_loss_that_cannot_be_rerouted_says_why(self):
        self.write("cluster.json", synthetic_cluster(2, 1000))
        self.plan("static.json", "static", "--fix", "pp=2", "--schedule", "1F1B")
        [loss] = self.loss_of("static.json", 1)
        self.assertNotIn("rerouted_ns", loss)
        self.assertRegex(loss["choice"], "^a new layout, 1 x 1; not rerouted: no replica is left of stage 1$")
        self.assert_refused("simulate", "static.json", "--lose", 2, code=2, says="--lose: must be a rank of the plan")

    def test_experts_that_only_the_lost_rank_held_are_not_rerouted(self):
        """Two replicas have half of the experts each, so nobody else has the lost half; of four, another one has it."""
        self.write("moe.json", {"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 4, "vocab_size": 100,
                                "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128,
                                "num_local_experts": 4})
        for replicas, is_rerouted in ((2, False), (4, True)):
            self.run_tool("profile", "--like", "moe.json", "--nproc-per-node", 2 * replicas, "--tokens", 64,
                          "--expert-parallel", 2, "--cluster", "cluster.json", "-o", "profile.json")
            self.plan("moe.plan.json", "static", "--fix", "pp=2", "--fix", f"dp={replicas}", "--fix", "m=4",
                      "--schedule", "1F1B")
            [loss] = self.loss_of("moe.plan.json", 1)
            self.assertEqual("rerouted_ns" in loss, is_rerouted)
            self.assertEqual("not rerouted: it held experts that no other rank holds" in loss["choice"],
                             not is_rerouted)

    def test_table_and_sentence_count_stages_alike(self):
        """7 ranks are left, which one pipeline with several stages per rank uses best."""
        self.run_tool("profile", "--like", "bert-large", "--hardware", "A100", "--nproc-per-node", 8, "--dtype",
                      "bfloat16", "--cluster", "cluster.json", "-o", "profile.json")
        self.plan("pp4.json", "static", "--fix", "pp=4", "--schedule", "1F1B")
        text = self.run_tool("simulate", "pp4.json", "--lose", 0).stdout
        in_table, in_sentence = re.findall(r"\b\d+ x \d+\b", text)
        self.assertEqual(in_table, in_sentence)


class WhatIfsOfTensorRanksTest(CliTest):
    def test_links_do_not_reach_what_layers_include(self):
        """Oracle: the profile of the same model with tensor ranks has their sums in its layers' times."""
        self.run_tool("plan", "--model", "bert-base", "--hardware", "A100", "--nproc-per-node", 4, "--global-batch", 16,
                      "--fix", "tp=2", "-o", "two.json")
        for change in ("bandwidth=x0.1", "compute=x2"):
            self.assertIn("include the exchanges of tensor ranks",
                          self.run_tool("simulate", "two.json", "--set", change).stderr)
        self.assertEqual(self.run_tool("simulate", "two.json", "--set", "recompute=layers").stderr, "")


class SimulateWhatIfsTest(CliTest):
    """Changes to a plan, compared with the unchanged plan."""

    def rows(self, *sets):
        arguments = [part for one in sets for part in ("--set", one)]
        return json.loads(self.run_tool("simulate", "static.json", *arguments, "--format", "json").stdout)["rows"]

    def test_each_set_is_a_row_against_the_base(self):
        self.plan("static.json", "static")
        base, faster, slow, both = self.rows("compute=x2", "rank0=x0.5", "compute=x2,bandwidth=x1000000,latency=0")
        self.assertEqual(base["times_base"], 1)
        self.assertLess(faster["training_seconds"], base["training_seconds"])
        self.assertGreater(slow["training_seconds"], 1.2 * base["training_seconds"])
        self.assertAlmostEqual(both["times_base"], 0.5, delta=0.02)  # only compute is left, and it is halved
        self.assertLessEqual(both["training_seconds"], faster["training_seconds"])

    def test_help_shows_an_example_of_each_change(self):
        """Oracle: the names that the refusal of an unknown change lists."""
        self.plan("static.json", "static")
        refused = self.run_tool("simulate", "static.json", "--set", "speed=2", code=2).stderr
        names = re.search("must be one of (.*?)[;.\n]", refused).group(1).split(", ")
        self.assertIn("checkpoint", names)
        text = self.run_tool("simulate", "--help").stdout
        for name in names:
            self.assertRegex(text, f"(?m)^  (.*, )?{name.replace('rankN', 'rank3')}=")

    def test_networks(self):
        """Two ranks in two nodes, messages of some 100 us at 12 GB/s: a card of 0.1 GB/s is the bottleneck, one of 1000
        GB/s is none."""
        self.edit("cluster.json", lambda cluster: cluster["devices"][1].update(node=1))
        self.plan("static.json", "static")
        rows = self.rows("card=1000", "card=0.001", "switch=1x0.001", "switch=2x0.001", "all-reduce=tree",
                         "overlap-reduction=on", "scatter-gather=off")
        factors = [row["times_base"] for row in rows[1:]]
        self.assertEqual((factors[0], factors[3]), (1, 1))
        self.assertGreater(factors[1], 1.5)
        self.assertEqual(factors[1], factors[2])
        for change, says in (("switch=4", "NODESxGB/s"), ("all-reduce=star", "must be ring"),
                             ("overlap-reduction=maybe", "on or off"), ("card=0", "more than 0")):
            self.assert_refused("simulate", "static.json", "--set", change, code=2, says=says)

    def test_tensor_parallel_plans_are_simulated(self):
        self.write("gpt.json",
                   {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 32,
                    "vocab_size": 100})
        self.run_tool("profile", "--like", "gpt.json", "--tensor-parallel", "1,2", "--nproc-per-node", 4,
                      "--cluster", "cluster.json", "-o", "profile.json")
        self.plan("tp.json", "static", "--fix", "tp=2", "--steps", 10)
        layout = self.read("tp.json")["phases"][0]["layout"]
        self.assertEqual((layout["pipeline_parallel_size"], layout["tensor_parallel_size"]), (2, 2))
        self.assertEqual(len({bytes for bytes in self.read("tp.json")["phases"][0]["predicted"]["peak_memory_bytes"]}),
                         2)
        self.run_tool("simulate", "tp.json", "--memory", "memory.csv")
        ranks = {line.split(",")[1] for line in (self.folder / "memory.csv").read_text().splitlines()[1:]}
        self.assertEqual(ranks, {"0", "1", "2", "3"})
        self.assert_refused("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 64,
                            "--method", "static", "--fix", "tp=3", "--steps", 10,
                            "-o", "x.json", says="tensor-parallel size: must divide the 4 ranks, is 3")

    def test_jitter_is_seeded_and_slows_down(self):
        self.plan("static.json", "static")
        once = self.rows("jitter=0.2")[1]
        self.assertEqual(once, self.rows("jitter=0.2")[1])
        self.assertGreater(once["times_base"], 1)  # the slowest rank at each synchronisation determines the time
        self.assertIn("95 %", once["note"])

    def test_failures_cost_checkpoints_and_lost_work(self):
        """Daly 2006 with Young's interval, and without checkpoints if they cost more than they save."""
        self.plan("static.json", "static")
        for per_day, cost, note in ((24, 10, "no checkpoint pays"), (864000, 0.001, "checkpoint every 14.1 ms")):
            with self.subTest(note):
                base, failing = self.rows(f"failures={per_day},checkpoint={cost}")
                rate, work = per_day / 86400, base["training_seconds"]
                distance = math.sqrt(2 * cost / rate)
                stretches = (1, work) if note.startswith("no") else (work / distance, distance + cost)
                expected = math.exp(rate * cost) * math.expm1(rate * stretches[1]) / rate * stretches[0]
                self.assertAlmostEqual(failing["training_seconds"], expected, delta=1e-6 * expected)
                self.assertEqual(failing["note"], note)

    def test_wrong_changes_are_named(self):
        self.plan("static.json", "static")
        for change, says in (("bandwidth", "NAME=VALUE"), ("speed=2", "one of bandwidth"), ("rank9=x2", "below 2"),
                             ("compute=2", "factor"), ("checkpoint=30", "with failures"),
                             ("cache=on", "plan again"), ("latency=fast", "number"), ("jitter=x2", "not a factor"),
                             ("bandwidth=25000000000", "bandwidth=25000000000: must be from 0.001 to 1000000 GB/s"),
                             ("card=1e12", "card=1e12: must be from 0.001 to 1000000 GB/s"),
                             ("rank0=x1e-9", "rank0=x1e-9: must be a factor from x0.001 to x1000000")):
            with self.subTest(change):
                self.assert_refused("simulate", "static.json", "--set", change, code=2, says=says)


if __name__ == "__main__":
    unittest.main()
