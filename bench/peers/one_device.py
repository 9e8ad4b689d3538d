"""Training steps of GPT-2 or BERT in eager PyTorch on one device, as fast as plain PyTorch allows: with
scaled_dot_product_attention, one product for query, key and value, fused AdamW, and no wait for the device within a
step. It needs only torch. It starts from a folder's weights and trains on the same samples as `frostpipe train`, all of
one length; the losses of both must agree.

Times on CUDA are those of events on the device, else the host's. Prints one line of JSON.
"""
import argparse
import json
import pathlib
import sys
import time

import order
import torch
from optimizing import MAX_GRADIENT_NORM, learning_rate, optimizer_of
from torch.nn import functional

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from byte_alphabet import symbols_of_bytes  # noqa: E402

HELD_OUT = 0.2
NO_LABEL = -100
TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def weights_of(folder):
    """{name: tensor} of a safetensors file."""
    content = bytearray((folder / "model.safetensors").read_bytes())
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + size])
    data = torch.frombuffer(content, dtype=torch.uint8)[8 + size:]
    return {name: data[slice(*entry["data_offsets"])].clone().view(TYPES[entry["dtype"]]).view(entry["shape"]).float()
            for name, entry in header.items() if name != "__metadata__"}


class Gpt2:
    """Learns the next token of blocks of text; the text's end is held out."""

    def __init__(self, folder, config, tokens):
        self.config, self.tokens, self.byte_ids = config, tokens, self.ids_of_bytes(folder)
        self.weights = weights_of(folder)
        for name, weight in self.weights.items():
            if ".c_" in name and name.endswith(".weight"):  # kept as [in, out]
                self.weights[name] = weight.t().contiguous()
        self.weights.pop("lm_head.weight", None)  # tied

    @staticmethod
    def ids_of_bytes(folder):
        """The tokens of the 256 bytes; the vocabulary has no merges."""
        ids = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
        return torch.tensor([ids[symbol] for symbol in symbols_of_bytes()])

    def samples(self, data, _):
        """(inputs, labels, numbers of the samples to train on)"""
        content = torch.frombuffer(bytearray(pathlib.Path(data).read_bytes()), dtype=torch.uint8).long()
        blocks = self.byte_ids[content[:len(content) // self.tokens * self.tokens]].view(-1, self.tokens)
        # Shift the labels and not the logits, which are much larger.
        labels = functional.pad(blocks[:, 1:], (0, 1), value=NO_LABEL)
        return blocks, labels, list(range(len(blocks) - int(len(blocks) * HELD_OUT + 0.5)))

    def loss(self, ids, labels):
        w, heads = self.weights, self.config["n_head"]
        norm = lambda x, name: functional.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-5)
        linear = lambda x, name: functional.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])
        x = functional.embedding(ids, w["transformer.wte.weight"]) + w["transformer.wpe.weight"][:ids.shape[1]]
        for block in range(self.config["n_layer"]):
            b = f"transformer.h.{block}"
            x = x + linear(attention(linear(norm(x, f"{b}.ln_1"), f"{b}.attn.c_attn"), heads, True),
                           f"{b}.attn.c_proj")
            inner = functional.gelu(linear(norm(x, f"{b}.ln_2"), f"{b}.mlp.c_fc"), approximate="tanh")
            x = x + linear(inner, f"{b}.mlp.c_proj")
        logits = functional.linear(norm(x, "transformer.ln_f"), w["transformer.wte.weight"])
        return functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=NO_LABEL)


