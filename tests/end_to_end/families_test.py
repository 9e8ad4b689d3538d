"""A user's workflow with every family: a config without weights, a plan, two ranks, freezing, and the trained folder
scored by another process. Oracles: evaluate gives the run's results for its test samples; a saved folder has exactly
its family's tensors; a run with the cache and a change of layout ends as the undisturbed one."""

import csv
import json
import random
import shutil
import struct
import sys
import unittest
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import tiny_model
from families import BERT, GPT2, VIT, FamilyTest

COLOURS = {"blue": (30, 40, 200), "green": (40, 190, 50), "red": (210, 30, 40)}


def write_png(path, side, colour, noise):
    """A picture of one colour with some noise."""
    rows = b"".join(b"\0" + bytes(min(255, max(0, value + noise.randrange(-20, 21))) for _ in range(side)
                                  for value in colour) for _ in range(side))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(rows)),
              (b"IEND", b"")]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n"
                     + b"".join(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
                                for kind, data in chunks))


def write_pictures(folder, per_label):
    noise = random.Random(3)
    for name, colour in COLOURS.items():
        for i in range(per_label):
            write_png(folder / name / f"{i:03}.png", 8 if i % 3 else 12, colour, noise)  # some are resized


def write_questions(path, count):
    """The answer is the word of the context that the question names after "the"."""
    words = [word for label in range(4) for word in tiny_model.words_of(label)][:12]
    numbers = random.Random(5)
    paragraphs = []
    for i in range(count):
        chosen = numbers.sample(words, 4)
        context = " ".join(chosen)
        answer = chosen[i % 4]
        paragraphs.append({"context": context,
                           "qas": [{"id": f"q{i}", "question": answer,
                                    "answers": [{"text": answer, "answer_start": context.index(answer)}]}]})
    path.write_text(json.dumps({"version": "1.1", "data": [{"title": "made up", "paragraphs": paragraphs}]}))


