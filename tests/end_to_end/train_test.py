"""From a model folder to a report, and what a run promises about its losses."""

import collections
import csv
import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import tiny_model
from end_to_end import FROSTPIPE, HANG_SECONDS, EndToEndTest

NUM_BLOCKS = tiny_model.NUM_BLOCKS
NUM_LAYERS = 2 * NUM_BLOCKS + 2
CHANCE = 1 / len(tiny_model.LABELS)

RUN_KEYS = {"samples_per_second", "wall_seconds", "test_accuracy", "test_accuracy_standard_error", "phases"}
PHASE_KEYS = {"from_step", "num_steps", "frozen_layers", "stages", "replicas", "num_micro_batches", "predicted_iteration_ns",
              "measured_iteration_ns", "transformation_ns"}


class RoadTest(EndToEndTest):
    """profile -> plan -> simulate -> train -> evaluate -> compare -> report"""

    def test_the_whole_road(self):
        runs = {"data_parallel": "data-parallel", "static_pipeline": "static", "elastic": "pipetransformer"}
        for name, plan in runs.items():
            simulated = json.loads(self.run_tool("simulate", f"{plan}.json", "--format", "json").stdout)
            self.assertGreater(simulated["predicted_run_ns"], 0)
            run = self.train(f"{plan}.json", f"runs/{name}")
            self.assertEqual(run["name"], name)
            self.check_run(run)
            self.check_scalars(f"runs/{name}", run)
            self.check_saved_model(f"runs/{name}", run)
            self.check_evaluation(f"runs/{name}", run)
            self.check_trace(f"runs/{name}/trace.json", num_ranks=2)
        elastic = self.read("runs/elastic/summary.json")
        self.assertEqual((elastic["phases"][0]["stages"], elastic["phases"][0]["replicas"]), (2, 1))
        self.assertGreater(elastic["phases"][-1]["frozen_layers"], 0)

        pairs = [path for name, plan in runs.items() for path in (f"{plan}.json", f"runs/{name}/summary.json")]
        text = self.run_tool("compare", *pairs, "-o", "summary.json").stdout
        for name in runs:
            self.assertIn(name, text)
        self.check_comparison(self.read("summary.json"), set(runs))
        self.run_tool("report", "summary.json", "-o", "report.html", "--trace", "trace.json", "--cluster", "cluster.json")
        self.check_report((self.folder / "report.html").read_text())
        self.check_trace("trace.json", num_ranks=2)

    def check_run(self, run):
        self.assertLessEqual(RUN_KEYS, set(run))
        for phase in run["phases"]:
            self.assertLessEqual(PHASE_KEYS, set(phase))
            self.assertGreater(phase["measured_iteration_ns"], 0)
        self.assertEqual(run["phases"][0]["from_step"], 0)
        self.assertEqual(sum(phase["num_steps"] for phase in run["phases"]), run["num_steps"])
        self.assertEqual((run["num_steps"], run["epochs"], run["world_size"]), (60, 6, 2))
        self.assertEqual([step["step"] for step in run["steps"]], list(range(60)))
        self.assertEqual(sum(step["samples"] for step in run["steps"]), 6 * run["num_train_samples"])
        self.assertEqual((run["num_train_samples"], run["num_test_samples"]), (160, 40))
        self.assertAlmostEqual(run["samples_per_second"] * run["wall_seconds"], 6 * 160, delta=1)
        self.assertGreater(run["test_accuracy"], 2 * CHANCE)
        self.assertLess(run["steps"][-1]["loss"], run["steps"][0]["loss"] / 2)

    def check_saved_model(self, folder, run):
        config = self.read(f"{folder}/model/config.json")
        self.assertEqual(config["id2label"], {str(i): label for i, label in enumerate(tiny_model.LABELS)})
        self.assertEqual(config["label2id"], {label: i for i, label in enumerate(tiny_model.LABELS)})
        self.assertEqual(run["label_names"], tiny_model.LABELS)
        saved = tiny_model.read_safetensors(self.folder / folder / "model/model.safetensors")
        hidden, num_labels = tiny_model.HIDDEN, len(tiny_model.LABELS)
        expected = {f"bert.{name}": shape for name, shape in tiny_model.shapes().items()} | {
            "bert.pooler.dense.weight": [hidden, hidden], "bert.pooler.dense.bias": [hidden], "classifier.weight": [num_labels, hidden], "classifier.bias": [num_labels]}
        self.assertEqual({name: shape for name, (shape, _) in saved.items()}, expected)
        original = tiny_model.random_tensors()
        changed = [name for name in original if saved[f"bert.{name}"][1] != original[name][1]]
        self.assertIn("encoder.layer.3.output.dense.weight", changed)
        for name, (_, values) in saved.items():
            self.assertTrue(all(value == value and abs(value) < 100 for value in values), name)

    def check_scalars(self, folder, run):
        """Written as the run went, by whichever rank knew the figures."""
        lines = [json.loads(line) for line in (self.folder / folder / "scalars.jsonl").read_text().splitlines()]
        steps = [line for line in lines if "loss" in line]
        self.assertEqual([line["step"] for line in steps], list(range(1, 61)))
        for line, step in zip(steps, run["steps"]):
            self.assertAlmostEqual(line["loss"], step["loss"], delta=1e-12)
        self.assertEqual([(line["step"], line["test/accuracy"]) for line in lines if "test/accuracy" in line], [(one["step"], one["accuracy"]) for one in run["evaluations"]])
        self.assertGreater((self.folder / folder / "tensorboard/events.out.tfevents.frostpipe").stat().st_size, 60 * 100)

    def check_evaluation(self, folder, run):
        """The saved model, alone in a process, predicts the run's test items as the run did."""
        rows = (self.folder / "data.tsv").read_text().splitlines()[1:]
        items = [rows[index] for index in run["test_items"]]
        labels = [tiny_model.LABELS.index(item.split("\t")[1]) for item in items]
        self.assertEqual(labels, run["test_labels"])
        self.write("test.tsv", "\n".join(["text\tlabel", *items]) + "\n")
        found = json.loads(self.run_tool("evaluate", "--model", f"{folder}/model", "--data", "test.tsv", "--format", "json").stdout)
        self.assertEqual(found["num_samples"], run["num_test_samples"])
        # Other batches, other roundings: they may turn one item that stands on the edge.
        self.assertAlmostEqual(found["value"], run["test_accuracy"], delta=1.5 / len(items))
        self.assertEqual({entry["label"]: entry["count"] for entry in found["labels"]},
                         dict(collections.Counter(item.split("\t")[1] for item in items)))

    def check_trace(self, name, num_ranks):
        """What Perfetto needs: complete events with a place, a begin and a length, that do not overlap on one track."""
        events = self.read(name)["traceEvents"]
        complete = [event for event in events if event["ph"] == "X"]
        self.assertTrue(complete)
        for event in complete:
            self.assertGreaterEqual(event["ts"], 0, event)
            self.assertGreaterEqual(event["dur"], 0, event)
            self.assertTrue({"name", "pid", "tid"} <= set(event), event)
        self.assertTrue(any(re.search(r"\d+F\d+", event["name"]) for event in complete))
        self.assertGreaterEqual(len({(event["pid"], event["tid"]) for event in complete}), num_ranks)

    def check_comparison(self, summary, names):
        self.assertEqual(set(summary["runs"]), names)
        for run in summary["runs"].values():
            self.assertLessEqual(RUN_KEYS, set(run))
            for phase in run["phases"]:
                self.assertLessEqual(PHASE_KEYS, set(phase))
                self.assertGreater(phase["predicted_iteration_ns"], 0)
                self.assertGreater(phase["measured_iteration_ns"], 0)
            self.assertEqual(run["phases"][0]["transformation_ns"], 0)
        self.assertEqual({entry["baseline"] for entry in summary["speedups"]}, names - {"elastic"})
        for entry in summary["accuracies"]:
            self.assertLessEqual(entry["low"], entry["difference"])
            self.assertLessEqual(entry["difference"], entry["high"])

    def check_report(self, html):
        self.assertTrue(html.lstrip().lower().startswith("<!doctype html>"))
        self.assertIn("</html>", html)
        # A name of a language ("xmlns") is no link.
        links = re.findall(r"https?://[^\s\"'<>)]+", re.sub(r"xmlns(:\w+)?=[\"'][^\"']*[\"']", "", html))
        self.assertEqual(links, [])
        self.assertEqual(re.findall(r"(?:src|href)\s*=\s*[\"'](?!#|data:)[^\"']*", html), [])
        self.assertNotRegex(html, r"<link|@import|url\((?![\"']?(#|data:))")
        for word in ("data_parallel", "static_pipeline", "elastic"):
            self.assertRegex(html, word.replace("_", "[_ ]"))


