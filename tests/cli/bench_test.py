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


if __name__ == "__main__":
    unittest.main()
