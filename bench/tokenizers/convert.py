"""Tokenizers as their makers publish them, turned into the content of tokenizer.json as transformers 5.23 does. It
needs only Python.

  GPT-2        encoder.json and vocab.bpe (GPT2Converter)
  tiktoken     a line of base64 and rank for each token: Llama 3's tokenizer.model (TikTokenConverter)
  tekken       the same as JSON: Mistral's tekken.json (MistralConverter)
  SentencePiece  BPE with byte fallback: Mistral's tokenizer.model.v1 to v7 (LlamaConverter)
"""
import base64
import json
import struct

from byte_alphabet import symbols_of_bytes
from reference.protobuf import fields_of

LLAMA3_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
                r"\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3_NAMED = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
                "<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>",
                "<|eot_id|>", "<|python_tag|>", "<|image|>"]
# The special tokens of a tekken.json that does not list them.
TEKKEN_NAMED = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
                "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]",
                "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"]
CONTROL, USER_DEFINED = 3, 4  # types of SentencePiece's pieces
SPACE = "\u2581"
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
BYTE_DECODER = {**BYTE_LEVEL, "add_prefix_space": True}
BYTE_OFFSETS = {**BYTE_DECODER, "trim_offsets": False}  # as post-processor


def special(token, i, is_special=True):
    return {"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": is_special}


def begins_with(token, i):
    """Returns a post-processor that puts a token before each text."""
    first, second = ([{"SpecialToken": {"id": token, "type_id": k}}, {"Sequence": {"id": name, "type_id": k}}]
                     for k, name in enumerate("AB"))
    return {"type": "TemplateProcessing", "single": first, "pair": first + second,
            "special_tokens": {token: {"id": token, "ids": [i], "tokens": [token]}}}


def whole(model, **parts):
    """Returns the content of tokenizer.json."""
    empty = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
             "pre_tokenizer": None, "post_processor": None, "decoder": None}
    defaults = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    return {**empty, **parts, "model": {**defaults, **model}}


def gpt2(encoder, merges):
    """Takes the texts of both files."""
    vocab = json.loads(encoder)
    pairs = [line.split(" ") for line in merges.splitlines()[1:] if line]
    end = "<|endoftext|>"
    return whole({"vocab": vocab, "merges": pairs, "continuing_subword_prefix": "", "end_of_word_suffix": ""},
                 added_tokens=[special(end, vocab[end])], pre_tokenizer=BYTE_LEVEL, decoder=BYTE_DECODER,
                 post_processor=BYTE_OFFSETS)


def byte_pairs(ranks):
    """Returns vocab and merges of tokens (bytes -> rank): a token is merged from every two tokens that make it."""
    symbols = symbols_of_bytes()
    spelt = {token: "".join(symbols[byte] for byte in token) for token in ranks}
    merges = []
    for token, _ in sorted(ranks.items(), key=lambda item: item[1]):
        pairs = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
        merges += sorted(pairs, key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
    return {spelt[token]: rank for token, rank in ranks.items()}, [[spelt[a], spelt[b]] for a, b in merges]


def split_by(pattern):
    """Returns the pre-tokenizer of byte-level tokenizers whose words a regular expression finds."""
    return {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
        {**BYTE_LEVEL, "use_regex": False}]}


def llama3(model):
    """Takes the bytes of tokenizer.model."""
    ranks = {}
    for line in model.splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    vocab, merges = byte_pairs(ranks)
    reserved = [f"<|reserved_special_token_{2 + i}|>" for i in range(256 - len(LLAMA3_NAMED))]
    added = [special(token, len(ranks) + i) for i, token in enumerate(LLAMA3_NAMED + reserved)]
    return whole({"vocab": vocab, "merges": merges, "ignore_merges": True}, added_tokens=added,
                 pre_tokenizer=split_by(LLAMA3_WORDS), decoder=BYTE_DECODER,
                 post_processor={"type": "Sequence",
                                 "processors": [BYTE_OFFSETS, begins_with(LLAMA3_NAMED[0], len(ranks))]})


def tekken(content):
    """Takes the text of tekken.json. Special tokens have the first ids."""
    content = json.loads(content)
    config = content["config"]
    named = [token["token_str"] for token in content.get("special_tokens") or []] or TEKKEN_NAMED
    first = config["default_num_special_tokens"]
    named += [f"<SPECIAL_{i}>" for i in range(len(named), first)]
    kept = content["vocab"][:config["default_vocab_size"] - first]
    vocab, merges = byte_pairs({base64.b64decode(token["token_bytes"]): i for i, token in enumerate(kept)})
    vocab = {**{token: i for i, token in enumerate(named)}, **{token: first + i for token, i in vocab.items()}}
    return whole({"vocab": vocab, "merges": merges, "ignore_merges": True},
                 added_tokens=[special(token, i) for i, token in enumerate(named)],
                 pre_tokenizer=split_by(config["pattern"]), decoder=BYTE_DECODER,
                 post_processor=BYTE_OFFSETS)


def sentencepiece(model, splits_off_spaces):
    """Takes the bytes of SentencePiece's model. Text begins with a space, which is prepended by a normalizer, or if
    `splits_off_spaces` by a pre-tokenizer, to the first part alone: transformers calls the former legacy."""
    pieces = [piece_of(message) for number, message in fields_of(model) if number == 1]
    vocab = {piece: i for i, (piece, _, _) in enumerate(pieces)}
    merges = []
    for piece, score, _ in pieces:
        pairs = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in vocab and piece[i:] in vocab]
        merges += [(score, *pair) for pair in sorted(pairs, key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))]
    merges.sort(key=lambda merge: (merge[0], len(merge[1]), len(merge[2])), reverse=True)
    added = [special(piece, i, kind == CONTROL or i == 0) for i, (piece, _, kind) in enumerate(pieces)
             if kind in (CONTROL, USER_DEFINED) or i == 0]
    space = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    prepends = {"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": SPACE}, space]}}
    splits = {"pre_tokenizer": {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first", "split": False}}
    return whole({"vocab": vocab, "merges": [[a, b] for _, a, b in merges], "unk_token": pieces[0][0], "fuse_unk": True,
                  "byte_fallback": True},
                 added_tokens=added, **(splits if splits_off_spaces else prepends),
                 post_processor=begins_with(pieces[1][0], 1),
                 decoder={"type": "Sequence", "decoders": [
                     {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"},
                     {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})


def piece_of(message):
    """Returns text, score and type of a piece of SentencePiece."""
    fields = dict(fields_of(message))
    return str(fields[1], "utf-8"), struct.unpack("<f", fields.get(2, bytes(4)))[0], fields.get(3, 1)
