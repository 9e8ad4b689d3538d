import json
import shutil
import unittest

from support import CliTest


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

    def test_elastic_plan_gets_shorter_as_layers_freeze(self):
        self.plan("elastic.json", "pipetransformer")
        phases = self.read("elastic.json")["phases"]
        self.assertGreater(len(phases), 1)
        self.assertEqual(phases[0]["layout"]["pipeline_parallel_size"], 2)
        self.assertEqual(phases[-1]["layout"]["pipeline_parallel_size"], 1)
        self.assertEqual(phases[-1]["layout"]["data_parallel_size"], 2)

    def test_json_on_stdout_is_the_file(self):
        done = self.plan("static.json", "static", "--format", "json")
        self.assertEqual(done.stdout, (self.folder / "static.json").read_text())

    def test_steps_and_epochs(self):
        self.plan("a.json", "static", "--epochs", 1)
        self.assertEqual(self.read("a.json")["num_steps"], 10)
        self.plan("b.json", "static", "--steps", 7)
        self.assertEqual(self.read("b.json")["num_steps"], 7)

    def test_no_plan_fits_says_why_and_writes_nothing(self):
        self.write("old.json", "keep me")
        done = self.plan("old.json", "data-parallel", code=1)
        self.assertEqual(done.stdout, "")
        self.assertIn("320 MiB", done.stderr)
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


if __name__ == "__main__":
    unittest.main()
