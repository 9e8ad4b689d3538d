"""`frostpipe serving run` with real models in two partitions, over HTTP. Oracle: `evaluate` gives the same results for
the same samples in the same batches: labels, probabilities to the digits in its file, a text's loss bitwise."""

import csv
import http.client
import json
import os
import random
import shutil
import signal
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from end_to_end import HANG_SECONDS, EndToEndTest
from families import GPT2, VIT, write_model
from families_test import COLOURS, write_png, write_pictures
from support import MS, served_model, serving_pool

BATCH = 4
LATE_MS = 100_000  # no test waits that long


def two_partitions(name, num_layers, tokens, cut=None):
    """A plan with one pipeline of two pools with a device each, for batches of BATCH requests; each has half the
    layers, or another cut."""
    times = [1 + i for i in range(BATCH)]
    rate = 1000 * BATCH / times[-1]
    model = served_model(name, 1, LATE_MS, 2, [serving_pool(0, 1, "cpu", 1, times, rate),
                                               serving_pool(1, 2, "cpu", 1, times, rate)], rate)
    cut = cut or num_layers // 2
    model["blocks"] = [{"begin": 0, "end": cut}, {"begin": cut, "end": num_layers}]
    model["tokens"] = tokens
    device = {"devices_per_server": 1, "bandwidth_bytes_per_second": 0, "price_per_hour": None}
    return {"format": "frostpipe.plan", "version": 3, "kind": "serving", "method": "ppipe", "objective": "throughput",
            "dtype": "float32", "margins": {"objective_fraction": 0.4, "batch_building": 1.3},
            "device_classes": [{"name": "cpu", "count": 2, **device}], "models": [model], "objective_value": rate,
            "objective_bound": None}