class FamiliesTest(FamilyTest):
    def test_pictures_with_vit(self):
        self.write_model("vit", VIT, None)
        own = {"image_mean": [0.5, 0.25, 0.5], "image_std": [0.5, 0.5, 0.25], "somebody's": "own"}
        self.write("vit/preprocessor_config.json",
                   {"feature_extractor_type": "ViTFeatureExtractor", "do_center_crop": True, "do_resize": False,
                    "do_normalize": False, "size": 224,
                                                    "resample": 3, "rescale_factor": 1, **own})
        write_pictures(self.folder / "pictures", 24)
        write_pictures(self.folder / "unseen", 8)
        run = self.train_family("vit", "pictures", "--test-data", "unseen", "--label-smoothing", 0.1,
                                "--decay", "cosine")
        self.assertGreater(run["test_accuracy"], 0.9)
        self.assertEqual(run["label_names"], sorted(COLOURS))
        found = json.loads(self.run_tool("evaluate", "--model", "run/model", "--data", "unseen",
                                         "--predictions", "said.csv", "--format", "json").stdout)
        self.assertAlmostEqual(found["value"], run["test_accuracy"], delta=0.05)
        with open(self.folder / "said.csv", newline="") as file:
            said = list(csv.DictReader(file))
        self.assertEqual([(row["picture"], row["label"]) for row in said],
                         [(str(path.relative_to(self.folder)), path.parent.name)
                          for path in sorted((self.folder / "unseen").glob("*/*"))])
        self.assertAlmostEqual(found["value"], sum(row["label"] == row["predicted"] for row in said) / len(said))
        self.assertEqual(self.read("run/model/config.json")["architectures"], ["ViTForImageClassification"])
        self.assertIn("vit.encoder.layer.1.attention.attention.query.weight", self.saved_names())
        # Oracle: the operations in docs/file_formats.md, with transformers' field names; mean, deviation and all other
        # fields are the folder's own.
        computed = {"image_processor_type": "ViTImageProcessor", "do_resize": True, "do_rescale": True,
                    "do_normalize": True, "size": {"height": 8, "width": 8},
                    "resample": 2, "rescale_factor": 1 / 255}
        self.assertEqual(self.read("run/model/preprocessor_config.json"), {**computed, "do_center_crop": False, **own})
        self.check_round_trip("pictures")
        # Pictures that change from epoch to epoch cannot be cached.
        self.run_tool("plan", "--profile", "p.json", "--cluster", "c.json", "--global-batch", 16, "--epochs", 4,
                      "--method", "pipetransformer", "--fix", "pp=2", "--cache", "off", "-o", "off.json")
        (self.folder / "vit/preprocessor_config.json").unlink()
        changing = ("train", self.of_length("off.json", 4), "--data", "pictures", "--flip", "--crop-padding", 1,
                    "--seed", 1)
        self.run_tool(*changing, "-o", "changing", "--checkpoint-every", 2)
        self.assertEqual(self.read("changing/model/preprocessor_config.json"),
                         {**computed, "image_mean": [0.5] * 3, "image_std": [0.5] * 3})  # ViT's own
        self.check_other_pictures_are_not_resumed(changing)
        self.edit("off.json", lambda plan: plan["phases"][0].update(cache={**plan["phases"][0]["cache"], "on": True}))
        self.assertIn("--cache off", self.run_tool("train", "off.json", "--data", "pictures", "-o", "refused",
                                                   "--flip", code=2).stderr)

    def check_other_pictures_are_not_resumed(self, changing):
        """Oracle: with the same pictures, changed in the same way, the same checkpoint is used."""
        resume = ("--resume", "changing/checkpoints", "-o", "resumed")
        shutil.copytree(self.folder / "pictures", self.folder / "others")
        # Same name, label and number of pictures.
        write_png(self.folder / "others/blue/001.png", 12, COLOURS["blue"], random.Random(7))
        for others in (changing[:4] + changing[5:], (*changing[:-3], 2, *changing[-2:]),
                       ("train", "off.json", "--data", "others", *changing[4:])):
            with self.subTest(others):
                done = self.run_tool(*others, *resume, code=1)
                self.assertRegex(done.stderr, r"changing/checkpoints/step-\d+: is of another run: data_fingerprint: .* "
                                              "in the checkpoint, .* now")
        self.run_tool(*changing, *resume)
        self.assertGreater(self.read("resumed/summary.json")["recoveries"][0]["step"], 0)

    def test_questions_with_bert(self):
        self.write_model("bert", BERT, "words")
        self.answer_questions("bert", "BertForQuestionAnswering", 20)

    def test_questions_with_gpt2(self):
        self.write_model("gpt2", {**GPT2, "n_positions": 40}, "bytes")
        self.answer_questions("gpt2", "GPT2ForQuestionAnswering", 40)

    def answer_questions(self, model, architecture, max_tokens):
        window = ("--max-tokens", max_tokens, "--window-overlap", 4)
        write_questions(self.folder / "questions.json", 160)
        write_questions(self.folder / "unseen.json", 40)
        run = self.train_family(model, "questions.json", "--test-data", "unseen.json", epochs=3, samples=window)
        self.assertEqual(run["test_metric"], "F1")
        self.assertEqual([other["name"] for other in run["test_others"]], ["exact match"])
        done = self.run_tool("evaluate", "--model", "run/model", "--data", "unseen.json", *window,
                             "--predictions", "answers.json", "--format", "json")
        found = json.loads(done.stdout)
        self.assertEqual(found["num_questions"], 40)
        self.assertGreaterEqual(found["num_samples"], 40, "windows")
        self.assertAlmostEqual(found["value"], run["test_accuracy"], delta=0.05)
        # Every question is answered by words of its context; the score is computed again.
        answers, hits = self.read("answers.json"), 0
        for paragraph in self.read("unseen.json")["data"][0]["paragraphs"]:
            for question in paragraph["qas"]:
                self.assertIn(answers[question["id"]], paragraph["context"])
                self.assertEqual(answers[question["id"]], answers[question["id"]].strip())
                hits += answers[question["id"]] == question["answers"][0]["text"]
        self.assertAlmostEqual(found["exact_match"], hits / 40, delta=1e-12)
        self.assertEqual(self.read("run/model/config.json")["architectures"], [architecture])
        self.assertIn("qa_outputs.bias", self.saved_names())
        self.check_round_trip("questions.json")

    def test_text_alone_with_gpt2_cuts_the_tie_when_layers_freeze(self):
        self.write_model("gpt2", {**GPT2, "problem_type": "regression"}, "bytes")
        self.write("text.txt", "the cab is at the lab and the crab is in the cab. " * 160)
        run = self.train_family("gpt2", "text.txt", epochs=3, samples=("--max-tokens", 32))
        self.assertEqual(run["test_metric"], "next-token accuracy")
        self.assertGreater(run["test_accuracy"], 0.2)
        self.assertFalse(self.read("run/model/config.json")["tie_word_embeddings"])
        self.assertNotIn("problem_type", self.read("run/model/config.json"))
        self.assertIn("lm_head.weight", self.saved_names())
        self.check_round_trip("text.txt")
        # Names of labels have no meaning for plain text.
        self.edit("run/model/config.json", lambda config: config.update(id2label={"0": "same", "1": "same"}))
        found = json.loads(self.run_tool("evaluate", "--model", "run/model", "--data", "text.txt", "--max-tokens", 32,
                                         "--format", "json").stdout)
        self.assertGreater(found["value"], 0.2)
        refused = self.run_tool("evaluate", "--model", "run/model", "--data", "text.txt", "--predictions", "said.csv",
                                code=1).stderr
        self.assertIn("--predictions: needs data with answers", refused)
        # Without freezing the embeddings remain tied until the end, and one matrix is saved.
        self.run_tool("plan", "--profile", "p.json", "--cluster", "c.json", "--global-batch", 16, "--epochs", 1,
                      "--method", "static", "--fix", "pp=2", "-o", "static2.json")
        self.run_tool("train", "static2.json", "--data", "text.txt", "-o", "tied")
        self.assertTrue(self.read("tied/model/config.json")["tie_word_embeddings"])
        self.assertNotIn("lm_head.weight", tiny_model.read_safetensors(self.folder / "tied/model/model.safetensors"))
        self.check_token_slices()

    def check_token_slices(self):
        """Every step has the loss of whole samples with the same dropout."""
        losses = {}
        contexts = {measurement["key"]["context_tokens"] for measurement in self.read("p.json")["measurements"]}
        self.assertEqual(contexts, {0, 16})
        for name, method, options in [("whole", "static", ("--schedule", "1F1B")),
                                      ("sliced", "static", ("--schedule", "Seq1F1B", "--fix", "slices=3")),
                                      ("terapipe", "terapipe", ("--fix", "m=2"))]:
            self.run_tool("plan", "--profile", "p.json", "--cluster", "c.json", "--global-batch", 16, "--epochs", 1,
                          "--method", method, "--fix", "pp=2", *options, "-o", f"{name}.json")
            self.run_tool("train", f"{name}.json", "--data", "text.txt", "-o", name,
                          "--dropout", 0.1)
            losses[name] = [step["loss"] for step in self.read(f"{name}/summary.json")["steps"]]
        self.assertEqual(self.read("terapipe.json")["phases"][0]["schedule"], "TeraPipe")
        for name in ("sliced", "terapipe"):
            self.assertEqual(len(losses["whole"]), len(losses[name]))
            for whole, sliced in zip(losses["whole"], losses[name]):
                self.assertAlmostEqual(whole, sliced, delta=1e-3)

    def test_labelled_text_with_gpt2_and_dropout(self):
        # There are more rows than tokens, so that the padding token <|endoftext|> is not the last row.
        self.write_model("gpt2",
                         {**GPT2, "n_positions": 128, "vocab_size": 264}, "bytes")
        run = self.train_family("gpt2", "data.tsv", "--dropout", 0.1)
        self.assertEqual(run["label_names"], tiny_model.LABELS)
        self.assertEqual(self.read("run/model/config.json")["pad_token_id"],
                         self.read("gpt2/vocab.json")["<|endoftext|>"])
        self.assertEqual(self.read("run/model/config.json")["problem_type"], "single_label_classification")
        self.check_round_trip("data.tsv")

    def test_no_length_beyond_the_models_positions_is_measured(self):
        """Ten texts that are cut to the model's 24 positions and a short one, each a mini-batch: the 10th and the 90th
        percentile of their lengths are equal, so a second, smaller length must be measured. Without data, 16 and 32
        would be measured."""
        self.write_model("gpt2", {**GPT2, "n_positions": 24}, "bytes")
        self.write("long.tsv", "text\tlabel\nshort\ta\n" + "".join(f"{'word ' * 20}\t{label}\n" for label in "ab" * 5))
        for data in (("--data", "long.tsv", "--test-data", "long.tsv", "--global-batch", 1), ()):
            with self.subTest(data):
                self.run_tool("profile", "--model", "gpt2", *data, "--nproc-per-node", 1, "--micro-batch-sizes", 1,
                              "-o", "p.json")
                profile = self.read("p.json")
                lengths = {measurement["key"]["tokens"] for measurement in profile["measurements"]}
                if data:
                    self.assertEqual((len(lengths), max(lengths)), (2, 24))
                else:  # for a causal model, token slices are measured too
                    self.assertEqual(lengths, {3, 6, 12, 24})
                self.assertEqual(profile["workload"]["longest_tokens"] if data else 24, 24)

    def test_data_that_do_not_fit_the_model_are_refused(self):
        self.write_model("vit", VIT, None)
        self.assert_refused("profile", "--model", "vit", "--data", "data.tsv", "-o", "p.json",
                            says=["config.json: model_type", "sequence classification"])
        write_questions(self.folder / "questions.json", 4)
        (self.folder / "questions.json").write_text(
            (self.folder / "questions.json").read_text().replace('"answer_start": 0', '"answer_start": 1'))
        self.assert_refused("profile", "--model", "model", "--data", "questions.json", "-o", "p.json",
                            says=["questions.json: data[0].paragraphs[", "answer_start"])


if __name__ == "__main__":
    unittest.main()
