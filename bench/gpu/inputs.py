"""Synthetic models and data from fixed seeds, so that nothing is fetched. The folders have no weights: `frostpipe
train` initializes them at random."""
import json
import random
from dataclasses import dataclass

from byte_alphabet import symbols_of_bytes

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LABELS = 8
SHARE_TO_TRAIN = 0.8


@dataclass(frozen=True)
class Job:
    """A model and its training. Texts have `tokens` tokens each, or up to that many if `varies`."""

    name: str
    config: dict
    tokens: int
    batch: int
    steps: int
    varies: bool = False
    epochs: int = 1  # passes over the data that the steps make
    learning_rate: float = 1e-4

    @property
    def reads_blocks(self):
        """True if the job learns the next tokens of blocks of text; false if it learns labels of texts."""
        return self.config["model_type"] != "bert"

    @property
    def data(self):
        return f"{self.name}.{'txt' if self.reads_blocks else 'tsv'}"

    @property
    def hidden(self):
        return self.config["n_embd" if "n_embd" in self.config else "hidden_size"]

    @property
    def num_samples(self):
        return int(self.batch * self.steps / self.epochs / SHARE_TO_TRAIN + 1)


def bert(layers, hidden, vocabulary, positions=512):
    return {"model_type": "bert", "hidden_size": hidden, "num_hidden_layers": layers,
            "num_attention_heads": max(2, hidden // 64), "intermediate_size": 4 * hidden,
            "max_position_embeddings": positions, "vocab_size": vocabulary, "type_vocab_size": 2,
            "layer_norm_eps": 1e-12, "hidden_act": "gelu"}


def gpt2(layers, hidden, vocabulary, positions):
    return {"model_type": "gpt2", "n_embd": hidden, "n_layer": layers, "n_head": max(2, hidden // 64),
            "n_positions": positions, "vocab_size": vocabulary, "activation_function": "gelu_new"}


def qwen2(layers, hidden, heads, key_heads, inner, vocabulary, positions):
    return {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": hidden,
            "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": key_heads,
            "intermediate_size": inner, "vocab_size": vocabulary, "max_position_embeddings": positions,
            "rms_norm_eps": 1e-6, "rope_theta": 1e6, "tie_word_embeddings": True, "hidden_act": "silu"}


FULL = {
    "quickstart": Job("quickstart", bert(6, 384, 30522) | {"num_attention_heads": 12}, 64, 64, 120,
                      varies=True, epochs=4, learning_rate=5e-4),
    "gpt2": Job("gpt2-124m", gpt2(12, 768, 50257, 1024), 1024, 8, 30),
    "bert": Job("bert-large", bert(24, 1024, 30522), 128, 32, 20),
    "llama": Job("qwen2.5-0.5b", qwen2(24, 896, 14, 2, 4864, 151936, 32768), 512, 8, 15),
    "mixed": Job("bert-large-mixed", bert(24, 1024, 30522), 128, 32, 20, varies=True),
    "four_ranks": Job("four-ranks", gpt2(4, 256, 512, 128), 128, 16, 20),
}
SMALL = {
    "quickstart": Job("quickstart", bert(4, 32, 300, 64), 24, 16, 48, varies=True, epochs=4, learning_rate=5e-3),
    "gpt2": Job("gpt2-small", gpt2(2, 64, 300, 64), 64, 8, 12),
    "bert": Job("bert-small", bert(2, 64, 300, 64), 32, 8, 12),
    "llama": Job("qwen2-small", qwen2(2, 64, 2, 1, 96, 300, 64), 48, 8, 12),
    "mixed": Job("bert-small-mixed", bert(2, 64, 300, 64), 32, 8, 12, varies=True),
    "four_ranks": Job("four-ranks", gpt2(3, 32, 300, 32), 32, 8, 6),
}
SIZES = {"full": FULL, "small": SMALL}


def write_model(folder, job):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(job.config), encoding="utf-8")
    if job.reads_blocks:
        tokens = [*symbols_of_bytes(), "<|endoftext|>"]
        (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
        (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
        return
    words = [f"word{i}" for i in range(job.config["vocab_size"] - len(SPECIAL))]
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in [*SPECIAL, *words]), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": true}\n',
                                                  encoding="utf-8")


def write_data(path, job):
    draw, num_samples = random.Random(1), job.num_samples
    if job.reads_blocks:
        letters = "abcdefghijklmnopqrstuvwxyz    \n"
        path.write_text("".join(draw.choices(letters, k=num_samples * job.tokens)), encoding="utf-8")
        return
    rows = ["text\tlabel\n"]
    for i in range(num_samples):
        label, count = i % LABELS, draw.randint(3, job.tokens - 2) if job.varies else job.tokens
        # Half of the words occur with only one label, so that there is something to learn.
        words = [f"word{draw.randrange(10) * LABELS + label if draw.random() < 0.5 else 80 + draw.randrange(200)}"
                 for _ in range(count)]
        rows.append(f"{' '.join(words)}\tlabel{label}\n")
    path.write_text("".join(rows), encoding="utf-8")


def write_all(folder, jobs):
    """Writes a folder with the model and data of each job; existing ones are kept."""
    for job in jobs.values():
        if (folder / job.data).exists():
            continue
        write_model(folder / job.name, job)
        half = folder / f"{job.data}.half"
        write_data(half, job)
        half.rename(folder / job.data)  # only when it is complete
