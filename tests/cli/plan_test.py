"""A plan of one phase: its file, its length, the values from the profile, and the methods."""

import json
import re
import unittest

from support import CliTest, measure_slices, measure_with_two_threads


def planned_phases(answer):
    """The phases without the figures that are only shown; those of the model's operations are unknown here."""
    return [{key: phase[key] for key in phase if key != "micro_batch_size"} for phase in answer["phases"]]


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

    def test_training_needs_a_mini_batch(self):
        self.assert_refused("plan", "--profile", "profile.json", "--cluster", "cluster.json", "-o", "plan.json", code=2,
                            says=["--global-batch"])

    def test_one_schedule_alone(self):
        self.plan("gpipe.json", "static", "--schedule", "GPipe")
        self.assertEqual(self.read("gpipe.json")["phases"][0]["schedule"], "GPipe")

    def test_several_stages_per_rank(self):
        for method in ("static", "auto"):
            for schedule in ("Interleaved1F1B", "LoopedBFS"):
                with self.subTest(method=method, schedule=schedule):
                    options = ("--schedule", schedule, "--fix", "v=2", "--fix", "pp=2", "--format", "json")
                    answer = json.loads(self.plan("looped.json", method, *options).stdout)
                    plan = self.read("looped.json")
                    phase = plan["phases"][0]
                    self.assertEqual((plan["version"], phase["schedule"], phase["virtual_stages"],
                                      len(phase["partition"])), (2, schedule, 2, 4))
                    self.assertGreaterEqual(answer["gap"], 0)
                    done = self.run_tool("simulate", "looped.json", "--format", "json")
                    simulated = json.loads(done.stdout)["phases"][0]
                    for name in ("iteration_ns", "peak_memory_bytes"):
                        self.assertEqual(simulated[name], phase["predicted"][name])
                    self.assertEqual((simulated["stages"], simulated["virtual_stages"]), (4, 2))
        self.assertIn("2 stages per rank", self.run_tool("simulate", "looped.json").stdout)
        text = self.plan("looped.json", "static", "--fix", "v=3", "--explain").stdout
        self.assertRegex(text, r"pipeline rank [01] sets the pace")
        self.plan("looped.json", "pipetransformer", "--fix", "v=2", "--ignore-memory-limit")
        self.assertTrue(all(phase["virtual_stages"] == 2 for phase in self.read("looped.json")["phases"]))
        self.plan("flat.json", "static", "--fix", "v=1")
        self.assertEqual(self.read("flat.json")["version"], 1)
        self.assertNotIn("virtual_stages", self.read("flat.json")["phases"][0])

    def test_memory_over_time_of_several_stages_per_rank_peaks_at_the_plans(self):
        self.plan("looped.json", "static", "--schedule", "Interleaved1F1B", "--fix", "v=2")
        self.run_tool("simulate", "looped.json", "--memory", "memory.csv")
        peaks = {}
        for line in (self.folder / "memory.csv").read_text().splitlines()[1:]:
            row = line.split(",")
            peaks[row[1]] = max(peaks.get(row[1], 0), int(row[3]))
        predicted = self.read("looped.json")["phases"][0]["predicted"]["peak_memory_bytes"]
        self.assertEqual([peaks[str(rank)] for rank in range(2)], predicted)

    def test_a_plan_simulated_by_a_file(self):
        self.plan("looped.json", "static", "--schedule", "Interleaved1F1B",
                  "--fix", "pp=2", "--fix", "m=4", "--fix", "v=2")
        looped = json.loads(self.run_tool("simulate", "looped.json", "--format", "json").stdout)["phases"][0]
        for name, actions in (("Interleaved1F1B", "compute_only"), ("Interleaved1F1B", "compute_comms")):
            self.write("mine.csv", self.run_tool("schedule", name, "--pp", 2, "--micro-batches", 4, "--actions",
                                                 actions, "--format", "csv").stdout)
            done = self.run_tool("simulate", "looped.json", "--schedule-file", "mine.csv", "--format", "json")
            phase = json.loads(done.stdout)["phases"][0]
            self.assertEqual(phase, {**looped, "schedule": "mine.csv"})
        self.write("mine.csv", self.run_tool("schedule", "ZBVZeroBubble", "--pp", 2, "--micro-batches", 4, "--format",
                                             "csv").stdout)
        self.assert_refused("simulate", "looped.json", "--schedule-file", "mine.csv",
                            says=["profile.json: ", "must have measured I and W, which mine.csv has"])
        self.plan("flat.json", "static")
        self.assert_refused("simulate", "flat.json", "--schedule-file", "mine.csv",
                            says=["mine.csv: has 2 pipeline ranks, 4 stages and 4 micro-batches, but phases[0]"])

    def test_several_stages_per_rank_that_are_not_possible(self):
        for method, options, says in [
                ("static", ("--fix", "v=2", "--schedule", "1F1B"),
                 "stages per rank: must be 1 for the schedule 1F1B, is 2"),
                ("exact", ("--fix", "v=2"), "several stages per rank: need the method auto, static, "),
                ("static", ("--fix", "v=1000"), "too few for 1000 stages per rank; ask for at most 7, or try a"),
                ("static", ("--schedule", "Interleaved1F1B", "--fix", "m=5"),
                 "must be a multiple of the rounds, m / p rounded down, such as 4 or 6, is 5")]:
            with self.subTest(method=method, options=options):
                self.assertIn(says, self.plan("none.json", method, *options, code=1).stderr)

    def test_token_slices(self):
        self.edit("profile.json", lambda profile: profile["model"].update(is_causal=True))
        for method in ("static", "auto", "pipetransformer"):
            for schedule in ("TeraPipe", "Seq1F1B"):
                with self.subTest(method=method, schedule=schedule):
                    options = ("--schedule", schedule, "--fix", "slices=3", "--fix", "pp=2", "--ignore-memory-limit")
                    self.plan("sliced.json", method, *options)
                    plan = self.read("sliced.json")
                    phase = plan["phases"][0]
                    self.assertEqual((plan["version"], phase["schedule"], len(phase["token_slices"])), (2, schedule, 3))
                    self.assertEqual(sum(phase["token_slices"]), max(phase["tokens"], phase["longest_tokens"]))
                    done = self.run_tool("simulate", "sliced.json", "--format", "json", "--memory", "memory.csv")
                    simulated = json.loads(done.stdout)["phases"][0]
                    for name in ("iteration_ns", "peak_memory_bytes"):
                        self.assertEqual(simulated[name], phase["predicted"][name])
                    self.assertEqual(simulated["token_slices"], phase["token_slices"])
        self.assertIn("3 token slices", self.run_tool("simulate", "sliced.json").stdout)
        self.plan("usual.json", "static", "--schedule", "TeraPipe", "--ignore-memory-limit")
        self.assertEqual(len(self.read("usual.json")["phases"][0]["token_slices"]), 4)

    def test_terapipe_cuts_slices(self):
        self.edit("profile.json", measure_slices)
        self.plan("terapipe.json", "terapipe", "--fix", "pp=2", "--fix", "m=1", "--ignore-memory-limit")
        plan = self.read("terapipe.json")
        phase = plan["phases"][0]
        self.assertEqual((plan["method"], plan["version"], phase["schedule"]), ("terapipe", 2, "TeraPipe"))
        self.assertGreater(len(set(phase["token_slices"])), 1)
        self.assertEqual(sum(phase["token_slices"]), 16)
        simulated = json.loads(self.run_tool("simulate", "terapipe.json", "--format", "json").stdout)["phases"][0]
        self.assertEqual(simulated["iteration_ns"], phase["predicted"]["iteration_ns"])
        self.assertEqual(simulated["token_slices"], phase["token_slices"])
        self.plan("whole.json", "equal-split", "--schedule", "GPipe", "--fix", "pp=2", "--fix", "m=1",
                  "--ignore-memory-limit")
        self.assertLess(simulated["iteration_ns"], self.read("whole.json")["phases"][0]["predicted"]["iteration_ns"])

    def test_token_slices_that_are_not_possible(self):
        not_causal = "must describe a causal language model, such as GPT-2 or Llama (profile again"
        for method, options, says in [
                ("static", ("--fix", "slices=2"), "token slices: need the schedule TeraPipe or Seq1F1B, is none"),
                ("static", ("--schedule", "TeraPipe"), not_causal),
                ("terapipe", (), not_causal),
                ("exact", ("--schedule", "TeraPipe"), "token slices: need the method auto, static, ")]:
            with self.subTest(method=method, options=options):
                self.assertIn(says, self.plan("none.json", method, *options, code=1).stderr)
        self.edit("profile.json", lambda profile: profile["model"].update(is_causal=True))
        done = self.plan("none.json", "static", "--schedule", "TeraPipe", "--fix", "slices=1000", code=1)
        self.assertRegex(done.stderr, r"token slices: must be at most \d+, the longest sample's tokens, is 1000")
        self.assertIn("must have measured token slices", self.plan("none.json", "terapipe", code=1).stderr)
        self.edit("profile.json", measure_slices)
        self.assertIn("token slices: must be left to the method terapipe",
                      self.plan("none.json", "terapipe", "--fix", "slices=2", code=1).stderr)

    def test_json_on_stdout_holds_the_file(self):
        answer = json.loads(self.plan("static.json", "static", "--format", "json").stdout)
        plan = self.read("static.json")
        self.assertEqual({key: answer[key] for key in plan} | {"phases": planned_phases(answer)}, plan)

    def test_a_plan_of_a_measured_model_can_only_be_shown(self):
        self.edit("profile.json", lambda profile: profile.update(model_path="a/folder"))
        shown = self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 64)
        self.assertIn("predicted training time", shown.stdout)

    def test_steps_and_epochs(self):
        self.plan("a.json", "static", "--epochs", 1)
        self.assertEqual((self.read("a.json")["num_steps"], self.read("a.json")["epochs"]), (10, 1))
        self.plan("b.json", "static", "--steps", 7)
        self.assertEqual(self.read("b.json")["num_steps"], 7)
        self.assertNotIn("epochs", self.read("b.json"))

    def test_the_profiles_workload_is_copied_into_the_plan(self):
        self.edit("profile.json", lambda profile: profile["workload"].update(max_tokens=16, window_overlap=4))
        self.plan("static.json", "static")
        self.assertEqual(self.read("static.json")["workload"], self.read("profile.json")["workload"])

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


