"""From a model folder to a report, with freezing during the run."""

import collections
import json
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import tiny_model
from end_to_end import EndToEndTest

CHANCE = 1 / len(tiny_model.LABELS)

RUN_KEYS = {"samples_per_second", "wall_seconds", "test_accuracy", "test_accuracy_standard_error", "phases"}
PHASE_KEYS = {"from_step", "num_steps", "frozen_blocks", "stages", "replicas", "num_micro_batches",
              "predicted_iteration_ns",
              "measured_iteration_ns", "transformation_ns"}


class RoadTest(EndToEndTest):
    """profile -> plan -> simulate -> train -> evaluate -> compare -> report"""

    def test_the_whole_workflow(self):
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
        self.assertGreater(elastic["phases"][-1]["frozen_blocks"], 0)

        pairs = [path for name, plan in runs.items() for path in (f"{plan}.json", f"runs/{name}/summary.json")]
        text = self.run_tool("compare", *pairs, "-o", "summary.json").stdout
        for name in runs:
            self.assertIn(name, text)
        self.check_comparison(self.read("summary.json"), set(runs))
        self.run_tool("report", "summary.json", "-o", "report.html", "--trace", "trace.json",
                      "--cluster", "cluster.json")
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
            "bert.pooler.dense.weight": [hidden, hidden], "bert.pooler.dense.bias": [hidden],
            "classifier.weight": [num_labels, hidden], "classifier.bias": [num_labels]}
        self.assertEqual({name: shape for name, (shape, _) in saved.items()}, expected)
        original = tiny_model.random_tensors()
        changed = [name for name in original if saved[f"bert.{name}"][1] != original[name][1]]
        self.assertIn("encoder.layer.3.output.dense.weight", changed)
        for name, (_, values) in saved.items():
            self.assertTrue(all(value == value and abs(value) < 100 for value in values), name)

    def check_scalars(self, folder, run):
        """Figures are written during the run, by the rank that has them."""
        lines = [json.loads(line) for line in (self.folder / folder / "scalars.jsonl").read_text().splitlines()]
        steps = [line for line in lines if "loss" in line]
        self.assertEqual([line["step"] for line in steps], list(range(1, 61)))
        for line, step in zip(steps, run["steps"]):
            self.assertAlmostEqual(line["loss"], step["loss"], delta=1e-12)
        self.assertEqual([(line["step"], line["test/accuracy"]) for line in lines if "test/accuracy" in line],
                         [(one["step"], one["accuracy"]) for one in run["evaluations"]])
        self.assertGreater((self.folder / folder / "tensorboard/events.out.tfevents.frostpipe").stat().st_size,
                           60 * 100)

    def check_evaluation(self, folder, run):
        """The saved model, evaluated by one process, predicts the run's test items as the run did."""
        rows = (self.folder / "data.tsv").read_text().splitlines()[1:]
        items = [rows[index] for index in run["test_items"]]
        labels = [tiny_model.LABELS.index(item.split("\t")[1]) for item in items]
        self.assertEqual(labels, run["test_labels"])
        self.write("test.tsv", "\n".join(["text\tlabel", *items]) + "\n")
        found = json.loads(self.run_tool("evaluate", "--model", f"{folder}/model", "--data", "test.tsv",
                                         "--format", "json").stdout)
        self.assertEqual(found["num_samples"], run["num_test_samples"])
        # Other batches give other rounding, which may change one borderline item.
        self.assertAlmostEqual(found["value"], run["test_accuracy"], delta=1.5 / len(items))
        self.assertEqual({entry["label"]: entry["count"] for entry in found["labels"]},
                         dict(collections.Counter(item.split("\t")[1] for item in items)))

    def check_trace(self, name, num_ranks):
        """Perfetto needs complete events with a track, a begin and a duration that do not overlap on one track."""
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
        # The name of a namespace ("xmlns") is not a link.
        links = re.findall(r"https?://[^\s\"'<>)]+", re.sub(r"xmlns(:\w+)?=[\"'][^\"']*[\"']", "", html))
        self.assertEqual(links, [])
        self.assertEqual(re.findall(r"(?:src|href)\s*=\s*[\"'](?!#|data:)[^\"']*", html), [])
        self.assertNotRegex(html, r"<link|@import|url\((?![\"']?(#|data:))")
        for word in ("data_parallel", "static_pipeline", "elastic"):
            self.assertRegex(html, word.replace("_", "[_ ]"))


class FreezeRuleTest(EndToEndTest):
    def frozen(self, run):
        """The rule's decisions; a decision may be followed by several phases, which use the cache in different ways."""
        layers = [phase["frozen_blocks"] for phase in run["phases"]]
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
                self.assertEqual([decision["frozen_blocks"] for decision in run["decisions"]], frozen[1:])
                self.assertGreater(run["test_accuracy"], 1.5 * CHANCE)
                executed = self.read(f"{rule.replace(':', '-')}/executed_plan.json")
                self.assertEqual([phase["from_step"] for phase in executed["phases"]],
                                 [phase["from_step"] for phase in run["phases"]])

    def test_the_plans_forecast_freezes_nothing_that_the_rule_does_not(self):
        """The plan forecasts 2, 3 and 4 frozen blocks from steps 21, 29 and 37."""
        for rule, expected in (("fixed:0", [(0, 0)]), ("fixed:0,1", [(0, 0), (29, 1)])):
            with self.subTest(rule):
                run = self.train("pipetransformer.json", rule.replace(":", "-"), "--freeze", rule)
                begins = {}
                for phase in run["phases"]:
                    begins.setdefault(phase["frozen_blocks"], phase["from_step"])
                self.assertEqual([(step, blocks) for blocks, step in begins.items()], expected)
        run = self.train("pipetransformer.json", "warm", "--freeze", "cap", "--freeze-set", "warm-up=1")
        self.assertEqual({phase["frozen_blocks"] for phase in run["phases"]}, {0})

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
        self.train("pipetransformer.json", "run", "--freeze", "fixed:2", "--freeze-set", "warm-up=0")
        saved = tiny_model.read_safetensors(self.folder / "run/model/model.safetensors")
        for name, (_, values) in tiny_model.random_tensors().items():
            frozen = name.startswith(("embeddings.", "encoder.layer.0.", "encoder.layer.1."))
            same = saved[f"bert.{name}"][1] == values
            self.assertEqual(same, frozen or name.endswith("key.bias") and same, name)


if __name__ == "__main__":
    unittest.main()