class FreezeRuleTest(EndToEndTest):
    def frozen(self, run):
        """What the rule decided; a decision may be followed by several phases, which use the cache in different ways."""
        layers = [phase["frozen_layers"] for phase in run["phases"]]
        return [now for before, now in zip([None, *layers], layers) if now != before]

    def test_every_rule_of_a_pipetransformer_plan(self):
        for rule in ("cap", "paper", "fixed:1,2"):
            with self.subTest(rule):
                run = self.train("pipetransformer.json", rule.replace(":", "-"), "--freeze", rule)
                self.assertEqual(run["freeze"], rule.split(":")[0])
                self.assertEqual(run["num_steps"], 60)
                frozen = self.frozen(run)
                self.assertEqual(frozen, sorted(frozen))
                self.assertEqual(frozen[0], 0)
                if rule == "cap":  # ceil(4 (1 - 0.5^k))
                    self.assertEqual(frozen, [0, 2, 3, 4])
                    self.assertLessEqual({0, 21, 29, 37}, {phase["from_step"] for phase in run["phases"]})
                if rule == "fixed:1,2":
                    self.assertEqual(frozen, [0, 1, 2])
                if rule == "paper":
                    self.assertTrue(all(now <= cap for now, cap in zip(frozen, [0, 2, 3, 4])), frozen)
                self.assertGreater(run["test_accuracy"], 1.5 * CHANCE)
                executed = self.read(f"{rule.replace(':', '-')}/executed_plan.json")
                self.assertEqual([phase["from_step"] for phase in executed["phases"]], [phase["from_step"] for phase in run["phases"]])

    def test_the_published_rule_packs_and_replicates_whenever_it_fits(self):
        run = self.train("pipetransformer-published.json", "run")
        self.assertEqual((run["phases"][0]["stages"], run["phases"][0]["replicas"]), (2, 1))
        self.assertEqual((run["phases"][-1]["stages"], run["phases"][-1]["replicas"]), (1, 2))
        self.assertGreater(run["test_accuracy"], 1.5 * CHANCE)

    def test_a_static_plan_freezes_in_its_layout(self):
        run = self.train("static.json", "run", "--freeze", "fixed:1,2")
        self.assertEqual(self.frozen(run), [0, 1, 2])
        self.assertEqual({(phase["stages"], phase["replicas"]) for phase in run["phases"]}, {(2, 1)})

    def test_frozen_layers_keep_their_weights(self):
        self.train("pipetransformer.json", "run", "--freeze", "fixed:2", "--freeze-warm-up", 0)
        saved = tiny_model.read_safetensors(self.folder / "run/model/model.safetensors")
        for name, (_, values) in tiny_model.random_tensors().items():
            frozen = name.startswith(("embeddings.", "encoder.layer.0.", "encoder.layer.1."))
            same = saved[f"bert.{name}"][1] == values
            self.assertEqual(same, frozen or name.endswith("key.bias") and same, name)


