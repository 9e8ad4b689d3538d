import json
import math
import re
import shutil
import unittest

from support import CliTest, measure_with_two_threads, synthetic_cluster


class PlanTest(CliTest):
    def test_static_plan_is_a_pipeline_of_one_phase(self):
        text = self.plan("plans/static.json", "static").stdout
        self.assertIn("iteration [ms]", text)
        self.assertIn("predicted training time", text)
        plan = self.read("plans/static.json")
        self.assertEqual(plan["num_steps"], 30)  # 3 epochs of 640 / 64
        self.assertEqual([(p["layout"]["pipeline_parallel_size"], p["tokens"]) for p in plan["phases"]], [(2, 16)])
        self.assertEqual(plan["provenance"]["profile_path"], "../profile.json")
        self.assertEqual(plan["provenance"]["cluster_path"], "../cluster.json")

    def test_elastic_plan_gets_faster_as_layers_freeze(self):
        self.plan("elastic.json", "pipetransformer", "--epochs", 300)
        phases = self.read("elastic.json")["phases"]
        self.assertGreater(len(phases), 1)
        self.assertEqual(phases[0]["layout"]["pipeline_parallel_size"], 2)
        times = [phase["predicted"]["iteration_ns"] for phase in phases]
        self.assertEqual(times, sorted(times, reverse=True))

    def test_no_change_of_layout_that_does_not_pay(self):
        """Building groups anew costs 50 ms, and the 20 steps after the first freeze of a run of 30 take 13 ms each."""
        self.plan("elastic.json", "pipetransformer", "--epochs", 3)
        self.assertTrue(all(phase["layout"]["pipeline_parallel_size"] == 2 for phase in self.read("elastic.json")["phases"]))

    def test_published_rule_changes_whether_or_not_it_pays(self):
        self.plan("published.json", "pipetransformer-published", "--epochs", 3)
        phases = self.read("published.json")["phases"]
        self.assertEqual({phase["schedule"] for phase in phases}, {"GPipe"})
        self.assertEqual(phases[-1]["layout"]["pipeline_parallel_size"], 1)
        self.assertTrue(all(phase["first_trainable_layer"] < phase["partition"][0]["end"] for phase in phases), "frozen layers are on the first device")

    def test_freeze_only_keeps_the_static_layout(self):
        self.plan("static.json", "static")
        self.plan("frozen.json", "freeze-only")
        static, frozen = self.read("static.json")["phases"], self.read("frozen.json")["phases"]
        self.assertGreater(len(frozen), 1)
        for phase in frozen:
            self.assertEqual({**phase, "from_step": 0, "first_trainable_layer": 0, "predicted": 0}, {**static[0], "predicted": 0})

    def test_threads_per_rank_are_chosen_by_time(self):
        """Two threads that take half the time do what two ranks do, without their messages; that take as long, not."""
        self.edit("profile.json", lambda profile: measure_with_two_threads(profile, 0.5))
        text = self.plan("elastic.json", "pipetransformer").stdout
        self.assertIn("on 1 rank with 2 threads,", text)
        plan = self.read("elastic.json")
        self.assertEqual((plan["world_size"], plan["threads_per_rank"]), (1, 2))
        self.assertIn("iteration", self.run_tool("simulate", "elastic.json").stdout)
        self.plan("two.json", "pipetransformer", "--threads-per-rank", 1)
        self.assertEqual((self.read("two.json")["world_size"], self.read("two.json")["threads_per_rank"]), (2, 1))
        self.edit("profile.json", lambda profile: measure_with_two_threads(profile, 1))
        self.plan("elastic.json", "pipetransformer")
        self.assertEqual(self.read("elastic.json")["world_size"], 2)
        refused = self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 64,
                                "--threads-per-rank", 3, "-o", "three.json", code=1)
        self.assertIn("--threads-per-rank: must be a number that profile.json has measured for the devices of cluster.json: 1, 2", refused.stderr)

    def one_process_line(self, method, *options):
        return re.findall(r"^One process.*", self.plan("plan.json", method, *options).stdout, re.MULTILINE)

    def test_a_plan_of_one_process_says_what_is_left_of_it(self):
        self.edit("profile.json", lambda profile: measure_with_two_threads(profile, 0.5))
        self.assertEqual(self.one_process_line("pipetransformer"), ["One process with 2 threads is fastest here: this run freezes, without a pipeline."])
        self.assertEqual(self.one_process_line("auto"), ["One process with 2 threads is fastest here: this run has no pipeline."])
        speed = {"latency_ns": 1_000, "bandwidth_bytes_per_second": 5_000_000_000}
        self.edit("profile.json", lambda profile: profile.update(cache={"read": speed, "write": speed}))
        cached = "this run freezes and caches, without a pipeline."
        self.assertEqual(self.one_process_line("pipetransformer", "--epochs", 300, "--explain"), [f"One process with 2 threads is fastest here: {cached}"])
        # Where nothing else was looked at, or the latest freezes were wanted, nobody knows that it is the fastest.
        self.assertEqual(self.one_process_line("pipetransformer", "--epochs", 300, "--threads-per-rank", 2), [f"One process with 2 threads: {cached}"])
        self.assertEqual(self.one_process_line("pipetransformer", "--epochs", 300, "--deadline", "100h")[0][:27], "One process with 2 threads:")
        self.assertEqual(self.one_process_line("data-parallel", "--threads-per-rank", 2), ["One process with 2 threads: this run has no pipeline."])
        self.assertEqual(self.one_process_line("pipetransformer", "--threads-per-rank", 1), [], "two ranks")

    def test_one_schedule_alone(self):
        self.plan("gpipe.json", "static", "--schedule", "GPipe")
        self.assertEqual(self.read("gpipe.json")["phases"][0]["schedule"], "GPipe")

    def test_cache_is_used_where_it_pays_and_explained(self):
        """The prefix of 3 blocks takes 60 us a sample to compute; its entry takes 5 us to read: filled, then hit."""
        speed = {"latency_ns": 1_000, "bandwidth_bytes_per_second": 5_000_000_000}
        self.edit("profile.json", lambda profile: profile.update(cache={"read": speed, "write": speed}))
        done = self.plan("elastic.json", "pipetransformer", "--epochs", 300, "--explain")
        phases = self.read("elastic.json")["phases"]
        self.assertTrue(all(phase["cache"]["on"] for phase in phases if phase["first_trainable_layer"] > 0))
        self.assertEqual([found["fraction"] for found in phases[-1]["cache"]["found"]], [1])
        self.assertIn("paid back after", done.stdout)
        self.assertIn(" hit ", done.stdout)
        self.run_tool("simulate", "elastic.json")
        slow = {"latency_ns": 1_000_000, "bandwidth_bytes_per_second": 1_000_000}
        self.edit("profile.json", lambda profile: profile.update(cache={"read": slow, "write": slow}))
        self.plan("slow.json", "pipetransformer", "--epochs", 300)
        self.assertFalse(any(phase["cache"]["on"] for phase in self.read("slow.json")["phases"]))

    def explained(self, *options):
        """The sentences of --explain on the cache, and whether phases of the plan use it; a cache that takes no time."""
        self.edit("profile.json", lambda profile: profile.update(cache={way: {"latency_ns": 0, "bandwidth_bytes_per_second": 0} for way in ("read", "write")}))
        done = self.plan("plan.json", "pipetransformer", *options, "--explain")
        return re.findall(r"^(?:the|no) cache.*", done.stdout, re.MULTILINE), [phase["cache"]["on"] for phase in self.read("plan.json")["phases"]]

    def test_the_explanation_says_what_the_plan_does_with_the_cache(self):
        reasons, uses = self.explained("--epochs", 1)
        self.assertGreater(len(uses), 1)
        self.assertFalse(any(uses), "one epoch cannot hit")
        self.assertEqual(set(reasons), {"no cache: the run ends before a sample comes again"})
        reasons, uses = self.explained("--epochs", 300)
        self.assertTrue(uses[-1])
        self.assertRegex(reasons[-1], r"^the cache is used: what is left takes .* with it, .* without; filling costs")

    def test_no_cache_without_its_measurement_and_when_off(self):
        done = self.plan("elastic.json", "pipetransformer", "--epochs", 300, "--explain")
        self.assertIn("no cache: the profile has not measured a cache", done.stdout)
        done = self.plan("off.json", "pipetransformer", "--epochs", 300, "--explain", "--cache", "off")
        self.assertIn("no cache: the cache is switched off", done.stdout)

    def test_json_on_stdout_holds_the_file(self):
        answer = json.loads(self.plan("static.json", "static", "--format", "json").stdout)
        plan = self.read("static.json")
        self.assertEqual({key: answer[key] for key in plan}, plan)

    def test_auto_takes_the_best_layout_and_says_what_else_there_was(self):
        answer = json.loads(self.plan("auto.json", "auto", "--format", "json").stdout)
        self.assertEqual(answer["phases"], self.read("auto.json")["phases"])
        self.assertEqual(answer["predicted_iteration_ns"], answer["phases"][0]["predicted"]["iteration_ns"])
        self.assertAlmostEqual(answer["gap"], answer["predicted_iteration_ns"] / answer["lower_bound_ns"] - 1)
        self.assertGreaterEqual(answer["gap"], 0)
        self.assertTrue(all(one["predicted_iteration_ns"] >= answer["predicted_iteration_ns"] for one in answer["alternatives"]))
        for method in ("static", "data-parallel"):
            done = json.loads(self.plan("other.json", method, "--ignore-memory-limit", "--format", "json").stdout)
            self.assertLessEqual(done["lower_bound_ns"], answer["lower_bound_ns"])  # which may be proven to be the best
        self.edit("cluster.json", lambda cluster: [device.update(memory_limit_bytes=int(320 * 2**20)) for device in cluster["devices"]])
        self.assertIn("above", self.plan("auto.json", "auto").stdout)
        self.edit("cluster.json", lambda cluster: [device.update(memory_limit_bytes=1000) for device in cluster["devices"]])
        self.assertIn("p = 2: stage 0 needs", self.plan("none.json", "auto", code=1).stderr)

    def test_every_method_by_name(self):
        for method in ("exact", "equal-split", "pipedream", "pipedream-2bw", "ptd-p", "timelyfreeze"):
            with self.subTest(method=method):
                done = self.plan("plan.json", method, "--ignore-memory-limit")
                self.assertEqual(self.read("plan.json")["method"], method)
                self.assertIn("no fixed layout that auto looks at has an iteration below", done.stdout)
                self.run_tool("simulate", "plan.json")
        self.assertIn("weight gradients left out", done.stdout)

    def test_a_model_in_place_of_a_profile(self):
        self.run_tool("plan", "--model", "bert-large", "--hardware", "A100", "--cluster", "cluster.json", "--global-batch", 16, "--method", "auto", "--ignore-memory-limit", "-o", "bert.json")
        self.assertEqual(self.read("bert.json")["provenance"]["profile_path"], "bert.profile.json")
        self.run_tool("simulate", "bert.json")
        self.assert_refused("plan", "--cluster", "cluster.json", "--global-batch", 16, "--method", "auto", "-o", "none.json", code=2, says="needs --profile FILE or --model NAME")
        self.assert_refused("plan", "--model", "bert-base-uncased", "--cluster", "cluster.json", "--global-batch", 16, "--method", "auto", "-o", "none.json",
                            says=["vit-b16, bert-large, or a config.json or its folder", "hf download bert-base-uncased --local-dir bert-base-uncased"])

    def test_pins_and_fixed_settings(self):
        self.plan("pinned.json", "auto", "--pin", "block.4.attention=1", "--pin", "8=0", "--fix", "pp=2", "--fix", "m=4")
        phase = self.read("pinned.json")["phases"][0]
        self.assertEqual((phase["partition"][1]["begin"], phase["num_micro_batches"]), (9, 4))
        self.plan("one.json", "auto", "--max-devices", 1, "--ignore-memory-limit")
        layout = self.read("one.json")["phases"][0]["layout"]
        self.assertEqual((layout["pipeline_parallel_size"], layout["data_parallel_size"], self.read("one.json")["world_size"]), (1, 1, 2))
        text = self.plan("explained.json", "auto", "--explain").stdout
        self.assertIn("sets the pace", text)
        for wrong in ("pp=0", "stages=2"):
            self.assertIn("must be pp=P", self.plan("none.json", "auto", "--fix", wrong, code=2).stderr)
        for options, says in [(["--pin", "block.4.mlp=0", "--pin", "3=1"], "must leave a layer for every stage"), (["--pin", "attic=1"], "must name one of the model's layers"),
                              (["--pin", "3"], "must be LAYER=STAGE")]:
            self.assertIn(says, self.plan("none.json", "auto", *options, code=1).stderr)
        self.assertIn("no partition keeps the pinned layers", self.plan("none.json", "auto", "--pin", "3=5", code=1).stderr)

    def test_what_is_fixed_is_kept_or_refused(self):
        self.edit("profile.json", lambda profile: profile["measurements"].extend(
            {"key": {**one["key"], "tensor_parallel_size": 2}, "cost": {name: value // 2 for name, value in one["cost"].items()}} for one in list(profile["measurements"])))
        tensor_ranks = lambda: self.read("fixed.json")["phases"][0]["layout"]["tensor_parallel_size"]
        self.plan("fixed.json", "auto", "--ignore-memory-limit")
        self.assertEqual(tensor_ranks(), 2)  # free collectives
        for options in (["--fix", "tp=1"], ["--tp", "1"]):
            self.plan("fixed.json", "auto", "--ignore-memory-limit", *options)
            self.assertEqual(tensor_ranks(), 1)
        self.assertIn("leaves partitions open", self.plan("none.json", "equal-split", "--pin", "3=0", code=1).stderr)
        self.assertIn("Megatron's rules", self.plan("none.json", "ptd-p", "--fix", "pp=2", code=1).stderr)
        answer = json.loads(self.plan("fixed.json", "pipetransformer", "--format", "json").stdout)
        self.assertEqual(answer["objective"], "run time")

    def test_published_rule_uses_no_more_devices_than_it_may(self):
        self.write("cluster.json", synthetic_cluster(num_ranks=4))
        self.plan("few.json", "pipetransformer-published", "--max-devices", 2, "--epochs", 30)
        for phase in self.read("few.json")["phases"]:
            self.assertLessEqual(phase["layout"]["pipeline_parallel_size"] * phase["layout"]["data_parallel_size"], 2)

    def test_an_estimate_is_written_with_its_plan_only(self):
        self.write("none.profile.json", "keep me")
        self.run_tool("plan", "--model", "bert-large", "--cluster", "cluster.json", "--global-batch", 16, "--method", "data-parallel", "-o", "none.json", code=1)
        self.assertEqual((self.folder / "none.profile.json").read_text(), "keep me")

    def test_a_deadline_freezes_as_late_as_it_allows(self):
        def frozen_from(*options):
            done = self.plan("late.json", "pipetransformer", "--steps", 3000, *options)
            phases = self.read("late.json")["phases"]
            total = sum((after - phase["from_step"]) * phase["predicted"]["iteration_ns"] + phase["predicted"]["transformation_ns"]
                        for phase, after in zip(phases, [one["from_step"] for one in phases[1:]] + [3000]))
            return next((phase["from_step"] for phase in phases if phase["first_trainable_layer"] > 0), 3000), total / 1e9, done.stdout
        by_rule, seconds, _ = frozen_from()
        later, within, text = frozen_from("--deadline", f"{seconds + 10:.1f}s")
        self.assertGreater(later, by_rule)
        self.assertLessEqual(within, seconds + 10)
        self.assertIn("of all updates of blocks are still made", text)
        self.assertEqual(frozen_from("--deadline", "1h")[0], 3000)
        self.assertIn("the run takes", self.plan("none.json", "pipetransformer", "--steps", 3000, "--deadline", "1s", code=1).stderr)
        self.assertIn("needs a --method that freezes", self.plan("none.json", "static", "--deadline", "1h", code=2).stderr)

    def test_a_forecast_from_a_list_or_a_recorded_run(self):
        self.plan("fixed.json", "pipetransformer", "--steps", 1000, "--forecast", "fixed:2,2,6")
        model = self.read("profile.json")["model"]["layers"]
        frozen = sorted({phase["first_trainable_layer"] for phase in self.read("fixed.json")["phases"]})
        self.assertEqual([model[first]["name"] for first in frozen], ["embedding", "block.2.attention", "head"])
        self.plan("again.json", "pipetransformer", "--steps", 2000, "--forecast", "fixed.json")
        steps = lambda name: {phase["first_trainable_layer"]: phase["from_step"] for phase in reversed(self.read(name)["phases"])}
        self.assertEqual({layer: 2 * step for layer, step in steps("fixed.json").items()}, steps("again.json"))
        self.assertIn("at most 6", self.plan("none.json", "pipetransformer", "--forecast", "fixed:7", code=1).stderr)

    def test_steps_and_epochs(self):
        self.plan("a.json", "static", "--epochs", 1)
        self.assertEqual((self.read("a.json")["num_steps"], self.read("a.json")["epochs"]), (10, 1))
        self.plan("b.json", "static", "--steps", 7)
        self.assertEqual(self.read("b.json")["num_steps"], 7)
        self.assertNotIn("epochs", self.read("b.json"))

    def test_what_the_profile_knows_of_its_data_travels(self):
        self.edit("profile.json", lambda profile: profile["workload"].update(max_tokens=16, window_overlap=4))
        self.plan("static.json", "static")
        self.assertEqual(self.read("static.json")["workload"], self.read("profile.json")["workload"])

    def test_the_type_of_frozen_layers_travels(self):
        self.plan("static.json", "static")
        self.assertNotIn("frozen_dtype", self.read("static.json"))
        shutil.copy(self.folder / "profile.json", self.folder / "rounded.json")
        self.edit("rounded.json", lambda profile: profile.update(frozen_dtype="bfloat16"))
        done = self.run_tool("simulate", "static.json", "--profile", "rounded.json", code=1)
        self.assertIn("rounded.json: frozen_dtype: measured frozen layers in bfloat16, but static.json was made for float32", done.stderr)
        self.edit("profile.json", lambda profile: profile.update(frozen_dtype="bfloat16"))
        self.assertIn("frozen layers compute in bfloat16", self.plan("static.json", "static").stdout)
        self.assertEqual(self.read("static.json")["frozen_dtype"], "bfloat16")
        self.run_tool("simulate", "static.json")

    def test_a_quick_profile_is_said(self):
        self.assertNotIn("roughly", self.plan("static.json", "static").stdout)
        self.edit("profile.json", lambda profile: profile.update(quick=True))
        self.assertIn("samples/s; roughly, since the profile is a quick one", self.plan("static.json", "static").stdout)

    def test_no_plan_fits_says_why_and_writes_nothing(self):
        self.write("old.json", "keep me")
        done = self.plan("old.json", "data-parallel", code=1)
        self.assertEqual(done.stdout, "")
        self.assertIn("has 314 MiB", done.stderr)
        self.assertIn("2 % of every memory limit is kept free (--memory-reserve)", done.stderr)
        self.assertIn("--ignore-memory-limit", done.stderr)
        self.assertEqual((self.folder / "old.json").read_text(), "keep me")

    def test_data_parallel_without_the_limit(self):
        text = self.plan("dp.json", "data-parallel", "--ignore-memory-limit").stdout
        self.assertIn("not applied to this plan", text)
        self.assertFalse(self.read("dp.json")["memory_limited"])

    def test_without_workload_the_length_must_be_given(self):
        self.edit("profile.json", lambda profile: profile.pop("workload"))
        done = self.plan("static.json", "static", code=1)
        self.assertIn("profile.json: workload", done.stderr)
        self.assertIn("--steps", done.stderr)
        self.plan("static.json", "static", "--steps", 10, "--tokens", 16)

    def test_equal_input_gives_equal_bytes(self):
        first = self.plan("a.json", "pipetransformer", "--format", "json").stdout
        self.assertEqual(first, self.plan("a.json", "pipetransformer", "--format", "json").stdout)


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
        for phase in simulated["phases"]:  # the parts are the peak
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
        rows = json.loads(self.run_tool("simulate", "again.json", "--set", "recompute=off", "--format", "json").stdout)["rows"]
        self.assertLess(rows[1]["times_base"], 1)

    def test_memory_over_time_peaks_where_the_table_says(self):
        self.plan("static.json", "static")
        result = json.loads(self.run_tool("simulate", "static.json", "--memory", "memory.csv", "--format", "json").stdout)
        self.assertEqual(result["does_not_fit"], [])
        lines = (self.folder / "memory.csv").read_text().splitlines()
        self.assertEqual(lines[0], "from_step,rank,at_ns,bytes,action")
        rows = [line.split(",") for line in lines[1:]]
        for rank, peak in enumerate(result["phases"][0]["peak_memory_bytes"]):
            self.assertEqual(max(int(row[3]) for row in rows if row[1] == str(rank)), peak)
        self.run_tool("simulate", "static.json", "--memory", "memory.svg")
        self.assertIn("rank 1", (self.folder / "memory.svg").read_text())
        self.assert_refused("simulate", "static.json", "--memory", "memory.txt", code=2, says="must end in .svg or .csv")

    def test_what_does_not_fit_is_said_with_place_and_time(self):
        self.plan("static.json", "static")
        self.edit("cluster.json", lambda cluster: cluster["devices"][1].update(memory_limit_bytes=1000))
        done = self.run_tool("simulate", "static.json", "--cluster", "cluster.json")
        self.assertRegex(done.stdout, r"does not fit: from step 0, rank 1 needs .* in 1F\d+, .* into the iteration: .* more than its 0.977 KiB")


class EstimateTest(CliTest):
    """A profile without the machine: from a config and a device's figures, through plan and simulate."""

    CONFIG = {"model_type": "gpt2", "n_embd": 256, "n_layer": 6, "n_head": 4, "n_positions": 128, "vocab_size": 1000}

    def test_a_config_on_a_device_is_planned(self):
        (self.folder / "config.json").write_text(json.dumps(self.CONFIG))
        for device in ("A100", "h200"):
            self.run_tool("profile", "--like", "config.json", "--hardware", device, "--nproc-per-node", 4, "--global-batch", 64, "--samples", 640,
                          "--cluster", f"{device}.cluster.json", "-o", f"{device}.json")
            self.run_tool("plan", "--profile", f"{device}.json", "--cluster", f"{device}.cluster.json", "--method", "static", "--global-batch", 64, "-o", f"{device}.plan.json")
        slow, fast = (self.read(f"{device}.plan.json")["phases"][0]["predicted"]["iteration_ns"] for device in ("A100", "h200"))
        self.assertGreater(slow, fast)
        self.assertEqual(self.read("A100.cluster.json")["devices"][0]["memory_limit_bytes"], 40_000_000_000)

    def test_nodes_times_devices_per_node_as_torchrun_counts(self):
        self.write("config.json", self.CONFIG)
        for nodes, per_node in ((4, 4), (4, 6), (1, 3)):
            self.run_tool("profile", "--like", "config.json", "--nodes", nodes, "--nproc-per-node", per_node, "--cluster", "c.json", "-o", "p.json")
            self.assertEqual([device["node"] for device in self.read("c.json")["devices"]], [node for node in range(nodes) for _ in range(per_node)])

    def test_ranks_of_this_machine_are_no_nodes_to_measure(self):
        self.assert_refused("profile", "--model", "model", "--nodes", 2, "-o", "p.json", code=2, says=["--nodes", "--like", "torchrun"])

    def test_an_imported_graph_is_planned_and_simulated_but_not_rehearsed(self):
        (self.folder / "graph.txt").write_text("".join(
            f"node{i} -- Linear -- forward_compute_time={i}.0, backward_compute_time={2 * i}.0, activation_size=1000.0, parameter_size=400.0\n" for i in range(1, 7))
            + "".join(f"\tnode{i} -- node{i + 1}\n" for i in range(1, 6)))
        self.run_tool("profile", "--import", "graph.txt", "--import-samples", 64, "--nproc-per-node", 2, "--global-batch", 64, "--cluster", "cluster.json",
                      "-o", "graph.json")
        self.run_tool("plan", "--profile", "graph.json", "--cluster", "cluster.json", "--method", "static", "--global-batch", 64, "-o", "graph.plan.json")
        self.assertIn("device-hours", self.run_tool("simulate", "graph.plan.json").stdout)
        refused = self.run_tool("train", "graph.plan.json", "--device", "emulated", "-o", "run", code=1)
        self.assertRegex(refused.stderr, "must be a Transformer .* simulate")

    def test_what_is_wrong_is_named(self):
        (self.folder / "config.json").write_text(json.dumps({**self.CONFIG, "model_type": "llama"}))
        self.assert_refused("profile", "--like", "config.json", "-o", "p.json", code=1, says=["model_type", "bert, vit or gpt2"])
        self.assert_refused("profile", "--like", "nowhere", "-o", "p.json", code=1, says="nowhere")
        self.assert_refused("profile", "--like", "vit-b16", "--hardware", "abacus", "-o", "p.json", code=1, says="A100")


class SimulateWhatIfsTest(CliTest):
    """Changes to a plan, against the plan as it is."""

    def rows(self, *sets):
        arguments = [part for one in sets for part in ("--set", one)]
        return json.loads(self.run_tool("simulate", "static.json", *arguments, "--format", "json").stdout)["rows"]

    def test_each_set_is_a_row_against_the_base(self):
        self.plan("static.json", "static")
        base, faster, slow, both = self.rows("compute=x2", "rank0=x0.5", "compute=x2,bandwidth=x1000000,latency=0")
        self.assertEqual(base["times_base"], 1)
        self.assertLess(faster["training_seconds"], base["training_seconds"])
        self.assertGreater(slow["training_seconds"], 1.2 * base["training_seconds"])
        self.assertAlmostEqual(both["times_base"], 0.5, delta=0.02)  # nothing but compute is left, and that is halved
        self.assertLessEqual(both["training_seconds"], faster["training_seconds"])

    def test_networks(self):
        """Two ranks in two nodes, messages of some 100 us at 12 GB/s: a card of 0.1 GB/s is the bottleneck, one of 1000 GB/s is none."""
        self.edit("cluster.json", lambda cluster: cluster["devices"][1].update(node=1))
        self.plan("static.json", "static")
        rows = self.rows("card=1000", "card=0.001", "switch=1x0.001", "switch=2x0.001", "all-reduce=tree", "overlap-reduction=on", "scatter-gather=off")
        factors = [row["times_base"] for row in rows[1:]]
        self.assertEqual((factors[0], factors[3]), (1, 1))
        self.assertGreater(factors[1], 1.5)
        self.assertEqual(factors[1], factors[2])
        for change, says in (("switch=4", "NODESxGB/s"), ("all-reduce=star", "must be ring"), ("overlap-reduction=maybe", "on or off"), ("card=0", "more than 0")):
            self.assert_refused("simulate", "static.json", "--set", change, code=2, says=says)

    def test_tensor_parallel_plans_are_simulated_but_not_trained(self):
        self.write("gpt.json", {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 32, "vocab_size": 100})
        self.run_tool("profile", "--like", "gpt.json", "--tensor-parallel", "1,2", "--nproc-per-node", 4, "--cluster", "cluster.json", "-o", "profile.json")
        self.plan("tp.json", "static", "--tp", 2, "--steps", 10)
        layout = self.read("tp.json")["phases"][0]["layout"]
        self.assertEqual((layout["pipeline_parallel_size"], layout["tensor_parallel_size"]), (2, 2))
        self.assertEqual(len({bytes for bytes in self.read("tp.json")["phases"][0]["predicted"]["peak_memory_bytes"]}), 2)
        self.run_tool("simulate", "tp.json")
        self.assert_refused("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 64, "--method", "static", "--tp", 3, "--steps", 10,
                            "-o", "x.json", says="tensor-parallel size: must divide the 4 ranks, is 3")

    def test_jitter_is_seeded_and_slows_down(self):
        self.plan("static.json", "static")
        once = self.rows("jitter=0.2")[1]
        self.assertEqual(once, self.rows("jitter=0.2")[1])
        self.assertGreater(once["times_base"], 1)  # the slowest rank of each meeting counts
        self.assertIn("95 %", once["note"])

    def test_failures_cost_checkpoints_and_lost_work(self):
        """Daly 2006 with Young's distance."""
        self.plan("static.json", "static")
        base, failing = self.rows("failures=24,checkpoint=10")
        rate, cost = 24 / 86400, 10
        distance = min(base["training_seconds"], math.sqrt(2 * cost / rate))
        expected = math.exp(rate * cost) * math.expm1(rate * (distance + cost)) / rate * base["training_seconds"] / distance
        self.assertAlmostEqual(failing["training_seconds"], expected, delta=1e-6 * expected)

    def test_wrong_changes_are_named(self):
        self.plan("static.json", "static")
        for change, says in (("bandwidth", "NAME=VALUE"), ("speed=2", "one of bandwidth"), ("rank9=x2", "below 2"), ("compute=2", "factor"),
                             ("cache=on", "plan again"), ("latency=fast", "number"), ("jitter=x2", "not a factor")):
            with self.subTest(change):
                self.assert_refused("simulate", "static.json", "--set", change, code=2, says=says)


class SimulateScheduleTest(CliTest):
    """A what-if without files."""

    def simulate(self, *options):
        return json.loads(self.run_tool("simulate", "--schedule", *options, "--format", "json").stdout)

    def test_zero_bubbles_published_rate(self):
        """Table 5 of Zero Bubble (Qi et al. 2023), 1.5B, p = 8, m = 24: ZB-H1 .1585, 1F1B .2431."""
        times = ("--pp", 8, "--micro-batches", 24, "--forward-ms", 18.522, "--backward-input-ms", 18.086, "--backward-weight-ms", 9.337,
                 "--latency-ms", 0.601)
        found = self.simulate("ZB-H1", *times)
        self.assertAlmostEqual(found["span_bubble_fraction"], 0.1585, delta=0.00005)
        self.assertEqual(found["peak_in_flight"], [8] * 8)
        self.assertAlmostEqual(self.simulate("1f1b", *times)["span_bubble_fraction"], 0.2431, delta=0.00005)

    def test_closed_forms(self):
        """GPipe: (m + p - 1)(F + I + W); messages that occupy their link: a hop costs bytes / bandwidth more."""
        found = self.simulate("GPipe", "--pp", 4, "--micro-batches", 8)
        self.assertEqual(found["makespan_ns"], 33_000_000)
        self.assertAlmostEqual(found["bubble_overhead"], 3 / 8)
        self.assertAlmostEqual(found["bubble_fraction"], 3 / 11)
        two = ("GPipe", "--pp", 2, "--micro-batches", 1)
        self.assertEqual(self.simulate(*two, "--activation-bytes", 1_000_000, "--bandwidth-gbytes-per-second", 1)["makespan_ns"], 8_000_000)
        self.assertEqual(self.simulate(*two, "--activation-bytes", 1_000_000, "--latency-ms", 0.5)["makespan_ns"], 7_000_000)

    def test_joined_pairs_may_be_split(self):
        whole = self.simulate("DualPipeV", "--pp", 4, "--micro-batches", 8)
        split = self.simulate("DualPipeV", "--pp", 4, "--micro-batches", 8, "--split-overlap")
        self.assertEqual((whole["makespan_ns"], split["makespan_ns"]), (54_000_000, 51_000_000))  # two stages of 3 ms per rank: 2 x 27, 2 x 25.5

    def test_token_slices_shrink_the_bubble(self):
        """(m n + p - 1) (F + B), times of one slice."""
        for name in ("TeraPipe", "Seq1F1B"):
            found = self.simulate(name, "--pp", 4, "--micro-batches", 2, "--token-slices", 4)
            self.assertEqual(found["makespan_ns"], (2 * 4 + 3) * 3_000_000)

    def test_double_buffered_weights_leave_no_bubble(self):
        """PipeDream-2BW: an iteration costs its work, m (F + B); alone it is 1F1B."""
        found = self.simulate("PipeDream-2BW", "--pp", 4, "--micro-batches", 4)
        self.assertEqual((found["makespan_ns"], found["iteration_ns"]), (21_000_000, 12_000_000))
        self.assertEqual(found["steady_bubble_fraction"], 0)
        self.assertEqual(found["peak_in_flight"], [4, 3, 2, 1])

    def test_automatic_schedule_uses_the_memory_that_it_may(self):
        """Table 5 of Zero Bubble, ZB-2p .0433 + .005; with p micro-batches no worse than ZB-H1."""
        times = ("--pp", 8, "--micro-batches", 24, "--forward-ms", 18.522, "--backward-input-ms", 18.086, "--backward-weight-ms", 9.337,
                 "--latency-ms", 0.601)
        found = self.simulate("AutoZeroBubble", *times, "--max-in-flight", 16)
        self.assertLessEqual(found["span_bubble_fraction"], 0.0483)
        self.assertLessEqual(max(found["peak_in_flight"]), 16)
        tight = self.simulate("AutoZeroBubble", *times, "--max-in-flight", 8)
        self.assertLessEqual(tight["span_bubble_fraction"], 0.1586)
        self.assertLessEqual(max(tight["peak_in_flight"]), 8)

    def test_a_csv_file_is_simulated(self):
        (self.folder / "mine.csv").write_text(self.run_tool("schedule", "1F1B", "--pp", 4, "--micro-batches", 8, "--actions", "compute_comms",
                                                            "--format", "csv").stdout)
        found = self.simulate("mine.csv")
        self.assertEqual((found["makespan_ns"], found["ranks"], found["num_micro_batches"]), (33_000_000, 4, 8))
        self.assertEqual(found["engine"], "fast path")

    def test_text_names_its_figures(self):
        text = self.run_tool("simulate", "--schedule", "ZBVZeroBubble").stdout
        for word in ("makespan", "span_bubble_fraction", "peak in flight"):
            self.assertIn(word, text)

    def test_shapes_that_there_are_not_are_wrong_use(self):
        self.assert_refused("simulate", "--schedule", "ZB-H2", "--pp", 8, "--micro-batches", 8, code=2, says="must be >= 2 p - 1")
        self.assert_refused("simulate", "--pp", 8, "plan.json", code=2, says="--schedule")


if __name__ == "__main__":
    unittest.main()
