"""The small BERT of gradients.cpp in PyTorch's functions, with frostpipe's layers, and its files."""
import json
import math
import struct

import torch
from torch.nn import functional

NUM_LAYERS, NUM_HEADS, EPSILON = 8, 2, 1e-12  # as small_config() in tests/executor/small_model.h
TYPES = {"F32": torch.float32, "I64": torch.int64}


class Layer(torch.nn.Module):
    """Its weights are in the order of the file."""

    def __init__(self, weights):
        super().__init__()
        self.weights = torch.nn.ParameterList(weights)


def norm(x, scale, shift):
    return functional.layer_norm(x, scale.shape, scale, shift, EPSILON)


class Embedding(Layer):
    def forward(self, ids):
        words, positions, types, scale, shift = self.weights
        return norm(functional.embedding(ids, words) + positions[:ids.shape[1]] + types[0], scale, shift)


class Attention(Layer):
    def forward(self, x):
        qkv, out, qkv_bias, out_bias, scale, shift = self.weights
        samples, tokens, hidden = x.shape
        heads = functional.linear(x, qkv, qkv_bias).view(samples, tokens, 3, NUM_HEADS, hidden // NUM_HEADS)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        scores = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(hidden // NUM_HEADS), dim=3)
        joined = (scores @ v).transpose(1, 2).reshape(samples, tokens, hidden)
        return norm(functional.linear(joined, out, out_bias) + x, scale, shift)


class FeedForward(Layer):
    def forward(self, x):
        up, down, up_bias, down_bias, scale, shift = self.weights
        inner = functional.gelu(functional.linear(x, up, up_bias))
        return norm(functional.linear(inner, down, down_bias) + x, scale, shift)


class Head(Layer):
    def forward(self, x):
        pooler, classifier, pooler_bias, classifier_bias = self.weights
        return functional.linear(torch.tanh(functional.linear(x[:, 0], pooler, pooler_bias)), classifier,
                                 classifier_bias)


def layer_class(layer):
    if layer == 0:
        return Embedding
    if layer == NUM_LAYERS - 1:
        return Head
    return Attention if layer % 2 == 1 else FeedForward


def names_of(tensors, layer):
    """The names of the layer's tensors in their order; a name begins with the layer and the index in it."""
    return sorted(name for name in tensors if name.startswith(f"{layer}."))


def layers_of_stage(stage, num_stages):
    """The layers of each stage, as in small_phase() of small_model.h."""
    return range(NUM_LAYERS * stage // num_stages, NUM_LAYERS * (stage + 1) // num_stages)


def stage_module(weights, stage, num_stages):
    return torch.nn.Sequential(*(layer_class(layer)([weights[name].clone() for name in names_of(weights, layer)])
                                 for layer in layers_of_stage(stage, num_stages)))


def gradients_of_stage(module, weights, stage, num_stages):
    """By name."""
    found = {}
    for layer, part in zip(layers_of_stage(stage, num_stages), module):
        found.update(zip(names_of(weights, layer), (weight.grad for weight in part.weights), strict=True))
    return found


def read_safetensors(path):
    content = path.read_bytes()
    (header_size,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + header_size])
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        begin, end = (8 + header_size + offset for offset in entry["data_offsets"])
        data = bytearray(content[begin:end])
        found[name] = torch.frombuffer(data, dtype=TYPES[entry["dtype"]]).view(entry["shape"])
    return found


class Results:
    """The files that all ranks of gradients.cpp have written to a folder: `weights` and `gradients` by name, and the
    batch."""

    def __init__(self, folder):
        tensors = {}
        for path in sorted(folder.glob("*.safetensors")):
            tensors.update(read_safetensors(path))
        self.weights, self.gradients, batch = (
            {name.removeprefix(kind): tensor for name, tensor in tensors.items() if name.startswith(kind)}
            for kind in ("weights.", "gradients.", "batch."))
        self.token_ids, self.labels = batch["token_ids"], batch["labels"]
