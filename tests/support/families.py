"""Small models of every family: a configuration in a Hugging Face folder, with a vocabulary and without weights."""

import json
import sys
from pathlib import Path

import tiny_model

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