class OrderOfDataTest(EndToEndTest):
    def test_the_same_seed_gives_the_same_run(self):
        """With the plan's own phases: re-planning looks at the clock."""
        first = self.train("pipetransformer.json", "first", "--seed", 7, "--freeze", "plan")
        second = self.train("pipetransformer.json", "second", "--seed", 7, "--freeze", "plan")
        self.assertEqual(self.losses(first), self.losses(second))
        self.assertEqual(first["test_predictions"], second["test_predictions"])
        self.assertEqual(self.contents("first/model"), self.contents("second/model"))

    def test_another_seed_gives_another_run(self):
        first = self.train("static.json", "first", "--seed", 7, "--epochs", 1)
        second = self.train("static.json", "second", "--seed", 8, "--epochs", 1)
        self.assertNotEqual(self.losses(first), self.losses(second))
        self.assertNotEqual(first["test_items"], second["test_items"])

    def test_the_layout_does_not_change_which_samples_form_a_mini_batch(self):
        pipeline = self.train("static.json", "pipeline", "--epochs", 2)
        replicas = self.train("data-parallel.json", "replicas", "--epochs", 2)
        self.assertEqual([(s["samples"], s["tokens"]) for s in pipeline["steps"]], [(s["samples"], s["tokens"]) for s in replicas["steps"]])
        self.assert_losses_equal(pipeline, replicas, 10, 1e-4)

    def test_one_process_with_two_threads_trains_as_two_ranks_do(self):
        self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 16, "--epochs", 2,
                      "--method", "data-parallel", "--threads-per-rank", 2, "-o", "one_process.json")
        plan = self.read("one_process.json")
        self.assertEqual((plan["world_size"], plan["threads_per_rank"]), (1, 2))
        one = self.train("one_process.json", "one")
        self.assertEqual((one["world_size"], one["threads_per_rank"]), (1, 2))
        replicas = self.train("data-parallel.json", "two", "--epochs", 2)
        self.assert_losses_equal(one, replicas, 10, 1e-4)

    def test_an_elastic_run_in_one_process_says_that_it_has_no_pipeline(self):
        self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 16, "--epochs", 1,
                      "--method", "pipetransformer", "--threads-per-rank", 2, "-o", "elastic.json")
        done = self.run_tool(*self.train_arguments("elastic.json", "one"))
        cached = " and cached" if any(phase["cache"] for phase in self.read("one/summary.json")["phases"]) else ""
        self.assertIn(f"\nOne process with 2 threads: the elastic run froze{cached}, without a pipeline.\n", done.stdout)

    def test_grouping_by_length_changes_mini_batches_and_not_what_they_hold_together(self):
        plain = self.train("static.json", "plain", "--epochs", 1)
        grouped = self.train("static.json", "grouped", "--epochs", 1, "--group-by-length", 1000)
        self.assertNotEqual(self.losses(plain), self.losses(grouped))
        self.assertEqual(sum(step["samples"] for step in plain["steps"]), sum(step["samples"] for step in grouped["steps"]))
        spread = [max(lengths) - min(lengths) for lengths in ([step["tokens"] for step in run["steps"]] for run in (plain, grouped))]
        self.assertGreater(spread[1], spread[0], "mini-batches are short or long, not mixed")


