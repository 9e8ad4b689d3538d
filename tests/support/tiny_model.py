"""A tiny random BERT in a Hugging Face folder, and labelled text that it can learn. Standard library only.

    python3 tiny_model.py FOLDER     writes FOLDER/model/ and FOLDER/data.tsv
"""

import array
import json
import math
import random
import struct
import sys
from pathlib import Path

NUM_BLOCKS = 4
NUM_HEADS = 2
HIDDEN = 32
INTERMEDIATE = 64
MAX_POSITIONS = 32
SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

LABELS = ["animals", "food", "tools", "weather"]
WORDS_PER_LABEL = 30
NUM_COMMON_WORDS = 80


def words_of(label_number):
    """Words that distinguish one label from the others; they are made up, so that only the data give them meaning."""
    syllables = ["ba", "de", "fi", "go", "lu", "ma"]
    return [f"{syllables[label_number % 6]}{syllables[i % 6]}{syllables[i // 6]}{'nrstx'[label_number // 6]}"
            for i in range(WORDS_PER_LABEL)]


def common_words():
    return [f"the{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(NUM_COMMON_WORDS)]


def vocabulary():
    words = [word for label in range(len(LABELS)) for word in words_of(label)]
    letters = [chr(97 + i) for i in range(26)]
    return SPECIAL_TOKENS + list("\"'.,") + common_words() + words + letters + ["##" + letter for letter in letters]


def config(num_blocks=NUM_BLOCKS):
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": HIDDEN,
        "intermediate_size": INTERMEDIATE,
        "num_attention_heads": NUM_HEADS,
        "num_hidden_layers": num_blocks,
        "max_position_embeddings": MAX_POSITIONS,
        "type_vocab_size": 2,
        "vocab_size": len(vocabulary()),
        "layer_norm_eps": 1e-12,
        "hidden_dropout_prob": 0.1,
        "pad_token_id": 0,
        "position_embedding_type": "absolute",
    }


def shapes(num_blocks=NUM_BLOCKS):
    """Names and shapes of Hugging Face's BertModel, in its order."""
    found = {
        "embeddings.word_embeddings.weight": [len(vocabulary()), HIDDEN],
        "embeddings.position_embeddings.weight": [MAX_POSITIONS, HIDDEN],
        "embeddings.token_type_embeddings.weight": [2, HIDDEN],
        "embeddings.LayerNorm.weight": [HIDDEN],
        "embeddings.LayerNorm.bias": [HIDDEN],
    }
    for block in range(num_blocks):
        place = f"encoder.layer.{block}."
        for name, rows, columns in [
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", INTERMEDIATE, HIDDEN),
            ("output.dense", HIDDEN, INTERMEDIATE),
        ]:
            found[f"{place}{name}.weight"] = [rows, columns]
            found[f"{place}{name}.bias"] = [rows]
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            found[f"{place}{name}.weight"] = [HIDDEN]
            found[f"{place}{name}.bias"] = [HIDDEN]
    return found


def random_tensors(num_blocks=NUM_BLOCKS, seed=1):
    """{name: (shape, array of floats)}"""
    source = random.Random(seed)
    tensors = {}
    for name, shape in shapes(num_blocks).items():
        middle = 1.0 if name.endswith("LayerNorm.weight") else 0.0
        width = 0.1 if len(shape) == 2 else 0.02
        if ".self.value." in name or ".attention.output.dense." in name:
            width *= 3  # so that the first token, which the classifier uses, attends to the others
        tensors[name] = (shape, array.array("f", (source.gauss(middle, width) for _ in range(math.prod(shape)))))
    hint_at_labels(tensors["embeddings.word_embeddings.weight"][1])
    return tensors


def hint_at_labels(word_embeddings):
    """As in a pretrained model, words of one label have similar embeddings."""
    places = {word: i for i, word in enumerate(vocabulary())}
    for label in range(len(LABELS)):
        for word in words_of(label):
            for i in range(label * HIDDEN // len(LABELS), (label + 1) * HIDDEN // len(LABELS)):
                word_embeddings[places[word] * HIDDEN + i] += 0.2


def write_safetensors(path, tensors):
    """8 bytes of header length, little-endian; the header as JSON; the tensors' bytes."""
    header, chunks, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name, (shape, values) in tensors.items():
        chunk = array.array("f", values)
        if sys.byteorder == "big":
            chunk.byteswap()
        data = chunk.tobytes()
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [offset, offset + len(data)]}
        chunks.append(data)
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def read_safetensors(path):
    """{name: (shape, array of floats)} of a file that obeys every rule of the format, else an AssertionError."""
    content = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    data = content[8 + length :]
    metadata = header.pop("__metadata__", {})
    assert all(isinstance(value, str) for value in metadata.values()), metadata
    tensors, ranges = {}, []
    for name, entry in header.items():
        assert set(entry) == {"dtype", "shape", "data_offsets"}, entry
        assert entry["dtype"] == "F32", entry
        begin, end = entry["data_offsets"]
        assert end - begin == 4 * math.prod(entry["shape"]), (name, entry)
        values = array.array("f")
        values.frombytes(data[begin:end])
        if sys.byteorder == "big":
            values.byteswap()
        tensors[name] = (entry["shape"], values)
        ranges.append((begin, end))
    ranges.sort()
    ends = [0] + [end for _, end in ranges]
    assert [begin for begin, _ in ranges] == ends[:-1], "tensors leave no gap and do not overlap"
    assert ends[-1] == len(data), "nothing follows the last tensor"
    return tensors


def write_model(folder, num_blocks=NUM_BLOCKS, seed=1):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(num_blocks), indent=2) + "\n")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"do_lower_case": True, "tokenizer_class": "BertTokenizer"}) + "\n")
    (folder / "vocab.txt").write_text("".join(token + "\n" for token in vocabulary()))
    write_safetensors(folder / "model.safetensors", random_tensors(num_blocks, seed))
    return folder


def samples(num_samples, seed=1, labels=None):
    """(text, label) pairs: common words, and two or three that belong to the label."""
    labels = labels or LABELS
    source = random.Random(seed)
    rows = []
    for i in range(num_samples):
        number = i % len(labels)
        words = (source.choices(words_of(number), k=source.randint(2, 3))
                 + source.choices(common_words(), k=source.randint(1, 7)))
        source.shuffle(words)
        rows.append((" ".join(words), labels[number]))
    source.shuffle(rows)
    return rows


def write_data(path, num_samples=200, seed=1, labels=None):
    path = Path(path)
    path.write_text("text\tlabel\n"
                    + "".join(f"{text}\t{label}\n" for text, label in samples(num_samples, seed, labels)))
    return path


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write_model(Path(sys.argv[1]) / "model")
    write_data(Path(sys.argv[1]) / "data.tsv")
