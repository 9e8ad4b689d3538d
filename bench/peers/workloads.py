"""Workloads: a model of transformers, and samples as batches of tensors.

A workload has `train` and `test` (sample numbers), `length(sample)` in tokens, `batch(samples)` (the keyword arguments
of the model's forward, padded to the longest of these samples), `model()` and `correct(logits, batch)`.
"""
import pathlib

import order
import torch
import transformers

HELD_OUT = 0.2
TEST_BATCH = 64
IGNORED = -100  # the label that cross entropy ignores


class Texts:
    """A table of texts and labels for BERT, tab-separated, with the header text, label."""

    def __init__(self, folder, data, seed, max_tokens=128):
        self.folder = folder
        with open(data, encoding="utf-8", newline="\n") as file:
            header, *rows = (line.rstrip("\r\n").split("\t") for line in file)
        if header != ["text", "label"]:
            raise SystemExit(f"{data}:1: the header must be text, tab, label; is {header}: write it by "
                             "scripts/debian-sections")
        self.names = sorted({label for _, label in rows})
        self.labels = [self.names.index(label) for _, label in rows]
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.ids = tokenizer([text for text, _ in rows], truncation=True, max_length=max_tokens)["input_ids"]
        self.train, self.test = order.hold_out(self.labels, HELD_OUT, seed)

    def model(self):
        return transformers.BertForSequenceClassification.from_pretrained(self.folder)

    def length(self, sample):
        return len(self.ids[sample])

    def batch(self, samples):
        rows = [torch.tensor(self.ids[sample]) for sample in samples]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        lengths = torch.tensor([len(row) for row in rows])
        mask = (torch.arange(ids.shape[1]) < lengths[:, None]).long()
        return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([self.labels[s] for s in samples])}

    def correct(self, logits, batch):
        return int((logits.argmax(-1) == batch["labels"]).sum()), len(batch["labels"])


class Pictures:
    """CIFAR-10's binary records for ViT."""

    def __init__(self, folder, data, seed):
        self.folder = folder
        content = torch.frombuffer(bytearray(pathlib.Path(data).read_bytes()), dtype=torch.uint8).view(-1, 3073)
        self.labels = content[:, 0].tolist()
        self.pixels = content[:, 1:].reshape(-1, 3, 32, 32)
        self.train, self.test = order.hold_out(self.labels, HELD_OUT, seed)

    def model(self):
        return transformers.ViTForImageClassification.from_pretrained(self.folder)

    def length(self, sample):
        return 1

    def batch(self, samples):
        pixels = self.pixels[samples].float().div_(127.5).sub_(1)
        return {"pixel_values": pixels, "labels": torch.tensor([self.labels[sample] for sample in samples])}

    correct = Texts.correct


class PlainText:
    """Blocks of one text for GPT-2, which learns the next token; the text's end is held out."""

    def __init__(self, folder, data, seed, tokens=64):
        self.folder = folder
        text = pathlib.Path(data).read_text(encoding="utf-8")
        ids = torch.tensor(transformers.AutoTokenizer.from_pretrained(folder)(text)["input_ids"])
        self.blocks = ids[: len(ids) // tokens * tokens].view(-1, tokens)
        first_test = len(self.blocks) - int(len(self.blocks) * HELD_OUT + 0.5)
        self.train, self.test = list(range(first_test)), list(range(first_test, len(self.blocks)))

    def model(self):
        return transformers.GPT2LMHeadModel.from_pretrained(self.folder)

    def length(self, sample):
        return self.blocks.shape[1]

    def batch(self, samples):
        ids = self.blocks[samples]
        return {"input_ids": ids, "labels": ids}

    def correct(self, logits, batch):
        return int((logits[:, :-1].argmax(-1) == batch["labels"][:, 1:]).sum()), batch["labels"][:, 1:].numel()


def test_batches(workload):
    """Batches of the held-out samples, grouped by similar length."""
    by_length = sorted(workload.test, key=workload.length)
    for begin in range(0, len(by_length), TEST_BATCH):
        yield workload.batch(by_length[begin:begin + TEST_BATCH])


KINDS = {"texts": Texts, "pictures": Pictures, "plain-text": PlainText}