class ServingCase(EndToEndTest):
    def start_server(self, plan, *folders):
        self.write("serving.json", plan)
        server = self.start("serving", "run", "serving.json", *folders, "--port", 0, name="server")
        self.wait_until(lambda: "http://" in server.stderr or server.ended_within(0) is not None, HANG_SECONDS,
                        lambda: server.stderr)
        self.assertIn("http://", server.stderr)
        self.port = int(server.stderr.rpartition(":")[2])
        return server

    def ask(self, inputs, code=200):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_SECONDS)
        connection.request("POST", "/v2/models/net/infer", json.dumps({"inputs": [inputs]}),
                           {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        self.assertEqual(response.status, code, answer)
        return {one["name"]: one["data"] for one in answer["outputs"]} if code == 200 else answer["error"]

    def ask_texts(self, texts, **how):
        return self.ask({"name": "text", "shape": [len(texts)], "datatype": "BYTES", "data": texts}, **how)


class ServeTest(ServingCase):
    def serve(self, num_layers, tokens):
        return self.start_server(two_partitions("net", num_layers, tokens), "--model", self.folder / "run/model")

    def evaluated(self, data):
        done = self.run_tool("evaluate", "--model", "run/model", "--data", data, "--batch-size", BATCH,
                             "--predictions", "said.csv")
        self.assertIn("samples", done.stdout)
        with open(self.folder / "said.csv", newline="") as file:
            return list(csv.DictReader(file))

    def assert_said(self, rows, found):
        self.assertEqual(found["label"], [row["predicted"] for row in rows])
        self.assertEqual([f"{value:.6f}" for value in found["probability"]], [row["probability"] for row in rows])

    def test_texts_with_bert(self):
        self.train(self.of_length("static.json", 12), "run")
        with open(self.folder / "data.tsv", newline="") as file:
            texts = [row["text"] for row in csv.DictReader(file, delimiter="\t")][:3 * BATCH]
        texts.sort(key=lambda text: len(text.split()))  # then the batches are those of evaluate
        self.write("texts.txt", "\n".join(texts) + "\n")
        rows = self.evaluated("texts.txt")
        num_layers = len(json.loads((self.folder / "profile.json").read_text())["model"]["layers"])
        server = self.serve(num_layers, 16)
        for first in range(0, len(texts), BATCH):
            found = self.ask_texts(texts[first:first + BATCH])
            self.assert_said(rows[first:first + BATCH], found)
        self.assertIn("pixel_values", self.ask({"name": "pixel_values", "shape": [1], "datatype": "FP32", "data": [0]},
                                               code=400))
        self.lose_a_worker(server, texts[:BATCH], rows[:BATCH])
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.ended_within(HANG_SECONDS), 0, server.stderr)
        self.assertIn("net, simulated", server.stdout)
        self.assert_no_process_within(5)

    def test_weights_that_are_overwritten_change_all_at_once(self):
        self.train(self.of_length("static.json", 12), "run")
        self.train(self.of_length("static.json", 4), "other")
        with open(self.folder / "data.tsv", newline="") as file:
            texts = [row["text"] for row in csv.DictReader(file, delimiter="\t")][:BATCH]
        self.write("texts.txt", "\n".join(texts) + "\n")
        old = self.evaluated("texts.txt")
        plan = two_partitions("net", len(self.read("profile.json")["model"]["layers"]), 16)
        plan["device_classes"][0]["count"] = 4
        for pool in plan["models"][0]["pipelines"][0]["partitions"]:
            pool["num_virtual_devices"] = 2
        server = self.start_server(plan, "--model", self.folder / "run/model")
        shutil.copyfile(self.folder / "other/model/model.safetensors", self.folder / "run/model/model.safetensors")
        new = self.evaluated("texts.txt")
        self.assertNotEqual([row["probability"] for row in new], [row["probability"] for row in old])
        self.kill_a_worker(server)
        self.wait_until(lambda: "it is given up, and the others go on" in server.stderr, HANG_SECONDS,
                        lambda: server.stderr)
        self.assertIn("must hold the same files as when the server read it", server.stderr)
        for _ in range(4):
            self.assert_said(old, self.ask_texts(texts))
        server.process.send_signal(signal.SIGHUP)
        self.wait_until(lambda: "the new plan's workers have loaded" in server.stderr, HANG_SECONDS,
                        lambda: server.stderr)
        for _ in range(4):
            self.assert_said(new, self.ask_texts(texts))

    def kill_a_worker(self, server):
        children = [int(entry) for entry in
                    Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()] or [
                        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()
                        and self.parent_of(entry) == server.pid]
        os.kill(children[0], signal.SIGKILL)

    def lose_a_worker(self, server, texts, rows):
        """After the worker has been started again, the answers are the same."""
        self.kill_a_worker(server)
        self.wait_until(lambda: "it is started again" in server.stderr, HANG_SECONDS, lambda: server.stderr)

        def is_ready():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_SECONDS)
            connection.request("GET", "/v2/models/net/ready")
            status = connection.getresponse().status
            connection.close()
            return status == 200
        self.wait_until(is_ready, HANG_SECONDS, lambda: server.stderr)
        self.assert_said(rows, self.ask_texts(texts))

    @staticmethod
    def parent_of(entry):
        try:
            return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            return 0

    def test_pictures_with_vit(self):
        write_model(self.folder / "vit", VIT, None)
        write_pictures(self.folder / "pictures", 24)
        self.run_tool("profile", "--model", "vit", "--data", "pictures", "--global-batch", 16, "--quick",
                      "--cluster", "c.json", "-o", "p.json")
        self.run_tool("plan", "--profile", "p.json", "--cluster", "c.json", "--global-batch", 16, "--epochs", 1,
                      "--method", "data-parallel", "-o", "vit.json")
        self.run_tool("train", "vit.json", "--data", "pictures", "-o", "run", "--learning-rate", 0.003)
        # One picture of one colour per label, so that its pixels are known without an image decoder.
        for label, colour in COLOURS.items():
            write_png(self.folder / "unseen" / label / "0.png", 8, colour, ZeroNoise())
        rows = self.evaluated("unseen")
        self.serve(len(self.read("p.json")["model"]["layers"]), 5)
        pixels = [(value / 255 - 0.5) / 0.5 for label in sorted(COLOURS) for value in COLOURS[label]
                  for _ in range(64)]
        pixels += pixels[:3 * 64]  # a fourth, to fill the batch
        found = self.ask({"name": "pixel_values", "shape": [BATCH, 3, 8, 8], "datatype": "FP32", "data": pixels})
        self.assert_said(rows, {name: values[:len(COLOURS)] for name, values in found.items()})

    def test_loss_of_texts_with_gpt2(self):
        write_model(self.folder / "gpt2", GPT2, "bytes")
        self.write("text.txt", "the cab is at the lab and the crab is in the cab. " * 40)
        self.run_tool("profile", "--model", "gpt2", "--data", "text.txt", "--max-tokens", 32, "--global-batch", 16,
                      "--quick", "--cluster", "c.json", "-o", "p.json")
        self.run_tool("plan", "--profile", "p.json", "--cluster", "c.json", "--global-batch", 16, "--epochs", 1,
                      "--method", "data-parallel", "-o", "gpt2.json")
        self.run_tool("train", "gpt2.json", "--data", "text.txt", "-o", "run")
        line = "the crab is at the lab, "
        self.write("line.txt", line)
        self.serve(len(self.read("p.json")["model"]["layers"]), 32)
        said = json.loads(self.run_tool("evaluate", "--model", "run/model", "--data", "line.txt", "--max-tokens", 32,
                                        "--format", "json").stdout)
        found = self.ask_texts([line] * BATCH)
        self.assertEqual(len(set(found["loss"])), 1)
        self.assertEqual(found["loss"][0], said["loss"])
        self.assertEqual(found["num_correct"][0] / found["num_predicted"][0], said["value"])

    def test_folders_that_do_not_match_the_plan_are_refused(self):
        shutil.copytree(self.folder / "model", self.folder / "run" / "model")
        self.write("serving.json", two_partitions("net", 6, 16))
        self.assert_refused("serving", "run", "serving.json", says=["--model net=FOLDER: is required"], code=2)
        self.assert_refused("serving", "run", "serving.json", "--model", "run/model", says=["run/model", "weights"])
        self.assert_refused("serving", "run", "serving.json", "--model", "other=run/model", says=["--model", "other"])


class ZeroNoise(random.Random):
    def randrange(self, *_):
        return 0


if __name__ == "__main__":
    unittest.main()
