"""GPT-2, BERT and Llama in plain PyTorch: scaled_dot_product_attention, one product for query, key and value, and no
wait for the device. Each reads the samples that `frostpipe train` trains on, and a folder's weights."""
import json
import pathlib
import sys

import order
import torch
from torch.nn import functional

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from byte_alphabet import symbols_of_bytes  # noqa: E402

HELD_OUT = 0.2
NO_LABEL = -100
TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def weights_of(folder):
    """Returns {name: tensor} of a safetensors file."""
    content = bytearray((folder / "model.safetensors").read_bytes())
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + size])
    data = torch.frombuffer(content, dtype=torch.uint8)[8 + size:]
    return {name: data[slice(*entry["data_offsets"])].clone().view(TYPES[entry["dtype"]]).view(entry["shape"]).float()
            for name, entry in header.items() if name != "__metadata__"}


class Texts:
    """Texts, whose words are all in the vocabulary, and their labels. Samples are as long as their texts, up to
    `tokens`."""

    def __init__(self, folder, data, tokens, seed):
        ids = {word: i for i, word in enumerate((folder / "vocab.txt").read_text(encoding="utf-8").split("\n"))}
        rows = [line.split("\t") for line in pathlib.Path(data).read_text(encoding="utf-8").splitlines()[1:]]
        names = sorted({label for _, label in rows})
        self.labels = torch.tensor([names.index(label) for _, label in rows])
        self.samples = [torch.tensor([ids["[CLS]"], *(ids[word] for word in text.split()[:tokens - 2]), ids["[SEP]"]])
                        for text, _ in rows]
        self.train = order.hold_out(self.labels.tolist(), HELD_OUT, seed)[0]

    def batch(self, chosen):
        """Returns a list of the samples, and their labels."""
        return [self.samples[one] for one in chosen], self.labels[torch.tensor(chosen)]


class Blocks:
    """Blocks of text whose next tokens are learned. Tokens are bytes, since the vocabulary has no merges; the end of
    the text is held out."""

    def __init__(self, folder, data, tokens, _):
        ids = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
        byte_ids = torch.tensor([ids[symbol] for symbol in symbols_of_bytes()])
        content = torch.frombuffer(bytearray(pathlib.Path(data).read_bytes()), dtype=torch.uint8).long()
        self.samples = byte_ids[content[:len(content) // tokens * tokens]].view(-1, tokens)
        # Shift the labels and not the logits, which are much larger.
        self.labels = functional.pad(self.samples[:, 1:], (0, 1), value=NO_LABEL)
        self.train = list(range(len(self.samples) - int(len(self.samples) * HELD_OUT + 0.5)))

    def batch(self, chosen):
        return list(self.samples[torch.tensor(chosen)]), self.labels[torch.tensor(chosen)]


def padded(samples):
    """Returns the tokens as [samples, tokens], and a mask of those that are not padding (None if all samples are
    equally long)."""
    lengths = {len(sample) for sample in samples}
    if len(lengths) == 1:
        return torch.stack(samples), None
    ids = torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)
    return ids, torch.arange(ids.shape[1]) < torch.tensor([len(sample) for sample in samples])[:, None]


class Gpt2:
    data = Blocks

    def __init__(self, folder, config):
        self.config, self.weights = config, weights_of(folder)
        for name, weight in self.weights.items():
            if ".c_" in name and name.endswith(".weight"):  # stored as [in, out]
                self.weights[name] = weight.t().contiguous()
        self.weights.pop("lm_head.weight", None)  # tied

    def loss(self, ids, _, labels):
        w, heads = self.weights, self.config["n_head"]
        norm = lambda x, name: functional.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-5)
        linear = lambda x, name: functional.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])
        x = functional.embedding(ids, w["transformer.wte.weight"]) + w["transformer.wpe.weight"][:ids.shape[1]]
        for block in range(self.config["n_layer"]):
            b = f"transformer.h.{block}"
            x = x + linear(attention(linear(norm(x, f"{b}.ln_1"), f"{b}.attn.c_attn"), heads, is_causal=True),
                           f"{b}.attn.c_proj")
            inner = functional.gelu(linear(norm(x, f"{b}.ln_2"), f"{b}.mlp.c_fc"), approximate="tanh")
            x = x + linear(inner, f"{b}.mlp.c_proj")
        return next_token_loss(functional.linear(norm(x, "transformer.ln_f"), w["transformer.wte.weight"]), labels)