class MethodTest(CliTest):
    def test_auto_takes_the_best_layout_and_says_what_else_there_was(self):
        answer = json.loads(self.plan("auto.json", "auto", "--format", "json").stdout)
        self.assertEqual(planned_phases(answer), self.read("auto.json")["phases"])
        self.assertEqual(answer["predicted_iteration_ns"], answer["phases"][0]["predicted"]["iteration_ns"])
        self.assertAlmostEqual(answer["gap"], answer["predicted_iteration_ns"] / answer["lower_bound_ns"] - 1)
        self.assertGreaterEqual(answer["gap"], 0)
        self.assertTrue(all(one["predicted_iteration_ns"] >= answer["predicted_iteration_ns"]
                            for one in answer["alternatives"]))
        for method in ("static", "data-parallel"):
            done = json.loads(self.plan("other.json", method, "--ignore-memory-limit", "--format", "json").stdout)
            self.assertLessEqual(done["lower_bound_ns"], answer["lower_bound_ns"])  # it may be proven to be the best
        self.edit("cluster.json",
                  lambda cluster: [device.update(memory_limit_bytes=int(320 * 2**20)) for device in cluster["devices"]])
        self.assertIn("above", self.plan("auto.json", "auto").stdout)
        self.edit("cluster.json",
                  lambda cluster: [device.update(memory_limit_bytes=1000) for device in cluster["devices"]])
        self.assertRegex(self.plan("none.json", "auto", code=1).stderr, "p = 2: (stage|pipeline rank) 0 needs")

    def test_the_bound_is_for_the_choices_that_limit_auto(self):
        """Data parallelism, which --fix pp=2 rules out, may be faster than the bound of pipelines of two stages."""
        bound = r"no fixed layout that auto looks at{} has an iteration below"
        for method, options, limits in (("auto", ("--fix", "pp=2", "--recompute", "layers"),
                                         " with --fix pp=2 --recompute layers"),
                                        ("auto", (), ""), ("static", ("--fix", "pp=2"), "")):
            with self.subTest(method=method, options=options):
                done = self.plan("plan.json", method, *options, "--ignore-memory-limit")
                self.assertIn(bound.format(limits), done.stdout)

    def test_every_method_by_name(self):
        for method in ("exact", "equal-split", "pipedream", "pipedream-2bw", "ptd-p", "timelyfreeze"):
            with self.subTest(method=method):
                done = self.plan("plan.json", method, "--ignore-memory-limit")
                self.assertEqual(self.read("plan.json")["method"], method)
                self.assertIn("no fixed layout that auto looks at has an iteration below", done.stdout)
                self.run_tool("simulate", "plan.json")
        self.assertIn("weight gradients left out", done.stdout)

    def test_delayed_updates_only_when_asked_for(self):
        sentence = "PipeDream-2BW changes what the optimizer does"
        for method, options in (("pipedream-2bw", ()), ("static", ("--schedule", "PipeDream-2BW"))):
            with self.subTest(method=method):
                self.assertIn(sentence, self.plan("delayed.json", method, "--fix", "pp=2",
                                                  "--ignore-memory-limit", *options).stdout)
                phase = self.read("delayed.json")["phases"][0]
                self.assertEqual(phase["schedule"], "PipeDream-2BW")
                done = self.run_tool("simulate", "delayed.json", "--format", "json")
                simulated = json.loads(done.stdout)["phases"][0]
                self.assertEqual(simulated["peak_memory_bytes"], phase["predicted"]["peak_memory_bytes"])
                for parts in simulated["memory_of_positions"]:  # nothing is frozen
                    self.assertEqual(parts["older_weights_bytes"], parts["weights_bytes"])
        self.assertIn("older weights [MiB]", self.run_tool("simulate", "delayed.json").stdout)
        for method in ("auto", "static", "pipetransformer"):
            self.assertNotIn(sentence, self.plan("other.json", method).stdout)
        self.assertNotIn("older weights", self.run_tool("simulate", "other.json").stdout)

    def test_pins_and_fixed_settings(self):
        self.plan("pinned.json", "auto", "--pin", "block.4.attention=1", "--pin", "8=0", "--fix", "pp=2",
                  "--fix", "m=4")
        phase = self.read("pinned.json")["phases"][0]
        self.assertEqual((phase["partition"][1]["begin"], phase["num_micro_batches"]), (9, 4))
        self.plan("one.json", "auto", "--max-devices", 1, "--ignore-memory-limit")
        layout = self.read("one.json")["phases"][0]["layout"]
        self.assertEqual((layout["pipeline_parallel_size"], layout["data_parallel_size"],
                          self.read("one.json")["world_size"]), (1, 1, 2))
        text = self.plan("explained.json", "auto", "--explain").stdout
        self.assertIn("sets the pace", text)
        for wrong in ("pp=0", "stages=2"):
            stderr = self.plan("none.json", "auto", "--fix", wrong, code=2).stderr
            self.assertTrue(stderr.startswith("frostpipe: --fix: must be pp=P"), stderr)
        for options, says in [(["--pin", "block.4.mlp=0", "--pin", "3=1"], "must leave a layer for every stage"),
                              (["--pin", "attic=1"], "must name one of the model's layers"),
                              (["--pin", "3"], "must be LAYER=STAGE")]:
            self.assertIn(says, self.plan("none.json", "auto", *options, code=2).stderr)
        self.assertIn("no partition keeps the pinned layers",
                      self.plan("none.json", "auto", "--pin", "3=5", code=1).stderr)

    def test_fixed_parts_of_a_layout_are_kept_or_refused(self):
        self.edit("profile.json", lambda profile: profile["measurements"].extend(
            {"key": {**one["key"], "tensor_parallel_size": 2},
             "cost": {name: value // 2 for name, value in one["cost"].items()}}
             for one in list(profile["measurements"])))
        tensor_ranks = lambda: self.read("fixed.json")["phases"][0]["layout"]["tensor_parallel_size"]
        self.plan("fixed.json", "auto", "--ignore-memory-limit")
        self.assertEqual(tensor_ranks(), 2)  # free collectives
        self.plan("fixed.json", "auto", "--ignore-memory-limit", "--fix", "tp=1")
        self.assertEqual(tensor_ranks(), 1)
        self.assertIn("leaves partitions open", self.plan("none.json", "equal-split", "--pin", "3=0", code=1).stderr)
        self.assertIn("Megatron's rules", self.plan("none.json", "ptd-p", "--fix", "pp=2", code=1).stderr)
        self.assertIn("schedule: must be 1F1B for the method pipedream, or left open, is ZB-H1",
                      self.plan("none.json", "pipedream", "--schedule", "ZB-H1", code=1).stderr)
        answer = json.loads(self.plan("fixed.json", "pipetransformer", "--format", "json").stdout)
        self.assertEqual(answer["objective"], "run time")


class OneProcessTest(CliTest):
    def test_threads_per_rank_are_chosen_by_time(self):
        """If two threads halve the time, they replace two ranks and save their messages; if they do not, they are not
        used."""
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
        self.assertIn("--threads-per-rank: must be a number that profile.json has measured for the devices of "
                      "cluster.json: 1, 2", refused.stderr)

    def one_process_line(self, method, *options):
        return re.findall(r"^One process.*", self.plan("plan.json", method, *options).stdout, re.MULTILINE)

    def test_a_plan_of_one_process_says_what_is_left_of_it(self):
        self.edit("profile.json", lambda profile: measure_with_two_threads(profile, 0.5))
        self.assertEqual(self.one_process_line("pipetransformer"),
                         ["One process with 2 threads is fastest here: this run freezes, without a pipeline."])
        self.assertEqual(self.one_process_line("auto"),
                         ["One process with 2 threads is fastest here: this run has no pipeline."])
        speed = {"latency_ns": 1_000, "bandwidth_bytes_per_second": 5_000_000_000}
        self.edit("profile.json", lambda profile: profile.update(cache={"read": speed, "write": speed}))
        cached = "this run freezes and caches, without a pipeline."
        self.assertEqual(self.one_process_line("pipetransformer", "--epochs", 300, "--explain"),
                         [f"One process with 2 threads is fastest here: {cached}"])
        # If no other layout was considered, or the latest freezes were requested, the plan is not known to be the
        # fastest.
        self.assertEqual(self.one_process_line("pipetransformer", "--epochs", 300, "--threads-per-rank", 2),
                         [f"One process with 2 threads: {cached}"])
        self.assertEqual(self.one_process_line("pipetransformer", "--epochs", 300, "--deadline", "100h")[0][:27],
                         "One process with 2 threads:")
        self.assertEqual(self.one_process_line("data-parallel", "--threads-per-rank", 2),
                         ["One process with 2 threads: this run has no pipeline."])
        self.assertEqual(self.one_process_line("pipetransformer", "--threads-per-rank", 1), [], "two ranks")


if __name__ == "__main__":
    unittest.main()
