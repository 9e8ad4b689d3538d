import json
import shutil
import unittest

from support import CliTest, measure_with_two_threads, synthetic_run


class BenchTest(CliTest):
    def test_without_a_suite_it_lists_suites_and_configurations(self):
        done = self.run_tool("bench")
        for word in ("pipetransformer:", "rehearsal:", "data_parallel", "static_gpipe", "static_1f1b", "freeze_only",
                     "published", "elastic", "elastic_fast", "without_replicas", "one_process ",
                     "one_process_elastic "):
            self.assertIn(word, done.stdout)

    def test_wrong_use_says_what_is_missing(self):
        for arguments, says in [
            (["bench", "--epochs", 3], "--epochs: must be left out without SUITE"),
            (["bench", "dance"], "dance"),
            (["bench", "rehearsal"], "-o FOLDER"),
            (["bench", "pipetransformer", "-o", "out"], "--model FOLDER"),
            (["bench", "pipetransformer", "-o", "out", "--model", "m"], "--sections FILE"),
            (["bench", "rehearsal", "-o", "out", "--budget", "soon"],
             "must be a time such as 90s, 12min or 1.5h, is soon"),
            (["bench", "rehearsal", "-o", "out", "--only", "elastic,magic"],
             "--only: must name some of data_parallel, static_gpipe, "),
        ]:
            with self.subTest(arguments):
                self.assert_refused(*arguments, code=2, says=[says, "--help'."])

    def test_options_without_effect_on_the_suite_are_refused(self):
        for arguments, says in [
            (["megatron", "--epochs", 3], "--epochs: must be left out for megatron"),
            (["planners", "-o", "out"], "--output: must be left out for planners"),
            (["mtrain", "--full"], "--full: must be left out for mtrain"),
            (["megatron", "--data", "."], "--data: must be left out for megatron"),
            (["rehearsal", "-o", "out", "--sst2", "."], "--sst2: must be left out for rehearsal"),
            (["pipetransformer", "-o", "out", "--data", "."], "--data: must be left out for pipetransformer"),
        ]:
            with self.subTest(arguments):
                self.assert_refused("bench", *arguments, code=2, says=says)

    def test_data_that_cannot_be_read_is_found_before_any_run(self):
        self.assert_refused("bench", "pipetransformer", "-o", "out", "--model", "m", "--sections", "nowhere.tsv",
                            says="nowhere.tsv: cannot be read")


