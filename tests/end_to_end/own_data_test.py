"""A user's own tables and folders."""

import csv
import json
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import tiny_model
from end_to_end import FROSTPIPE, HANG_SECONDS, EndToEndTest


class OwnDataTest(EndToEndTest):
    def test_quotes_are_literal_and_labels_are_any_strings(self):
        labels = ['"quoted"', "it's \"half", "naïve ☃; a, b\\n", " 7 "]
        rows = [(f'"{text}', label) if i % 3 == 0 else (text, label)
                for i, (text, label) in enumerate(tiny_model.samples(100, labels=labels))]
        self.write("own.tsv", "text\tlabel\r\n" + "".join(f"{text}\t{label}\r\n" for text, label in rows))
        run = self.train(self.of_length("static.json", 30), "run", data="own.tsv")
        self.assertEqual(sorted(run["label_names"]), sorted(labels))
        self.assertEqual(run["num_train_samples"] + run["num_test_samples"], 100)  # no quote has joined two lines
        self.assertGreater(run["test_accuracy"], 0.4)
        config = self.read("run/model/config.json")
        self.assertEqual([config["id2label"][str(i)] for i in range(len(labels))], run["label_names"])
        found = json.loads(self.run_tool("evaluate", "--model", "run/model", "--data", "own.tsv",
                                         "--format", "json").stdout)
        self.assertEqual({entry["label"]: entry["count"] for entry in found["labels"]}, {label: 25 for label in labels})

    def test_csv_and_predictions(self):
        """The same table as CSV, written by Python's csv module, trains the same model. The predictions of evaluate for
        each text agree with its figures and with those without labels."""
        rows = [(text + ', "so"' if i % 3 == 0 else text, label)
                for i, (text, label) in enumerate(tiny_model.samples(100))]
        self.write("own.tsv", "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
        with open(self.folder / "own.csv", "w", newline="") as file:
            csv.writer(file).writerows([("label", "text"), *((label, text) for text, label in rows)])
        plan = self.of_length("static.json", 15)
        of_tsv, of_csv = (self.train(plan, f"run-{kind}", data=f"own.{kind}") for kind in ("tsv", "csv"))
        self.assertEqual(self.losses(of_tsv), self.losses(of_csv))

        def predictions(data):
            answer = self.run_tool("evaluate", "--model", "run-csv/model", "--data", data, "--predictions", "said.csv",
                                   "--format", "json")
            with open(self.folder / "said.csv", newline="") as file:
                return json.loads(answer.stdout), list(csv.DictReader(file))

        found, said = predictions("own.csv")
        self.assertEqual([(row["text"], row["label"]) for row in said], rows)
        self.assertAlmostEqual(found["value"], sum(row["label"] == row["predicted"] for row in said) / 100)
        for row in said:
            self.assertTrue(1 / len(tiny_model.LABELS) <= float(row["probability"]) <= 1, row)
        self.write("column.tsv", "id\ttext\n" + "".join(f"{i}\t{text}\n" for i, (text, _) in enumerate(rows)))
        self.write("lines.txt", "".join(text + "\n" for text, _ in rows))
        for data in ("column.tsv", "lines.txt"):
            with self.subTest(data):
                found, again = predictions(data)
                self.assertNotIn("metric", found)
                self.assertEqual(sum(entry["predicted"] for entry in found["labels"]), 100)
                self.assertEqual(again,
                                 [{key: row[key] for key in ("text", "predicted", "probability")} for row in said])
                self.assertIn("100 samples without labels",
                              self.run_tool("evaluate", "--model", "run-csv/model", "--data", data).stdout)

    def test_samples_unlike_those_of_the_plan_are_said(self):
        plan = self.of_length("static.json", 3, forget=("epochs",))
        said = r"short\.tsv: samples have [3-6] tokens on average, and those of the plan \(data\.tsv\) 8: it may"
        self.assertNotIn("on average", self.run_tool(*self.train_arguments(plan, "alike")).stderr)
        self.write("short.tsv", "text\tlabel\n" + "".join(f"the\t{label}\n" for _, label in tiny_model.samples(100)))
        self.assertRegex(self.run_tool(*self.train_arguments(plan, "run", data="short.tsv")).stderr, said)

    def test_data_that_are_missing_are_named(self):
        self.assert_refused("evaluate", "--model", "model", "--data", "nosuch.tsv",
                            says=["nosuch.tsv: cannot be read: No such file or directory"])

    def test_likely_mistakes_are_noted_once(self):
        rows = [*tiny_model.samples(60, labels=["x", "y"]), ("the one", "rare"), ("", "x"), ("some", "y "),
                ("more", "y ")]
        self.write("own.tsv", "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
        stderr = self.run_tool(*self.train_arguments(self.of_length("static.json", 3), "run", data="own.tsv")).stderr
        for note in ("own.tsv:63: the text is empty",
                     'differ by blanks alone, and count as different ones: "y" (30 times), "y " (2 times)',
                     '1 of 4 labels has a single sample, which is trained on and never tested on: "rare"'):
            self.assertEqual(stderr.count(note), 1, stderr)

    def test_any_number_of_labels(self):
        """The plan was made from a profile with four labels, but the user's text determines the labels."""
        for labels in (["no", "yes"], ["a", "b", "c", "d", "e", "f"]):
            with self.subTest(labels):
                self.write("own.tsv", "text\tlabel\n"
                           + "".join(f"{text}\t{label}\n" for text, label in tiny_model.samples(100, labels=labels)))
                run = self.train(self.of_length("static.json", 5), f"run-{len(labels)}", data="own.tsv")
                self.assertEqual(run["label_names"], labels)

    def test_the_profile_needs_no_data(self):
        self.run_tool("profile", "--model", "model", "--micro-batch-sizes", "4", "--tokens", "8,16",
                      "--cluster", "new-cluster.json", "-o", "new.json")
        self.run_tool("plan", "--profile", "new.json", "--cluster", "new-cluster.json", "--global-batch", 8,
                      "--method", "static", "--steps", 20,
                      "--tokens", 12, "-o", "plan.json")
        self.assertEqual(self.train("plan.json", "run")["num_steps"], 20)

    def test_more_columns_in_any_order(self):
        rows = tiny_model.samples(60)
        self.write("own.tsv",
                   "id\tlabel\ttext\n" + "".join(f"{i}\t{label}\t{text}\n" for i, (text, label) in enumerate(rows)))
        run = self.train(self.of_length("static.json", 3), "run", data="own.tsv")
        self.assertEqual(run["label_names"], tiny_model.LABELS)

    def test_a_run_that_has_ended_is_overwritten_on_demand_alone(self):
        self.train("static.json", "run", "--epochs", 1)
        before = self.contents("run")
        for options in ((), ("--resume", "no"), ("--resume", "run/checkpoints")):
            with self.subTest(options):
                self.assert_refused(*self.train_arguments("static.json", "run", "--epochs", 2, *options),
                                    says=["/run: holds a run that has ended", "-o", "--overwrite"])
                after = self.contents("run")
                after[".lock"] = before[".lock"]
                self.assertEqual(after, before)
        self.train("static.json", "run", "--epochs", 2, "--overwrite")
        self.assertEqual(self.read("run/summary.json")["epochs"], 2)
        self.assertEqual(set(self.contents("run")), set(before))


class OutputFolderTest(EndToEndTest):
    def test_links_are_replaced_and_what_they_lead_to_is_untouched(self):
        """A link with a file's name does not lead out of the folder; links to folders, often to another disk, are
        followed."""
        self.write("secret", "somebody's")
        names = ["executed_plan.json", "trace.json", "summary.json", "scalars.jsonl", "steps.jsonl",
                 "model/config.json", "model/vocab.txt", "model/model.safetensors",
                 "model/model.safetensors.part"]
        (self.folder / "disk/model").mkdir(parents=True)
        (self.folder / "disk/checkpoints/my.parts").mkdir(parents=True)
        (self.folder / "run").mkdir()
        for folder in ("model", "checkpoints"):
            (self.folder / "run" / folder).symlink_to(self.folder / "disk" / folder)
        for name in names:
            (self.folder / "run" / name).symlink_to(self.folder / "secret")
        leftover = self.write("run/model/frostpipe-0123456789abcdef.tmp", "of a run that was killed")
        self.train("static.json", "run", "--epochs", 1, "--resume", "no", "--overwrite", "--checkpoint-every", 5)
        self.assertEqual((self.folder / "secret").read_text(), "somebody's")
        for name in names[:-1]:
            self.assertFalse((self.folder / "run" / name).is_symlink(), name)
        for folder in ("model", "checkpoints"):
            self.assertTrue((self.folder / "run" / folder).is_symlink(), folder)
        self.assertTrue((self.folder / "disk/checkpoints/my.parts").is_dir())
        self.assertTrue(list((self.folder / "disk/checkpoints").glob("step-????????")))
        self.assertFalse(leftover.exists())

    def test_with_closed_standard_streams_training_runs_to_its_end(self):
        arguments = " ".join(f"'{argument}'"
                             for argument in (FROSTPIPE, *self.train_arguments("static.json", "run", "--epochs", 1)))
        done = subprocess.run(["bash", "-c", f"{arguments} <&- >&- 2>&-"], cwd=self.folder, env=self.environment(),
                              timeout=HANG_SECONDS)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.read("run/summary.json")["num_steps"], len(self.read("run/summary.json")["steps"]))


if __name__ == "__main__":
    unittest.main()
