"""Small models of every family: a configuration in a Hugging Face folder, with a vocabulary and without weights."""

import json
import sys
from pathlib import Path

import tiny_model
from end_to_end import EndToEndTest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))
from byte_alphabet import symbols_of_bytes  # noqa: E402

BERT = tiny_model.config(2)
VIT = {"model_type": "vit", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
       "intermediate_size": 64, "image_size": 8, "patch_size": 4, "num_channels": 3}
GPT2 = {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64, "vocab_size": 258,
        "activation_function": "gelu_new"}


def write_model(folder, config, vocabulary):
    files = {"config.json": config}
    if vocabulary == "words":
        files["vocab.txt"] = "\n".join(tiny_model.vocabulary()) + "\n"
    elif vocabulary == "bytes":
        files["vocab.json"] = {token: i for i, token in enumerate([*symbols_of_bytes(), "ab", "<|endoftext|>"])}
        files["merges.txt"] = "#version: 0.2\na b\n"
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


class FamilyTest(EndToEndTest):
    """Trains a small model of a family as a user does."""

    def write_model(self, name, config, vocabulary):
        write_model(self.folder / name, config, vocabulary)

    def train_family(self, model, data, *options, epochs=4, batch=16, plan_options=(), samples=()):
        """Profile, plan and train on two ranks with half of the blocks frozen on the way; the run's summary."""
        shape = [*samples, *(("--test-data", options[options.index("--test-data") + 1]) if "--test-data" in options
                             else ())]
        self.run_tool("profile", "--model", model, "--data", data, "--global-batch", batch, "--threads-per-rank", 1,
                      "--micro-batch-sizes", "1,4,16", *shape, "--cluster", "c.json", "-o", "p.json")
        self.run_tool("plan", "--profile", "p.json", "--cluster", "c.json", "--global-batch", batch, "--epochs", epochs,
                      "--method", "pipetransformer", "--fix", "pp=2", *plan_options, "-o",
                      "family.json")
        self.run_tool("train", "family.json", "--data", data, "-o", "run", "--learning-rate", 0.003, *options)
        run = self.read("run/summary.json")
        self.assertGreater(run["phases"][-1]["frozen_blocks"], 0)
        self.assertLess(run["steps"][-1]["loss"], run["steps"][0]["loss"])
        return run

    def check_round_trip(self, data):
        """A folder that comes in and goes out untrained is the same folder: every bit of every tensor, and the
        config."""
        plan = self.of_length("family.json", 4, forget=["epochs"])
        self.run_tool("train", plan, "--model", "run/model", "--data", data, "-o", "again", "--learning-rate", 0)
        before, after = self.contents("run/model"), self.contents("again/model")
        self.assertEqual(set(before), set(after))
        for name in before:
            self.assertEqual(before[name], after[name], name)

    def saved_names(self):
        return set(tiny_model.read_safetensors(self.folder / "run/model/model.safetensors"))
