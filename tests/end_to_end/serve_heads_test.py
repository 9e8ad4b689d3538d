"""`frostpipe serving run` with several fine-tuned models whose first layers were frozen from the first step. Oracle:
each of them served alone, bitwise equal, and `evaluate`."""

import csv
import signal
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS
from serve_test import BATCH, ServingCase, two_partitions
from tiny_model import samples, write_data

FROZEN_BLOCKS = 2
SHARED_LAYERS = 1 + 2 * FROZEN_BLOCKS
NUM_LAYERS = 10
TOKENS = 16
HEADS = ("topic", "kind", "slow")


def plan_of_heads(cut, heads=len(HEADS), shared_layers=SHARED_LAYERS):
    plan = {**two_partitions("net", NUM_LAYERS, TOKENS, cut), "version": 5}
    plan["models"][0]["shared_prefix"] = {"layers": shared_layers, "heads": heads}
    return plan


class ServeHeadsTest(ServingCase):
    def fine_tune(self):
        """Two heads for the same labels, and one for others."""
        write_data(self.folder / "kinds.tsv", labels=["life", "things"])
        self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 16,
                      "--method", "freeze-only", "--freeze-set", "warm-up=0", "--forecast", f"fixed:{FROZEN_BLOCKS}",
                      "--epochs", 1, "-o", "frozen.json")
        self.assertEqual(self.read("frozen.json")["phases"][0]["first_trainable_layer"], SHARED_LAYERS)
        self.train("frozen.json", "topic")
        self.train("frozen.json", "kind", data="kinds.tsv")
        self.run_tool("train", "frozen.json", "--data", "data.tsv", "--learning-rate", 0.001, "-o", "slow")

    def folder_of(self, head):
        return self.folder / head / "model"

    def heads(self):
        return [option for head in HEADS for option in ("--model", f"{head}={self.folder_of(head)}")]

    def end(self, server):
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.ended_within(HANG_SECONDS), 0, server.stderr)

    def evaluated(self, head, texts):
        self.write("texts.txt", "\n".join(texts) + "\n")
        self.run_tool("evaluate", "--model", self.folder_of(head), "--data", "texts.txt", "--batch-size", BATCH,
                      "--predictions", "said.csv")
        with open(self.folder / "said.csv", newline="") as file:
            return list(csv.DictReader(file))

    def test_heads_answer_as_each_model_alone(self):
        self.fine_tune()
        texts = sorted((text for text, _ in samples(BATCH, seed=7)), key=lambda text: len(text.split()))
        alone = {}
        for head in HEADS:
            server = self.start_server(two_partitions("net", NUM_LAYERS, TOKENS), "--model", self.folder_of(head))
            for name, data in self.ask_texts(texts).items():
                alone[f"{head}.{name}"] = data
            self.end(server)
            rows = self.evaluated(head, texts)
            self.assertEqual(alone[f"{head}.label"], [row["predicted"] for row in rows])
            self.assertEqual([f"{value:.6f}" for value in alone[f"{head}.probability"]],
                             [row["probability"] for row in rows])
        self.assertNotEqual(alone["topic.probability"], alone["slow.probability"])
        for cut in SHARED_LAYERS - 2, SHARED_LAYERS, SHARED_LAYERS + 2:
            server = self.start_server(plan_of_heads(cut), *self.heads())
            self.assertEqual(self.ask_texts(texts), alone, f"cut at {cut}")
            self.end(server)
        self.refuse_what_is_not_shared()
        self.serve_as_planned()

    def refuse_what_is_not_shared(self):
        self.write("serving.json", plan_of_heads(7, shared_layers=7))
        self.assert_refused("serving", "run", "serving.json", *self.heads(),
                            says=["kind/model: must have the first 7 layers of ", "shares only the first 5; plan with "
                                  "--heads 3,5"])

    def serve_as_planned(self):
        self.run_tool("serving", "plan", "--profile", "profile.json", "--cluster", "cluster.json", "--slo",
                      "2s", "--tokens", TOKENS, "--heads", f"{len(HEADS)},{SHARED_LAYERS}", "-o",
                      "planned.json")
        self.run_tool("serving", "run", "planned.json", *self.heads(), "--rate", 4, "--seconds", 3, "-o",
                      self.folder / "served")
        [model] = self.read("served/serving_run.json")["models"]
        self.assertGreater(model["in_time"] + model["late"], 0)
        self.assertEqual(model["drops"]["failed"], 0)


if __name__ == "__main__":
    unittest.main()
