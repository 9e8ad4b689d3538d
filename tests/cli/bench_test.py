import json
import unittest

from support import CliTest


class BenchTest(CliTest):
    def test_list_names_suites_and_configurations(self):
        done = self.run_tool("bench", "--list")
        for word in ("pipetransformer:", "rehearsal:", "data_parallel", "static_gpipe", "static_1f1b", "freeze_only", "published", "elastic", "elastic_fast", "without_replicas"):
            self.assertIn(word, done.stdout)

    def test_wrong_use_says_what_is_missing(self):
        for arguments, says in [
            (["bench"], "name a suite"),
            (["bench", "dance"], "dance"),
            (["bench", "rehearsal"], "-o FOLDER"),
            (["bench", "pipetransformer", "-o", "out"], "--model FOLDER"),
            (["bench", "pipetransformer", "-o", "out", "--model", "m"], "--sections FILE"),
            (["bench", "rehearsal", "-o", "out", "--budget", "soon"], "must be a time like 1h, 90m or 600s, is soon"),
            (["bench", "rehearsal", "-o", "out", "--only", "magic"], "names no configuration"),
        ]:
            with self.subTest(arguments):
                self.assert_refused(*arguments, code=2, says=[says, "--help'."])

    def test_data_that_cannot_be_read_is_found_before_any_run(self):
        self.assert_refused("bench", "pipetransformer", "-o", "out", "--model", "m", "--sections", "nowhere.tsv", says="nowhere.tsv: cannot be read")


class PublishedBenchTest(CliTest):
    """The simulator against what others measured."""

    def bench(self, *arguments):
        return json.loads(self.run_tool("bench", *arguments, "--format", "json").stdout)

    def test_token_slices(self):
        """Equal slices are what the stage times were taken from; the chosen ones follow from them. Of the 44B model only four points are known, and
        those for 8 and 16 slices are out of line: the prediction for its chosen slices stays 9 % high."""
        table = self.bench("terapipe")
        groups = {group["group"]: group for group in table["groups"]}
        self.assertLess(groups["equal slices"]["largest_error"], 0.01)
        chosen = {row["run"]: row["predicted"] / row["measured"] - 1 for row in table["rows"] if row["group"] == "chosen slices"}
        self.assertLess(abs(chosen["GPT-3 175B (9), chosen"]), 0.05)
        self.assertLess(abs(chosen["GPT-3 44B (8), chosen"]), 0.10)

    def test_megatrons_table_in_every_format(self):
        table = self.bench("megatron")
        self.assertEqual(len(table["rows"]), 10)
        self.assertIn("rank order", self.run_tool("bench", "megatron").stdout)
        self.assertIn("<td>1008.0B</td>", self.run_tool("bench", "megatron", "--format", "html").stdout)
        self.assertEqual(len(self.run_tool("bench", "megatron", "--format", "csv").stdout.splitlines()), 11)

    def test_files_that_are_not_there(self):
        self.assert_refused("bench", "sailor", code=2, says="--data FOLDER")
        self.assert_refused("bench", "sailor", "--data", "nowhere", code=1, says="llm_info.json")
        self.assert_refused("bench", "vtrain", "--data", "nowhere", code=1, says="ground_truth_multi.csv")

    def test_vtrain_names_the_line_that_is_wrong(self):
        header = ("Parameters (billion),# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,"
                  "data parallelism,pipeline parallelism,iteration time (ms)")
        (self.folder / "ground_truth_multi.csv").write_text(header + "\n3.6,64,512,8,3072,32,30,2048,1,64,1\n")
        self.assert_refused("bench", "vtrain", "--data", ".", code=1, says=["line 2", "12 columns"])
        (self.folder / "ground_truth_multi.csv").write_text(header + "\n3.6,64,512,8,3072,32,30,2048,1,64,1,fast\n")
        self.assert_refused("bench", "vtrain", "--data", ".", code=1, says=["line 2", "numbers"])


if __name__ == "__main__":
    unittest.main()
