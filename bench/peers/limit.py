"""Shows how near a run of frostpipe is to the limit of its machine: for each phase, the time of the blocks' matrix
products alone (on the computed tokens, with all cores), as a fraction of the measured step.

  .deps/peers/bin/python bench/peers/limit.py runs/quickstart/elastic .deps/minilm --threads 2

The products are timed with PyTorch, in the shapes of the phase's median mini-batch. For a frozen layer the forward pass
counts, for the samples that were not in the cache. For the last block of a classifier one token of each sample counts,
except for keys and values. The embedding, the head and the products inside attention are left out.
"""
import argparse
import dataclasses
import functools
import json
import pathlib
import statistics
import time

import torch

REPETITIONS = 15


@dataclasses.dataclass(frozen=True)
class Product:
    """A projection of `tokens` tokens from `inputs` to `outputs` features."""
    tokens: int
    inputs: int
    outputs: int


@functools.cache
def seconds_of(rows, inner, columns):
    """Times a product [rows, inner] x [inner, columns]."""
    a, b = torch.randn(rows, inner), torch.randn(columns, inner)
    times = []
    for _ in range(REPETITIONS):
        begin = time.perf_counter()
        torch.mm(a, b.t())
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def forward_seconds(product):
    return seconds_of(product.tokens, product.inputs, product.outputs)


def backward_seconds(product):
    """Times the gradients of the weights and of the input."""
    return (seconds_of(product.outputs, product.tokens, product.inputs) +
            seconds_of(product.tokens, product.outputs, product.inputs))


def products_of(config, layer, tokens, samples, is_classifier):
    """Returns the products of an attention or feed-forward layer. Layers are numbered as in plans (embedding: 0)."""
    hidden = config["hidden_size"]
    inner = config.get("intermediate_size", 4 * hidden)
    is_last = is_classifier and layer > 2 * (config["num_hidden_layers"] - 1)
    needed = samples if is_last else tokens
    if layer % 2 == 0:
        return [Product(needed, hidden, inner), Product(needed, inner, hidden)]
    projections = ([Product(needed, hidden, hidden), Product(tokens, hidden, 2 * hidden)] if is_last
                   else [Product(tokens, hidden, 3 * hidden)])
    return [*projections, Product(needed, hidden, hidden)]


def limit_seconds(config, phase, tokens, samples, boundary_before, is_classifier):
    """Times the products of a step. `boundary_before`: the first trainable layer of the previous phase, where older
    cache entries are."""
    found, found_before = ((phase["cache_hit_fraction"], phase["cache_base_fraction"]) if phase["cache"] else (0, 0))
    seconds = 0
    for layer in range(1, 2 * config["num_hidden_layers"] + 1):
        if layer < phase["first_trainable_layer"]:
            computed = 1 - found - (found_before if layer < boundary_before else 0)
            for product in products_of(config, layer, tokens, samples, is_classifier):
                share = dataclasses.replace(product, tokens=max(1, round(product.tokens * computed)))
                seconds += forward_seconds(share) if computed > 0 else 0
        else:
            for product in products_of(config, layer, tokens, samples, is_classifier):
                seconds += forward_seconds(product) + backward_seconds(product)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path, help="folder of a run")
    parser.add_argument("model", type=pathlib.Path, help="folder of its model")
    parser.add_argument("--threads", type=int, required=True, help="cores of the run: ranks times their threads")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    run = json.loads((options.run / "summary.json").read_text())
    config = json.loads((options.model / "config.json").read_text())
    for name, gpt2_name in (("hidden_size", "n_embd"), ("num_hidden_layers", "n_layer")):
        config.setdefault(name, config.get(gpt2_name))
    steps = {step["step"]: step for step in run["steps"]}
    print("| from step | first trainable layer | tokens | limit [ms] | measured [ms] | limit / measured |")
    print("| --- | --- | --- | --- | --- | --- |")
    boundary = 0
    for phase in run["phases"]:
        numbers = range(phase["from_step"], phase["from_step"] + phase["num_steps"])
        samples = run["global_batch_size"]
        whole = [steps[number]["tokens"] for number in numbers if steps[number]["samples"] == samples]
        tokens = round(statistics.median(whole) * samples)
        limit = limit_seconds(config, phase, tokens, samples, boundary, bool(run["label_names"]))
        measured = phase["measured_iteration_ns"] / 1e9
        print(f"| {phase['from_step']} | {phase['first_trainable_layer']} | {tokens} | {1000 * limit:.1f} "
              f"| {1000 * measured:.1f} | {limit / measured:.0%} |", flush=True)
        boundary = phase["first_trainable_layer"]


main()
