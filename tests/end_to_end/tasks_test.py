"""Every task of models of texts, as a user trains and scores it: several labels at once, numbers, words with labels,
questions that may have no answer. Oracle: what evaluate says is counted again from the predictions that it writes; the
task is learned; a folder that goes through untrained stays the same."""

import csv
import json
import math
import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import tiny_model
from families import BERT, FamilyTest


def words_of(kind):
    """Few, so that a small model soon knows them."""
    return tiny_model.words_of(kind)[:8]


def texts(count, seed):
    """Some words of two kinds each, and the kinds."""
    numbers = random.Random(seed)
    for _ in range(count):
        kinds = sorted(numbers.sample(range(4), numbers.randrange(1, 3)))
        words = [word for kind in kinds for word in numbers.sample(words_of(kind), 3)]
        numbers.shuffle(words)
        yield " ".join(words), kinds


def lines_of(samples):
    return "".join(json.dumps(sample) + "\n" for sample in samples)


class TasksTest(FamilyTest):
    def scored(self, data, *options):
        """Returns the output of evaluate, and the rows that it predicts."""
        found = json.loads(self.run_tool("evaluate", "--model", "run/model", "--data", data, "--format", "json",
                                         "--predictions", "said", *options).stdout)
        return found, (self.folder / "said").read_text()

    def rows(self, text):
        return list(csv.DictReader(text.splitlines()))

    def test_several_labels(self):
        self.write_model("bert", BERT, "words")
        names = tiny_model.LABELS
        samples = list(texts(800, 1))
        self.write("lists.jsonl", lines_of({"text": text, "labels": [names[kind] for kind in kinds]}
                                           for text, kinds in samples))
        self.write("flags.csv", "text," + ",".join(names) + "\n"
                   + "".join(text + "," + ",".join(str(int(kind in kinds)) for kind in range(4)) + "\n"
                             for text, kinds in texts(40, 2)))
        run = self.train_family("bert", "lists.jsonl", epochs=10)
        self.assertEqual(run["test_metric"], "micro F1")
        self.assertGreater(run["test_accuracy"], 0.7)  # all labels of all texts would be 0.55
        config = self.read("run/model/config.json")
        self.assertEqual(config["problem_type"], "multi_label_classification")
        self.assertEqual(config["architectures"], ["BertForSequenceClassification"])
        found, said = self.scored("flags.csv")
        hits = labelled = predicted = exact = 0
        for row in self.rows(said):
            there, told = set(json.loads(row["label"])), set(json.loads(row["predicted"]))
            self.assertEqual(told, {name for name in names if float(row[f"probability of {name}"]) > 0.5})
            hits, labelled, predicted = hits + len(there & told), labelled + len(there), predicted + len(told)
            exact += there == told
        self.assertAlmostEqual(found["value"], 2 * hits / (labelled + predicted), delta=1e-12)
        self.assertAlmostEqual(found["exact_match"], exact / 40, delta=1e-12)
        self.assertEqual(sum(label["count"] for label in found["labels"]), labelled)
        self.write("plain.txt", "\n".join(text for text, _ in samples[:5]))
        self.assertEqual(self.scored("plain.txt")[0]["num_samples"], 5)
        self.check_round_trip("lists.jsonl")
        self.assert_refused("evaluate", "--model", "run/model", "--data",
                            self.write("other.jsonl", lines_of([{"text": "a", "labels": ["x"]}])),
                            says=["other.jsonl:1: the label must be one that the model knows"])

    def test_a_number(self):
        self.write_model("bert", {**BERT, "problem_type": "regression"}, "words")
        self.write("numbers.csv", "text,label\n"
                   + "".join(f"{text},{sum(kinds) / 2 - 1}\n" for text, kinds in texts(240, 3)))
        run = self.train_family("bert", "numbers.csv", epochs=10)
        self.assertEqual(run["test_metric"], "Pearson correlation")
        self.assertGreater(run["test_accuracy"], 0.8)
        config = self.read("run/model/config.json")
        self.assertEqual((config["problem_type"], config["id2label"]), ("regression", {"0": "LABEL_0"}))
        found, said = self.scored("numbers.csv")
        pairs = [(float(row["label"]), float(row["predicted"])) for row in self.rows(said)]
        squares = [(a - b) ** 2 for a, b in pairs]
        self.assertAlmostEqual(found["mean_squared_error"], sum(squares) / len(pairs), delta=1e-4)
        means = [sum(side) / len(pairs) for side in zip(*pairs)]
        covariance, a, b = (sum((pair[i] - means[i]) * (pair[j] - means[j]) for pair in pairs)
                            for i, j in ((0, 1), (0, 0), (1, 1)))
        self.assertAlmostEqual(found["value"], covariance / math.sqrt(a * b), delta=1e-5)
        self.check_round_trip("numbers.csv")
        self.assert_refused("train", "family.json", "--data", self.write("bad.csv", "text,label\na,1\nb,much\n"),
                            "-o", "bad", says=["bad.csv:3: the label must be a number"])

    def test_words_with_labels(self):
        """Two words of kind 0 are a person, one of kind 1 is a place; other words stand between."""
        self.write_model("bert", BERT, "words")
        numbers = random.Random(7)

        def sentences(count):
            for _ in range(count):
                words, labels = [], []
                for _ in range(numbers.randrange(1, 4)):
                    kind = numbers.randrange(3)
                    words += numbers.sample(words_of(kind), 2 if kind == 0 else 1) + [numbers.choice(words_of(3))]
                    labels += [["B-PER", "I-PER"], ["B-LOC"], ["O"]][kind] + ["O"]
                yield words, labels

        self.write("names.conll", "-DOCSTART- -X- O\n\n"
                   + "\n".join("".join(f"{word} {label}\n" for word, label in zip(*sentence))
                               for sentence in sentences(400)))
        unseen = list(sentences(40))
        self.write("unseen.jsonl", lines_of({"tokens": words, "ner_tags": labels} for words, labels in unseen))
        run = self.train_family("bert", "names.conll", epochs=8)
        self.assertEqual(run["test_metric"], "entity F1")
        self.assertGreater(run["test_accuracy"], 0.9)
        config = self.read("run/model/config.json")
        self.assertEqual(config["architectures"], ["BertForTokenClassification"])
        self.assertEqual(config["id2label"], {"0": "B-LOC", "1": "B-PER", "2": "I-PER", "3": "O"})
        self.assertNotIn("bert.pooler.dense.weight", self.saved_names())
        found, said = self.scored("unseen.jsonl")
        columns = [[line.split("\t") for line in block.splitlines()] for block in said.strip("\n").split("\n\n")]
        self.assertEqual([([row[0] for row in block], [row[1] for row in block]) for block in columns], unseen)
        rows = [row for block in columns for row in block]
        self.assertAlmostEqual(found["accuracy_of_words"], sum(row[1] == row[2] for row in rows) / len(rows),
                               delta=1e-12)
        self.assertGreater(found["value"], 0.9)
        self.assertEqual([label["label"] for label in found["labels"]], ["LOC", "PER"])
        # Words alone, a sentence in each line.
        self.write("plain.txt", "\n".join(" ".join(words) for words, _ in unseen))
        _, told = self.scored("plain.txt")
        self.assertEqual([line.split("\t") for line in told.splitlines() if line], [[row[0], row[2]] for row in rows])
        self.check_round_trip("names.conll")
        self.assert_refused("evaluate", "--model", "run/model", "--data",
                            self.write("bad.conll", "a B-ORG\n"),
                            says=["bad.conll:1: the label must be one that the model knows"])

    def test_questions_without_an_answer(self):
        """The answer is the context's word of kind 0, if it has one."""
        self.write_model("bert", BERT, "words")
        numbers = random.Random(9)

        def questions(count):
            paragraphs = []
            for i in range(count):
                context = [numbers.choice(words_of(kind)) for kind in (1, 2, 3)]
                answer = None if i % 3 == 0 else numbers.choice(words_of(0))
                if answer:
                    context[i % 2] = answer
                text = " ".join(context)
                answers = [{"text": answer, "answer_start": text.index(answer)}] if answer else []
                paragraphs.append({"context": text, "qas": [{"id": f"q{i}", "question": tiny_model.LABELS[0],
                                                             "is_impossible": not answer, "answers": answers}]})
            return json.dumps({"version": "v2.0", "data": [{"title": "made up", "paragraphs": paragraphs}]})

        window = ("--max-tokens", 16, "--window-overlap", 2)
        self.write("questions.json", questions(600))
        self.write("unseen.json", questions(60))
        run = self.train_family("bert", "questions.json", epochs=8, samples=window)
        self.assertEqual(run["test_metric"], "F1")
        found, said = self.scored("unseen.json", *window)
        answers = json.loads(said)
        exact = {True: [], False: []}
        for paragraph in self.read("unseen.json")["data"][0]["paragraphs"]:
            question = paragraph["qas"][0]
            right = question["answers"][0]["text"] if question["answers"] else ""
            exact[question["is_impossible"]].append(answers[question["id"]] == right)
        every = exact[True] + exact[False]
        self.assertAlmostEqual(found["exact_match"], sum(every) / 60, delta=1e-12)
        self.assertAlmostEqual(found["exact_match_of_answerable"], sum(exact[False]) / 40, delta=1e-12)
        self.assertAlmostEqual(found["F1_of_unanswerable"], sum(exact[True]) / 20, delta=1e-12)
        self.assertGreater(sum(exact[True]), 15)
        self.assertGreater(sum(exact[False]), 30)
        self.check_round_trip("questions.json")


if __name__ == "__main__":
    unittest.main()