class Bert:
    data = Texts

    def __init__(self, folder, config):
        self.config, self.weights = config, weights_of(folder)
        for block in range(config["num_hidden_layers"]):
            own = f"bert.encoder.layer.{block}.attention.self"
            join(self.weights, own, [f"{own}.{name}" for name in ("query", "key", "value")])

    def loss(self, ids, is_token, labels):
        w, heads = self.weights, self.config["num_attention_heads"]
        norm = lambda x, name: functional.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], 1e-12)
        linear = lambda x, name: functional.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])
        e = "bert.embeddings"
        mask = None if is_token is None else is_token[:, None, None, :]
        x = norm(functional.embedding(ids, w[f"{e}.word_embeddings.weight"])
                 + w[f"{e}.position_embeddings.weight"][:ids.shape[1]] + w[f"{e}.token_type_embeddings.weight"][0],
                 f"{e}.LayerNorm")
        for block in range(self.config["num_hidden_layers"]):
            b = f"bert.encoder.layer.{block}"
            mixed = attention(linear(x, f"{b}.attention.self"), heads, mask=mask)
            if block == self.config["num_hidden_layers"] - 1:
                mixed, x = mixed[:, :1], x[:, :1]  # the head needs [CLS] alone
            x = norm(x + linear(mixed, f"{b}.attention.output.dense"), f"{b}.attention.output.LayerNorm")
            inner = functional.gelu(linear(x, f"{b}.intermediate.dense"))
            x = norm(x + linear(inner, f"{b}.output.dense"), f"{b}.output.LayerNorm")
        return class_loss(linear(torch.tanh(linear(x[:, 0], "bert.pooler.dense")), "classifier"), labels)


class Llama:
    """Has Qwen2's biases if the weights have them, and tied embeddings if so configured or without an lm_head."""

    data = Blocks

    def __init__(self, folder, config):
        self.config, self.weights = config, weights_of(folder)
        for block in range(config["num_hidden_layers"]):
            own = f"model.layers.{block}"
            join(self.weights, f"{own}.qkv", [f"{own}.self_attn.{name}_proj" for name in "qkv"])
            join(self.weights, f"{own}.gate_up", [f"{own}.mlp.{name}_proj" for name in ("gate", "up")])
        if config["tie_word_embeddings"]:
            self.weights.pop("lm_head.weight", None)

    def rotation(self, tokens, like):
        """Returns cosines and sines, each [tokens, head size]."""
        size = self.config["hidden_size"] // self.config["num_attention_heads"]
        exponents = torch.arange(0, size, 2, device=like.device, dtype=torch.float32) / size
        angles = torch.outer(torch.arange(tokens, device=like.device), self.config["rope_theta"] ** -exponents)
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos(), angles.sin()

    def loss(self, ids, _, labels):
        w, config = self.weights, self.config
        heads, key_heads = config["num_attention_heads"], config["num_key_value_heads"]
        norm = lambda x, name: functional.rms_norm(x, x.shape[-1:], w[f"{name}.weight"], config["rms_norm_eps"])
        linear = lambda x, name: functional.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))
        x = functional.embedding(ids, w["model.embed_tokens.weight"])
        cosines, sines = self.rotation(ids.shape[1], x)
        turned = lambda t: (t * cosines + torch.cat([-t[..., t.shape[-1] // 2:], t[..., :t.shape[-1] // 2]], -1)
                            * sines).to(t.dtype)
        for block in range(config["num_hidden_layers"]):
            b = f"model.layers.{block}"
            parts = linear(norm(x, f"{b}.input_layernorm"), f"{b}.qkv").unflatten(-1, (heads + 2 * key_heads, -1))
            query, key, value = parts.transpose(1, 2).split([heads, key_heads, key_heads], dim=1)
            mixed = functional.scaled_dot_product_attention(turned(query), turned(key), value, is_causal=True,
                                                            enable_gqa=True)
            x = x + linear(mixed.transpose(1, 2).flatten(2), f"{b}.self_attn.o_proj")
            gate, up = linear(norm(x, f"{b}.post_attention_layernorm"), f"{b}.gate_up").chunk(2, dim=-1)
            x = x + linear(functional.silu(gate) * up, f"{b}.mlp.down_proj")
        head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
        return next_token_loss(functional.linear(norm(x, "model.norm"), head), labels)


MODELS = {"gpt2": Gpt2, "bert": Bert, "llama": Llama, "qwen2": Llama}


def join(weights, name, parts):
    """Joins the weights of several projections of one input, so that one product computes them."""
    for kind in ("weight", "bias"):
        if f"{parts[0]}.{kind}" in weights:
            weights[f"{name}.{kind}"] = torch.cat([weights.pop(f"{part}.{kind}") for part in parts])


def attention(projected, heads, is_causal=False, mask=None):
    """Computes attention: [samples, tokens, 3 x hidden] -> [samples, tokens, hidden]."""
    samples, tokens, width = projected.shape
    query, key, value = projected.view(samples, tokens, 3, heads, width // 3 // heads).permute(2, 0, 3, 1, 4)
    mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=is_causal)
    return mixed.transpose(1, 2).reshape(samples, tokens, width // 3)


def next_token_loss(logits, labels):
    return functional.cross_entropy(logits.flatten(0, -2).float(), labels.flatten(), ignore_index=NO_LABEL)


def class_loss(logits, labels):
    return functional.cross_entropy(logits.float(), labels)