class Bert:
    """Predicts the label of texts whose words are all in the vocabulary."""

    def __init__(self, folder, config, tokens):
        self.config, self.tokens = config, tokens
        self.ids = {word: i for i, word in enumerate((folder / "vocab.txt").read_text(encoding="utf-8").split("\n"))}
        self.weights = weights_of(folder)
        for block in range(config["num_hidden_layers"]):
            own = f"bert.encoder.layer.{block}.attention.self"
            for kind in ("weight", "bias"):
                parts = [self.weights.pop(f"{own}.{name}.{kind}") for name in ("query", "key", "value")]
                self.weights[f"{own}.{kind}"] = torch.cat(parts)

    def samples(self, data, seed):
        rows = [line.split("\t") for line in pathlib.Path(data).read_text(encoding="utf-8").splitlines()[1:]]
        names = sorted({label for _, label in rows})
        labels = [names.index(label) for _, label in rows]
        cut = self.tokens - 2
        ids = torch.tensor([[self.ids["[CLS]"], *(self.ids[word] for word in text.split()[:cut]), self.ids["[SEP]"]]
                            for text, _ in rows])
        return ids, torch.tensor(labels), order.hold_out(labels, HELD_OUT, seed)[0]

    def loss(self, ids, labels):
        w, heads = self.weights, self.config["num_attention_heads"]
        norm = lambda x, name: functional.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-12)
        linear = lambda x, name: functional.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])
        e = "bert.embeddings"
        x = norm(functional.embedding(ids, w[f"{e}.word_embeddings.weight"])
                 + w[f"{e}.position_embeddings.weight"][:ids.shape[1]] + w[f"{e}.token_type_embeddings.weight"][0],
                 f"{e}.LayerNorm")
        for block in range(self.config["num_hidden_layers"]):
            b = f"bert.encoder.layer.{block}"
            mixed = attention(linear(x, f"{b}.attention.self"), heads, False)
            if block == self.config["num_hidden_layers"] - 1:
                mixed, x = mixed[:, :1], x[:, :1]  # the head needs only [CLS]
            x = norm(x + linear(mixed, f"{b}.attention.output.dense"), f"{b}.attention.output.LayerNorm")
            inner = functional.gelu(linear(x, f"{b}.intermediate.dense"))
            x = norm(x + linear(inner, f"{b}.output.dense"), f"{b}.output.LayerNorm")
        logits = linear(torch.tanh(linear(x[:, 0], "bert.pooler.dense")), "classifier")
        return functional.cross_entropy(logits.float(), labels)


def attention(projected, heads, is_causal):
    """[samples, tokens, 3 x hidden] -> [samples, tokens, hidden]"""
    samples, tokens, width = projected.shape
    query, key, value = projected.view(samples, tokens, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4)
    mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal)
    return mixed.transpose(1, 2).reshape(samples, tokens, width // 3)


class Clock:
    """Ends of steps: on CUDA events, for which the host waits only after the last step."""

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
    parser.add_argument("--data", required=True, help="plain text for GPT-2, a table of texts and labels for BERT")
    parser.add_argument("--tokens", type=int, required=True, help="tokens of every sample")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True, help="number of steps, within one epoch")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--threads", type=int, default=1, help="threads on the CPU")
    return parser.parse_args()


def main():
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    is_cuda = options.device == "cuda"
    config = json.loads((options.model / "config.json").read_text())
    model = {"gpt2": Gpt2, "bert": Bert}[config["model_type"]](options.model, config, options.tokens)
    inputs, labels, train = model.samples(options.data, options.seed)
    model.weights = {name: weight.to(options.device).requires_grad_() for name, weight in model.weights.items()}
    optimizer = optimizer_of(model.weights.values())
    samples = torch.tensor(order.epoch_order(train, options.seed, 0))
    losses, clock = [], Clock(is_cuda)
    clock.mark()
    for step in range(options.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, options)
        chosen = samples[step * options.batch:(step + 1) * options.batch]
        batch = [all_of[chosen] for all_of in (inputs, labels)]
        if is_cuda:
            batch = [one.pin_memory().to(options.device, non_blocking=True) for one in batch]
        with torch.autocast(options.device, torch.bfloat16, enabled=options.dtype == "bfloat16"):
            loss = model.loss(*batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.weights.values(), MAX_GRADIENT_NORM)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
        clock.mark()
    print(json.dumps({"step_seconds": clock.seconds(), "losses": [loss.item() for loss in losses],
                      "peak_bytes": torch.cuda.max_memory_allocated() if is_cuda else None,
                      "torch": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
