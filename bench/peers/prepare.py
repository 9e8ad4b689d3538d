"""Writes the inputs of the runs into a folder: models, with random weights from a fixed seed except MiniLM's, and
synthetic data of the right shapes. frostpipe and its peers then start from the same weights.

  minilm/          MiniLM with a classifier for the labels of the sections
  long-texts.tsv   random words, more than fit into 128 tokens
  bert-256/, bert-768/, pieces.tsv  BERT of four blocks with few tokens (so that blocks take the time), and random texts
  vit/, pictures.bin             a small ViT, and random pictures in CIFAR-10's format
  gpt2/, plain-text.txt          a small GPT-2 that reads bytes, with GPT-2's 50,257 tokens, and random letters
  roberta/, modernbert/          encoders of MiniLM's size, with its tokenizer
  smollm2, chat-blocks.txt       a link to SmolLM2-135M, if --smollm2 names it, and the messages of --chats as text
"""
import argparse
import json
import pathlib
import random
import shutil
import sys

import torch
import transformers

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from byte_alphabet import symbols_of_bytes  # noqa: E402

TOKENIZER_FILES = ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
WORDS_PER_TEXT = 140  # each has at least one token
TOKENS_PER_BLOCK = 64
WORDS = [f"word{i}" for i in range(1000)]  # vocabulary of the small BERTs
SHARE_TO_TRAIN = 0.8
SMALLER_BATCH = 8  # mini-batches of the small BERTs have that many times fewer samples than the largest of rows.py


def labels_of(sections):
    with open(sections, encoding="utf-8") as file:
        return sorted({line.rstrip("\n").split("\t")[1] for line in list(file)[1:]})


def write_minilm(source, labels, folder):
    numbered = dict(enumerate(labels))
    config = transformers.AutoConfig.from_pretrained(
        source, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, id2label=numbered,
        label2id={label: number for number, label in numbered.items()}, problem_type="single_label_classification")
    transformers.BertForSequenceClassification.from_pretrained(source, config=config).save_pretrained(folder)
    for name in TOKENIZER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)


def write_bert(hidden, labels, folder):
    numbered = dict(enumerate(labels))
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    config = transformers.BertConfig(
        vocab_size=len(tokens), hidden_size=hidden, num_hidden_layers=4, num_attention_heads=hidden // 64,
        intermediate_size=4 * hidden, max_position_embeddings=128, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, id2label=numbered,
        label2id={label: number for number, label in numbered.items()}, problem_type="single_label_classification")
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer", "do_lower_case": true}\n',
                                                  encoding="utf-8")


def write_encoder(source, config, numbered, folder):
    """Writes a model of MiniLM's size with random weights and MiniLM's tokenizer."""
    config.update({"id2label": numbered, "label2id": {label: number for number, label in numbered.items()},
                   "problem_type": "single_label_classification"})
    transformers.AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    shutil.copyfile(source / "tokenizer.json", folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}\n', encoding="utf-8")


def write_encoders(source, labels, out):
    size = {"vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12,
            "pad_token_id": 0}
    numbered = dict(enumerate(labels))
    write_encoder(source, transformers.RobertaConfig(
        **size, intermediate_size=1536, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        max_position_embeddings=514, type_vocab_size=1, bos_token_id=101, eos_token_id=102), numbered, out / "roberta")
    write_encoder(source, transformers.ModernBertConfig(
        **size, intermediate_size=576, bos_token_id=101, eos_token_id=102, cls_token_id=101, sep_token_id=102),
        numbered, out / "modernbert")


def write_chat_blocks(chats, path):
    with open(chats, encoding="utf-8") as file:
        said = (message["content"] for line in file for message in json.loads(line)["messages"])
        path.write_text("\n".join(said) + "\n", encoding="utf-8")


def words_of(source):
    return [word for word in (source / "vocab.txt").read_text(encoding="utf-8").split("\n")
            if word.isascii() and word.isalpha() and len(word) > 2]


def write_long_texts(words, labels, num_samples, path):
    draw = random.Random(1)
    rows = (f"{' '.join(draw.choices(words, k=WORDS_PER_TEXT))}\t{labels[i % len(labels)]}\n"
            for i in range(num_samples))
    path.write_text("text\tlabel\n" + "".join(rows), encoding="utf-8")


def write_vit(folder):
    config = transformers.ViTConfig(hidden_size=192, num_hidden_layers=6, num_attention_heads=3, intermediate_size=768,
                                    image_size=32, patch_size=4, num_labels=10, hidden_dropout_prob=0.0,
                                    attention_probs_dropout_prob=0.0)
    transformers.ViTForImageClassification(config).save_pretrained(folder)


def write_pictures(num_samples, path):
    draw = random.Random(2)
    path.write_bytes(b"".join(bytes([i % 10]) + draw.randbytes(3 * 32 * 32) for i in range(num_samples)))


def write_gpt2(folder):
    config = transformers.GPT2Config(n_embd=128, n_layer=4, n_head=4, n_positions=128, vocab_size=50257,
                                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=256,
                                     eos_token_id=256, use_cache=False)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    tokens = [*symbols_of_bytes(), "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "GPT2Tokenizer"}\n', encoding="utf-8")


def write_plain_text(num_blocks, path):
    draw = random.Random(3)
    letters = "abcdefghijklmnopqrstuvwxyz    \n"
    path.write_text("".join(draw.choices(letters, k=num_blocks * TOKENS_PER_BLOCK)), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minilm", type=pathlib.Path, required=True, help="folder of MiniLM")
    parser.add_argument("--sections", required=True, help="texts and labels for the classifier")
    parser.add_argument("--samples", type=int, required=True, help="number of synthetic training samples")
    parser.add_argument("--smollm2", type=pathlib.Path, help="folder of SmolLM2-135M")
    parser.add_argument("--chats", help="chats on which SmolLM2 trains")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    labels, count = labels_of(options.sections), int(options.samples / SHARE_TO_TRAIN + 0.5)
    write_minilm(options.minilm, labels, options.out / "minilm")
    write_long_texts(words_of(options.minilm), labels, count, options.out / "long-texts.tsv")
    write_long_texts(WORDS, labels, count // SMALLER_BATCH, options.out / "pieces.tsv")
    write_vit(options.out / "vit")
    write_pictures(count, options.out / "pictures.bin")
    write_gpt2(options.out / "gpt2")
    write_plain_text(count, options.out / "plain-text.txt")
    for hidden in (256, 768):
        write_bert(hidden, labels, options.out / f"bert-{hidden}")
    write_encoders(options.minilm, labels, options.out)
    if options.smollm2:
        (options.out / "smollm2").unlink(missing_ok=True)
        (options.out / "smollm2").symlink_to(options.smollm2)
        write_chat_blocks(options.chats, options.out / "chat-blocks.txt")


main()