class BenchTableTest(CliTest):
    """A table of existing runs: nothing is trained."""

    PLANS = {"data_parallel": ("data-parallel", "--ignore-memory-limit"),
             "one_process": ("data-parallel", "--threads-per-rank", 2),
             "elastic": ("pipetransformer", "--threads-per-rank", 1),
             "one_process_elastic": ("pipetransformer", "--threads-per-rank", 2)}

    def bench(self, *names, format="text"):
        return self.run_tool("bench", "pipetransformer", "--model", "m", "--sections", "sections.tsv", "-o", "out",
                             "--only", ",".join(names), "--format", format).stdout

    def setUp(self):
        super().setUp()
        self.edit("profile.json", lambda profile: measure_with_two_threads(profile, 0.5))
        self.write("sections.tsv", "text\tlabel\n")
        for name, options in self.PLANS.items():
            self.plan("plan.json", *options)
            simulated = json.loads(self.run_tool("simulate", "plan.json", "--format", "json").stdout)
            self.write(f"out/sections/{name}/seed-1/summary.json",
                       synthetic_run(self.read("plan.json"), simulated, name=name))

    def test_every_row_is_compared_with_the_best_that_freezes_nothing(self):
        rows = {row["configuration"]: row for row in json.loads(self.bench(*self.PLANS, format="json"))["rows"]}
        speed = {name: row["samples_per_second"] for name, row in rows.items()}
        # Each takes half the time per sample, and there are no gradients to reduce.
        self.assertGreater(speed["one_process"], speed["data_parallel"])
        for name, row in rows.items():
            self.assertAlmostEqual(row["speed_to_best_unfrozen"]["geometric_mean"], speed[name] / speed["one_process"])
            self.assertAlmostEqual(row["speed_to_data_parallel"]["geometric_mean"],
                                   speed[name] / speed["data_parallel"])
            self.assertEqual(row["freezes"], name.endswith("elastic"))
            self.assertEqual((row["world_size"], row["threads_per_rank"]),
                             (1, 2) if name.startswith("one_process") else (2, 1))

    def test_one_process_is_planned_with_all_cores_and_frozen_as_elastic_is(self):
        """The profile exists; training fails, since there is no model."""
        shutil.rmtree(self.folder / "out")
        for name in ("profile.json", "cluster.json"):
            self.write(f"out/sections/{name}", self.read(name))
        done = self.run_tool("bench", "pipetransformer", "--model", "m", "--sections", "sections.tsv", "-o", "out",
                             "--only", "one_process,one_process_elastic", code=1)
        self.assertEqual(done.stdout.count("failed: sections/one_process"), 2)
        plain, elastic = (self.read(f"out/sections/{name}/plan.json")
                          for name in ("one_process", "one_process_elastic"))
        for plan in (plain, elastic):
            self.assertEqual((plan["world_size"], plan["threads_per_rank"]), (1, 2))
        self.assertEqual([(len(plan["phases"]) > 1, plan["memory_limited"]) for plan in (plain, elastic)],
                         [(False, False), (True, True)])
        self.assertGreater(elastic["cache"]["memory_bytes"], 0)

    def test_the_table_says_what_is_one_process(self):
        text = self.bench(*self.PLANS)
        self.assertIn("x best unfrozen", text)
        self.assertEqual(sorted(line.split()[1] for line in text.splitlines() if "1 rank with 2 threads" in line),
                         ["one_process", "one_process_elastic"])
        note = "on 1 rank: freezing, and the cache where it is on, without a pipeline"
        self.assertIn(note, text)
        self.assertNotIn(note, self.bench("data_parallel", "one_process", "elastic"))


class PublishedBenchTest(CliTest):
    """The comparison of the simulator with published measurements; tests/papers checks the figures."""

    def test_megatrons_table_in_every_format(self):
        table = json.loads(self.run_tool("bench", "megatron", "--format", "json").stdout)
        self.assertEqual(len(table["rows"]), 24)
        self.assertIn("rank order", self.run_tool("bench", "megatron").stdout)
        self.assertIn("<td>1008.0B</td>", self.run_tool("bench", "megatron", "--format", "html").stdout)
        self.assertEqual(len(self.run_tool("bench", "megatron", "--format", "csv").stdout.splitlines()), 25)

    def test_files_that_are_not_there(self):
        self.assert_refused("bench", "sailor", code=2, says="--data FOLDER")
        self.assert_refused("bench", "sailor", "--data", "nowhere", code=1, says="llm_info.json")
        self.assert_refused("bench", "vtrain", "--data", "nowhere", code=1, says="ground_truth_multi.csv")
        for suite in ("vocabulary-pipeline", "bloom"):
            self.assert_refused("bench", suite, code=2, says="--data FOLDER")
            self.assert_refused("bench", suite, "--data", "nowhere", code=1, says="runs.csv")

    def test_vtrain_names_the_line_that_is_wrong(self):
        header = ("Parameters (billion),# GPUs,global batch,micro batch,hidden size,attention heads,# layers,"
                  "sequence length,tensor parallelism,data parallelism,pipeline parallelism,iteration time (ms)")
        (self.folder / "ground_truth_multi.csv").write_text(header + "\n3.6,64,512,8,3072,32,30,2048,1,64,1\n")
        self.assert_refused("bench", "vtrain", "--data", ".", code=1, says=["csv:2", "12 comma-separated fields"])
        (self.folder / "ground_truth_multi.csv").write_text(header + "\n3.6,64,512,8,3072,32,30,2048,1,64,1,fast\n")
        self.assert_refused("bench", "vtrain", "--data", ".", code=1,
                            says=["csv:2: iteration time (ms): must be a number", '"fast"'])


if __name__ == "__main__":
    unittest.main()
