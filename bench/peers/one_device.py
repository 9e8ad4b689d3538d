"""Training steps of GPT-2, BERT or Llama on one device with PyTorch, in one of three ways (--row):

  eager      own_models.py, the fastest that plain PyTorch offers; texts of several lengths are padded
  compiled   the same with torch.compile
  unpadded   the model of transformers on samples without padding, with flash attention if available (unpadded.py)

All use fused AdamW and wait for the device once, at the end. They start from a folder's weights and train on the
samples that `frostpipe train` trains on; all losses must agree. Times are measured by events on CUDA, and by the host's
clock otherwise. The program prints one line of JSON; if a library cannot be imported or does not work, the line holds
only the reason, as "not_here".
"""
import argparse
import json
import pathlib
import time

import order
import torch
from optimizing import MAX_GRADIENT_NORM, learning_rate, optimizer_of
from own_models import MODELS, padded
from unpadded import NotHere, Unpadded


class Own:
    """A model of own_models.py, eager or compiled."""

    def __init__(self, folder, config, is_compiled):
        self.model = MODELS[config["model_type"]](folder, config)
        self.loss, self.how = self.model.loss, "eager"
        if is_compiled:
            self.loss, self.how = torch.compile(self.model.loss), "torch.compile"

    prepared = staticmethod(padded)

    @property
    def weights(self):
        return self.model.weights

    def to(self, device):
        self.model.weights = {name: weight.to(device).requires_grad_() for name, weight in self.weights.items()}


def model_of(options, config):
    if options.row == "unpadded":
        return Unpadded(options.model, config, options.device, options.dtype)
    if options.row == "compiled":
        require_compiler(options.device)
    return Own(options.model, config, options.row == "compiled")


def require_compiler(device):
    """torch.compile makes kernels with Triton on CUDA, and with a C++ compiler on the CPU."""
    try:
        torch.compile(torch.sin)(torch.ones(8, device=device))
    except Exception as error:  # torch raises several kinds if a compiler is missing
        raise NotHere(f"torch.compile does not work: {(str(error).strip() or type(error).__name__).splitlines()[0]}"
                      ) from None


def on_device(value, device):
    """Moves the tensors in tuples and dictionaries to the device; other values stay as they are."""
    if isinstance(value, torch.Tensor):
        return value.pin_memory().to(device, non_blocking=True) if device == "cuda" else value
    if isinstance(value, dict):
        return {name: on_device(one, device) for name, one in value.items()}
    return tuple(on_device(one, device) for one in value) if isinstance(value, tuple) else value


class Clock:
    """Records the ends of steps: on CUDA by events, for which the host waits only after the last step."""

    def __init__(self, is_cuda):
        self.is_cuda, self.ends = is_cuda, []

    def mark(self):
        if not self.is_cuda:
            self.ends.append(time.perf_counter())
            return
        self.ends.append(torch.cuda.Event(enable_timing=True))
        self.ends[-1].record()

    def seconds(self):
        if not self.is_cuda:
            return [end - begin for begin, end in zip(self.ends, self.ends[1:])]
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) / 1e3 for begin, end in zip(self.ends, self.ends[1:])]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="folder to start from")
    parser.add_argument("--data", required=True, help="text alone, or for BERT a table of texts and labels")
    parser.add_argument("--row", choices=("eager", "compiled", "unpadded"), default="eager")
    parser.add_argument("--tokens", type=int, required=True, help="largest number of tokens in a sample")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True, help="number of steps, within one epoch")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--threads", type=int, default=1, help="threads on the CPU")
    return parser.parse_args()


def train(options, config, model):
    """Returns the loss and the seconds of each step."""
    data = MODELS[config["model_type"]].data(options.model, options.data, options.tokens, options.seed)
    model.to(options.device)
    weights = list(model.weights.values())
    optimizer = optimizer_of(weights)
    samples = order.epoch_order(data.train, options.seed, 0)
    losses, clock = [], Clock(options.device == "cuda")
    clock.mark()
    for step in range(options.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, options)
        texts, labels = data.batch(samples[step * options.batch:(step + 1) * options.batch])
        batch = on_device((*model.prepared(texts), labels), options.device)
        with torch.autocast(options.device, torch.bfloat16, enabled=options.dtype == "bfloat16"):
            loss = model.loss(*batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, MAX_GRADIENT_NORM)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
        clock.mark()
    return [loss.item() for loss in losses], clock.seconds()


def main():
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    config = json.loads((options.model / "config.json").read_text())
    try:
        model = model_of(options, config)
    except NotHere as reason:
        print(json.dumps({"not_here": str(reason)}), flush=True)
        return
    losses, seconds = train(options, config, model)
    print(json.dumps({"how": model.how, "step_seconds": seconds, "losses": losses,
                      "peak_bytes": torch.cuda.max_memory_allocated() if options.device == "cuda" else None,
                      "torch": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