class FourRanksTest(EndToEndTest):
    """Plans by hand: four ranks, more layouts than the planner chooses, equal to one process."""

    def plan_by_hand(self, name, world_size, phases, optimizer="adamw"):
        """phases: (from_step, first_trainable_layer, partition, replicas, micro-batches, placement)"""

        def change(plan):
            template = plan["phases"][0]
            plan.update(world_size=world_size, global_batch_size=24, num_steps=42, optimizer=optimizer, memory_limited=False, phases=[])
            for from_step, first_trainable, cuts, replicas, num_micro_batches, placement in phases:
                edges = [0, *cuts, NUM_LAYERS]
                phase = json.loads(json.dumps(template))
                phase.update(from_step=from_step, first_trainable_layer=first_trainable, num_micro_batches=num_micro_batches,
                             partition=[{"begin": a, "end": b} for a, b in zip(edges, edges[1:])],
                             layout={"pipeline_parallel_size": len(cuts) + 1, "data_parallel_size": replicas, "tensor_parallel_size": 1,
                                     "placement": placement})
                phase["predicted"]["peak_memory_bytes"] = []
                plan["phases"].append(phase)

        self.write(name, (self.folder / "static.json").read_text())
        self.edit(name, change)

    def train_by_hand(self, plan, output):
        # 160 training samples in mini-batches of 24: 7 steps an epoch, the last of 16.
        return self.train(plan, output, "--epochs", 6, "--name", output)

    def test_four_two_one(self):
        self.plan_by_hand("one.json", 1, [(0, 0, [], 1, 1, []), (15, 5, [], 1, 1, []), (30, 7, [], 1, 1, [])])
        self.plan_by_hand("four.json", 4, [(0, 0, [3, 5, 8], 1, 5, []), (15, 5, [7], 2, 3, []), (30, 7, [], 4, 1, [])])
        one, four = self.train_by_hand("one.json", "one"), self.train_by_hand("four.json", "four")
        self.assertEqual([(p["stages"], p["replicas"], p["frozen_layers"]) for p in four["phases"]], [(4, 1, 0), (2, 2, 2), (1, 4, 3)])
        self.assertEqual(four["num_steps"], 42)
        self.assert_losses_equal(one, four, 15, 1e-4)   # up to the first freeze
        self.assert_losses_equal(one, four, 42, 2e-3)   # and after it: moments, learning rate and head are carried over
        self.assertGreater(four["test_accuracy"], 2 * CHANCE)
        self.assertEqual(len(four["phases"][0]["measured_peak_memory_bytes"]), 4)
        saved = tiny_model.read_safetensors(self.folder / "four/model/model.safetensors")
        self.assertEqual(len(saved), len(tiny_model.shapes()) + 4)  # pooler and classifier

    def test_sgd_stays_equal_to_one_process(self):
        self.plan_by_hand("one.json", 1, [(0, 0, [], 1, 1, []), (15, 3, [], 1, 1, [])], optimizer="sgd")
        self.plan_by_hand("four.json", 4, [(0, 0, [2, 5, 8], 1, 4, []), (15, 3, [5], 2, 2, [])], optimizer="sgd")
        one, four = self.train_by_hand("one.json", "one"), self.train_by_hand("four.json", "four")
        self.assert_losses_equal(one, four, 42, 1e-4)

    def test_idle_ranks_and_ranks_in_another_order(self):
        self.plan_by_hand("one.json", 1, [(0, 0, [], 1, 1, []), (15, 5, [], 1, 1, []), (30, 7, [], 1, 1, [])])
        self.plan_by_hand("four.json", 4, [(0, 0, [3, 5, 8], 1, 3, [3, 1, 0, 2]), (15, 5, [7], 1, 4, [2, 1]), (30, 7, [8], 2, 1, [1, 0, 3, 2])])
        one, four = self.train_by_hand("one.json", "one"), self.train_by_hand("four.json", "four")
        self.assert_losses_equal(one, four, 42, 2e-3)

    def test_layers_frozen_from_the_start_inside_the_pipeline(self):
        self.plan_by_hand("one.json", 1, [(0, 5, [], 1, 1, [])])
        self.plan_by_hand("four.json", 4, [(0, 5, [2, 4, 7], 1, 4, [])])
        one, four = self.train_by_hand("one.json", "one"), self.train_by_hand("four.json", "four")
        self.assert_losses_equal(one, four, 42, 2e-3)


