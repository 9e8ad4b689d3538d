"""Workloads: a model of transformers, and samples as batches of tensors.

A workload has `train` and `test` (sample numbers), `length(sample)` in tokens, `batch(samples)` (the keyword arguments
of the model's forward, padded to the longest of these samples), `model()`, `loss(model, batch)` and
`correct(logits, batch)`.
"""
import json
import pathlib

import order
import torch
import transformers

HELD_OUT = 0.2
TEST_BATCH = 64
IGNORED = -100  # the label that cross entropy ignores


class Workload:
    def loss(self, model, batch):
        return model(**batch).loss


class Texts(Workload):
    """A table of texts and labels for an encoder, tab-separated, with the header text, label."""

    def __init__(self, folder, data, seed, max_tokens=128):
        self.folder = folder
        with open(data, encoding="utf-8", newline="\n") as file:
            header, *rows = (line.rstrip("\r\n").split("\t") for line in file)
        if header != ["text", "label"]:
            raise SystemExit(f"{data}:1: must have the header text, tab, label; is {header}; "
                             "scripts/debian-sections writes such a file")
        self.names = sorted({label for _, label in rows})
        self.labels = [self.names.index(label) for _, label in rows]
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.ids = tokenizer([text for text, _ in rows], truncation=True, max_length=max_tokens)["input_ids"]
        self.train, self.test = order.hold_out(self.labels, HELD_OUT, seed)

    def model(self):
        return transformers.AutoModelForSequenceClassification.from_pretrained(self.folder)

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


class Pictures(Workload):
    """Pictures for ViT, in the binary records of CIFAR-10."""

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


class PlainText(Workload):
    """Blocks of one text for a decoder, which learns the next token; the text's end is held out."""

    def __init__(self, folder, data, seed, tokens=64):
        self.folder = folder
        text = pathlib.Path(data).read_text(encoding="utf-8")
        ids = torch.tensor(transformers.AutoTokenizer.from_pretrained(folder)(text)["input_ids"])
        self.blocks = ids[: len(ids) // tokens * tokens].view(-1, tokens)
        first_test = len(self.blocks) - int(len(self.blocks) * HELD_OUT + 0.5)
        self.train, self.test = list(range(first_test)), list(range(first_test, len(self.blocks)))

    def model(self):
        return transformers.AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32)

    def length(self, sample):
        return self.blocks.shape[1]

    def batch(self, samples):
        ids = self.blocks[samples]
        return {"input_ids": ids, "labels": ids}

    def correct(self, logits, batch):
        return int((logits[:, :-1].argmax(-1) == batch["labels"][:, 1:]).sum()), batch["labels"][:, 1:].numel()


class Chats(Workload):
    """Chats of the ChatML kind in JSON Lines for a decoder, which learns the assistant's messages and the token that
    ends each."""

    TURN, END = "<|im_start|>assistant\n", "<|im_end|>"

    def __init__(self, folder, data, seed, max_tokens=128):
        self.folder = folder
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        with open(data, encoding="utf-8") as file:
            texts = [tokenizer.apply_chat_template(json.loads(line)["messages"], tokenize=False) for line in file]
        encoded = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True)
        self.ids, self.labels = [], []
        for text, ids, places in zip(texts, encoded["input_ids"], encoded["offset_mapping"]):
            learned = self.learned(text)
            kept = [id if any(begin <= place[0] < end for begin, end in learned) else IGNORED
                    for id, place in zip(ids, places)]
            self.ids.append(ids[:max_tokens])
            self.labels.append(kept[:max_tokens])
        self.train, self.test = order.hold_out([0] * len(self.ids), HELD_OUT, seed)

    def learned(self, text):
        """Returns begin and end of each of the assistant's turns, including the token that ends it."""
        found, end = [], 0
        while (turn := text.find(self.TURN, end)) >= 0:
            begin = turn + len(self.TURN)
            end = text.index(self.END, begin) + len(self.END)
            found.append((begin, end))
        return found

    def model(self):
        """The token that ends a turn is SmolLM2's padding too, and transformers drops the gradient of the padding
        token's row in the look-up; `frostpipe train` learns it, so it is learned here as well."""
        model = transformers.AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32)
        model.get_input_embeddings().padding_idx = None
        return model

    def length(self, sample):
        return len(self.ids[sample])

    def batch(self, samples):
        def padded(rows, value):
            return torch.nn.utils.rnn.pad_sequence([torch.tensor(rows[sample]) for sample in samples],
                                                   batch_first=True, padding_value=value)
        lengths = torch.tensor([self.length(sample) for sample in samples])
        ids = padded(self.ids, 0)
        mask = (torch.arange(ids.shape[1]) < lengths[:, None]).long()
        return {"input_ids": ids, "attention_mask": mask, "labels": padded(self.labels, IGNORED)}

    def loss(self, model, batch):
        """Returns the loss of `frostpipe train`: the mean over samples of the mean over the learned tokens of each."""
        labels = batch["labels"][:, 1:]
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, :-1]
        losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(),
                                                   ignore_index=IGNORED, reduction="none").view(labels.shape)
        return (losses.sum(1) / (labels != IGNORED).sum(1)).mean()

    def correct(self, logits, batch):
        labels = batch["labels"][:, 1:]
        learned = labels != IGNORED
        return int((logits[:, :-1].argmax(-1) == labels)[learned].sum()), int(learned.sum())


def test_batches(workload):
    """Yields batches of the held-out samples, grouped by similar length."""
    by_length = sorted(workload.test, key=workload.length)
    for begin in range(0, len(by_length), TEST_BATCH):
        yield workload.batch(by_length[begin:begin + TEST_BATCH])


KINDS = {"texts": Texts, "pictures": Pictures, "plain-text": PlainText, "chats": Chats}
