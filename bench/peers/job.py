"""The job of every run, as `frostpipe train` defines it: options, mini-batches, learning rate, optimizer, freezing,
measurements and their output."""
import argparse
import json
import statistics
import time

import order
import torch
import workloads
from optimizing import MAX_GRADIENT_NORM, learning_rate, optimizer_of


def parser(description):
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--kind", choices=workloads.KINDS, required=True, help="kind of the data")
    options.add_argument("--model", required=True, help="folder to start from")
    options.add_argument("--data", required=True)
    options.add_argument("--batch", type=int, default=64, help="samples per optimizer step [%(default)s]")
    options.add_argument("--steps", type=int, required=True, help="optimizer steps of the run")
    options.add_argument("--threads", type=int, required=True, help="threads of each process")
    options.add_argument("--block-tokens", type=int, default=64, help="tokens of a block of plain text [%(default)s]")
    options.add_argument("--seed", type=int, default=1, help="decides the order of the data [%(default)s]")
    options.add_argument("--learning-rate", type=float, default=2e-4)
    options.add_argument("--group-by-length", type=int, default=1, metavar="N",
                         help="sort the samples of N mini-batches of an epoch by length, then cut them again")
    return options


def mini_batches(workload, options):
    """Returns lists of samples, one per step."""
    size, found = options.batch, []
    for epoch in range(options.steps):
        if len(found) >= options.steps:
            break
        samples = order.epoch_order(workload.train, options.seed, epoch)
        if options.group_by_length > 1:
            window = size * options.group_by_length
            samples = [sample for begin in range(0, len(samples), window)
                       for sample in sorted(samples[begin:begin + window], key=workload.length)]
        found += [samples[begin:begin + size] for begin in range(0, len(samples), size)]
    return found[:options.steps]


def freezing(text):
    """Returns {step: layers} of a text such as "60:7,82:11": from step 60 on the first 7 layers are frozen. Layer 0 is
    the embedding, then each block is two layers (attention, MLP)."""
    pairs = (item.split(":") for item in text.split(",") if item)
    return {int(step): int(layers) for step, layers in pairs}


class Bert:
    """transformers' BERT classifier as a chain of layers, any range of which can be computed."""

    def __init__(self, model):
        self.model = model
        blocks = model.bert.encoder.layer
        self.modules = [[model.bert.embeddings]]
        for block in blocks:
            self.modules += [[block.attention], [block.intermediate, block.output]]
        self.modules.append([model.bert.pooler, model.classifier])

    def run(self, first, end, hidden, mask):
        """Computes the layers `first` ... `end` - 1. `hidden` holds token ids before layer 0, and logits after the last
        layer."""
        visible = None if bool(mask.all()) else mask[:, None, None, :].bool()
        for modules in self.modules[first:end]:
            if len(modules) == 2 and modules[1] is self.model.classifier:
                hidden = modules[1](modules[0](hidden))
            elif len(modules) == 2:
                hidden = modules[1](modules[0](hidden), hidden)
            elif modules[0] is self.model.bert.embeddings:
                hidden = modules[0](input_ids=hidden)
            else:
                hidden = modules[0](hidden, visible)[0]
        return hidden

    def freeze(self, layers):
        for modules in self.modules[:layers]:
            for module in modules:
                module.requires_grad_(False)
                for parameter in module.parameters():
                    parameter.grad = None  # AdamW skips it from now on

    def parameters(self, first, end):
        return [p for modules in self.modules[first:end] for module in modules for p in module.parameters()]


class Clock:
    """Times steps, and prints the results of the run as one line of JSON."""

    def __init__(self):
        self.losses, self.seconds = [], []
        self.begin = self.last = time.perf_counter()

    def step_done(self, loss):
        now = time.perf_counter()
        self.losses.append(loss)
        self.seconds.append(now - self.last)
        self.last = now

    def report(self, num_samples, test, correct):
        print(json.dumps({
            "seconds": self.last - self.begin,
            "samples_per_second": num_samples / (self.last - self.begin),
            "median_step_seconds": statistics.median(self.seconds),
            "step_seconds": self.seconds,
            "losses": self.losses,
            "test_items": test,
            "accuracy": None if correct is None else correct[0] / correct[1],
            "torch": torch.__version__,
        }), flush=True)