class OwnDataTest(EndToEndTest):
    def test_quotes_are_literal_and_labels_are_any_strings(self):
        labels = ['"quoted"', "it's \"half", "naïve ☃; a, b\\n", " 7 "]
        rows = [(f'"{text}', label) if i % 3 == 0 else (text, label) for i, (text, label) in enumerate(tiny_model.samples(100, labels=labels))]
        self.write("own.tsv", "text\tlabel\r\n" + "".join(f"{text}\t{label}\r\n" for text, label in rows))
        run = self.train(self.of_length("static.json", 30), "run", data="own.tsv")
        self.assertEqual(sorted(run["label_names"]), sorted(labels))
        self.assertEqual(run["num_train_samples"] + run["num_test_samples"], 100)  # no quote has swallowed a line
        self.assertGreater(run["test_accuracy"], 0.4)
        config = self.read("run/model/config.json")
        self.assertEqual([config["id2label"][str(i)] for i in range(len(labels))], run["label_names"])
        found = json.loads(self.run_tool("evaluate", "--model", "run/model", "--data", "own.tsv", "--format", "json").stdout)
        self.assertEqual({entry["label"]: entry["count"] for entry in found["labels"]}, {label: 25 for label in labels})

    def test_csv_and_predictions(self):
        """The same table as CSV, as Python's csv module writes it, trains the same model; what evaluate says of each text agrees with its own figures and, without labels,
        with itself."""
        rows = [(text + ', "so"' if i % 3 == 0 else text, label) for i, (text, label) in enumerate(tiny_model.samples(100))]
        self.write("own.tsv", "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
        with open(self.folder / "own.csv", "w", newline="") as file:
            csv.writer(file).writerows([("label", "text"), *((label, text) for text, label in rows)])
        plan = self.of_length("static.json", 15)
        of_tsv, of_csv = (self.train(plan, f"run-{kind}", data=f"own.{kind}") for kind in ("tsv", "csv"))
        self.assertEqual(self.losses(of_tsv), self.losses(of_csv))

        def predictions(data):
            answer = self.run_tool("evaluate", "--model", "run-csv/model", "--data", data, "--predictions", "said.csv", "--format", "json")
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
                self.assertEqual(again, [{key: row[key] for key in ("text", "predicted", "probability")} for row in said])
                self.assertIn("100 samples without labels", self.run_tool("evaluate", "--model", "run-csv/model", "--data", data).stdout)

    def test_what_may_be_a_slip_is_said_once(self):
        rows = [*tiny_model.samples(60, labels=["x", "y"]), ("the one", "rare"), ("", "x"), ("some", "y "), ("more", "y ")]
        self.write("own.tsv", "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
        stderr = self.run_tool(*self.train_arguments(self.of_length("static.json", 3), "run", data="own.tsv")).stderr
        for note in ("own.tsv: the text in line 63 is empty", 'differ by blanks alone, and count as different ones: "y" (30 times), "y " (2 times)',
                     '1 of 4 labels has a single sample, which is trained on and never tested on: "rare"'):
            self.assertEqual(stderr.count(note), 1, stderr)

    def test_any_number_of_labels(self):
        """The plan was made from a profile with four labels; it is the user's text that decides."""
        for labels in (["no", "yes"], ["a", "b", "c", "d", "e", "f"]):
            with self.subTest(labels):
                self.write("own.tsv", "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in tiny_model.samples(100, labels=labels)))
                run = self.train(self.of_length("static.json", 5), f"run-{len(labels)}", data="own.tsv")
                self.assertEqual(run["label_names"], labels)

    def test_the_profile_needs_no_data(self):
        self.run_tool("profile", "--model", "model", "--micro-batch-sizes", "4", "--tokens", "8,16", "--cluster", "new-cluster.json", "-o", "new.json")
        self.run_tool("plan", "--profile", "new.json", "--cluster", "new-cluster.json", "--global-batch", 8, "--method", "static", "--steps", 20,
                      "--tokens", 12, "-o", "plan.json")
        self.assertEqual(self.train("plan.json", "run")["num_steps"], 20)

    def test_more_columns_in_any_order(self):
        rows = tiny_model.samples(60)
        self.write("own.tsv", "id\tlabel\ttext\n" + "".join(f"{i}\t{label}\t{text}\n" for i, (text, label) in enumerate(rows)))
        run = self.train(self.of_length("static.json", 3), "run", data="own.tsv")
        self.assertEqual(run["label_names"], tiny_model.LABELS)

    def test_a_run_that_has_ended_is_overwritten_on_demand_alone(self):
        self.train("static.json", "run", "--epochs", 1)
        before = self.contents("run")
        for options in ((), ("--resume", "no"), ("--resume", "run/checkpoints")):
            with self.subTest(options):
                self.assert_refused(*self.train_arguments("static.json", "run", "--epochs", 2, *options), says=["/run: holds a run that has ended", "-o", "--overwrite"])
                after = self.contents("run")
                after[".lock"] = before[".lock"]
                self.assertEqual(after, before)
        self.train("static.json", "run", "--epochs", 2, "--overwrite")
        self.assertEqual(self.read("run/summary.json")["epochs"], 2)
        self.assertEqual(set(self.contents("run")), set(before))


class OutputFolderTest(EndToEndTest):
    def test_links_are_replaced_and_what_they_lead_to_is_untouched(self):
        """A link in a file's place is nobody's way out of the folder; a link to a folder is how people use another disk."""
        self.write("secret", "somebody's")
        names = ["executed_plan.json", "trace.json", "summary.json", "scalars.jsonl", "steps.jsonl", "model/config.json", "model/vocab.txt", "model/model.safetensors",
                 "model/model.safetensors.part"]
        (self.folder / "disk/model").mkdir(parents=True)
        (self.folder / "disk/checkpoints/my.parts").mkdir(parents=True)
        (self.folder / "run").mkdir()
        for folder in ("model", "checkpoints"):
            (self.folder / "run" / folder).symlink_to(self.folder / "disk" / folder)
        for name in names:
            (self.folder / "run" / name).symlink_to(self.folder / "secret")
        leftover = self.write("run/model/frostpipe-0123456789abcdef.tmp", "of a run that was killed")
        self.train("static.json", "run", "--epochs", 1, "--resume", "no", "--overwrite", "--checkpoint-steps", 5)
        self.assertEqual((self.folder / "secret").read_text(), "somebody's")
        for name in names[:-1]:
            self.assertFalse((self.folder / "run" / name).is_symlink(), name)
        for folder in ("model", "checkpoints"):
            self.assertTrue((self.folder / "run" / folder).is_symlink(), folder)
        self.assertTrue((self.folder / "disk/checkpoints/my.parts").is_dir())
        self.assertTrue(list((self.folder / "disk/checkpoints").glob("step-????????")))
        self.assertFalse(leftover.exists())

    def test_with_closed_standard_streams_training_runs_to_its_end(self):
        arguments = " ".join(f"'{argument}'" for argument in (FROSTPIPE, *self.train_arguments("static.json", "run", "--epochs", 1)))
        done = subprocess.run(["bash", "-c", f"{arguments} <&- >&- 2>&-"], cwd=self.folder, env=self.environment(), timeout=HANG_SECONDS)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.read("run/summary.json")["num_steps"], len(self.read("run/summary.json")["steps"]))


if __name__ == "__main__":
    unittest.main()
