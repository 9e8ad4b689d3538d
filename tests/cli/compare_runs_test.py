"""What compare and report say of runs that cannot be compared, and of files that are no runs of training."""

import json
import os
import unittest

from support import CliTest, synthetic_run

METHODS = {"static_pipeline": "static", "elastic": "pipetransformer"}


class CompareRunsTest(CliTest):
    def make_runs(self, *names):
        """Runs that followed plans of these names; returns arguments for compare."""
        for name in names:
            self.plan(f"{name}.json", METHODS[name])
            simulated = json.loads(self.run_tool("simulate", f"{name}.json", "--format", "json").stdout)
            self.write(f"runs/{name}/executed_plan.json", self.read(f"{name}.json"))
            self.write(f"runs/{name}/summary.json", synthetic_run(self.read(f"{name}.json"), simulated))
        return [file for name in names for file in (f"{name}.json", f"runs/{name}/summary.json")]

    def test_report_says_what_shows_other_files(self):
        self.make_runs("elastic")
        self.assert_refused("report", "elastic.json", "-o", "report.html", code=2,
                            says=["elastic.json: is a plan; report shows runs: give it the RUN/summary.json"])
        self.write("serving_run.json", {"format": "frostpipe.serving_run", "version": 1, "models": []})
        self.assert_refused("report", "serving_run.json", "-o", "report.html", code=2,
                            says=["serving_run.json: is the result of `frostpipe serving run -o RUN`, which has "
                                  "written RUN/report.html beside it"])

    def test_json_names_a_file_whose_name_is_no_utf8(self):
        self.make_runs("elastic")
        done = self.run_tool("report", "runs/elastic/summary.json", "-o", os.fsdecode(b"caf\xe9.html"),
                             "--format", "json")
        self.assertEqual(json.loads(done.stdout), {"report": "caf\N{REPLACEMENT CHARACTER}.html"})

    def test_compare_warns_of_runs_of_two_models(self):
        pairs = self.make_runs("static_pipeline", "elastic")
        said = self.run_tool("compare", *pairs, "-o", "summary.json").stdout
        self.assertIn("\nEqual data, seed, mini-batch and number of steps.\nelastic is ", said)
        self.assertEqual({run["model"] for run in self.read("summary.json")["runs"].values()}, {"synthetic"})
        self.write("other.json", self.read("profile.json"))
        self.edit("other.json", lambda profile: profile["model"].update(name="another"))
        self.run_tool("plan", "--profile", "other.json", "--cluster", "cluster.json", "--global-batch", 64,
                      "--method", "static", "-o", "static_pipeline.json")
        self.edit("runs/static_pipeline/summary.json", lambda run: run.update(seed=5))
        said = self.run_tool("compare", *pairs, "-o", "summary.json").stdout
        sentence = "The runs differ in model (another / synthetic) and seed (5 / 1): compare with care."
        self.assertIn(f"\n{sentence}\nelastic is ", said)
        self.run_tool("report", "summary.json", "-o", "report.html")
        self.assertEqual((self.folder / "report.html").read_text().count(sentence), 2, "by the headline and the table")


if __name__ == "__main__":
    unittest.main()
