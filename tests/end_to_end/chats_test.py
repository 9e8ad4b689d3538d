"""A user's workflow with data in JSON Lines. Oracles: records train the same model as the same data in a table;
evaluate gives the run's results for its test chats."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import tiny_model
from end_to_end import EndToEndTest
from families import GPT2, write_model

TEMPLATE = """\
{% for message in messages %}
{{ message.role + ': ' + message.content | trim }}{% if message.role == 'assistant' %}{{ eos_token }}{% endif %}

{% endfor %}
"""


def json_lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def chats(count):
    """Chats in which the assistant repeats the user's word."""
    words = ["cab", "lab", "crab", "ebb"]
    return [{"messages": [{"role": "user", "content": words[i % 4] + " " * (i % 3)},
                          {"role": "assistant", "content": words[i % 4]}]} for i in range(count)]


class JsonLinesTest(EndToEndTest):
    def test_labelled_texts_train_as_their_table_does(self):
        rows = tiny_model.samples(100)
        self.write("own.tsv", "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
        self.write("own.jsonl", json_lines({"id": i, "body": text, "kind": label}
                                           for i, (text, label) in enumerate(rows)))
        columns = ("--text-column", "body", "--label-column", "kind")
        plan = self.of_length("static.json", 15)
        of_tsv = self.train(plan, "run-tsv", data="own.tsv")
        of_json = self.train(plan, "run-json", *columns, data="own.jsonl")
        self.assertEqual(self.losses(of_tsv), self.losses(of_json))
        found = [self.evaluate(data, *options) for data, options in (("own.tsv", ()), ("own.jsonl", columns))]
        self.assertEqual(found[0]["value"], found[1]["value"])

    def evaluate(self, data, *options, model="run-json/model"):
        return json.loads(self.run_tool("evaluate", "--model", model, "--data", data, *options,
                                        "--format", "json").stdout)

    def test_chats_are_trained_and_scored_on_what_the_assistant_says(self):
        write_model(self.folder / "gpt2", GPT2, "bytes")
        self.write("gpt2/chat_template.jinja", TEMPLATE)
        self.write("gpt2/special_tokens_map.json",
                   {name: "<|endoftext|>" for name in ("bos_token", "eos_token", "unk_token")})
        self.write("chats.jsonl", json_lines(chats(96)))
        self.write("unseen.jsonl", json_lines(chats(16)))
        self.run_tool("profile", "--model", "gpt2", "--data", "chats.jsonl", "--test-data", "unseen.jsonl",
                      "--global-batch", 16, "--threads-per-rank", 1, "--micro-batch-sizes", "1,4,16",
                      "--cluster", "c.json", "-o", "p.json")
        self.run_tool("plan", "--profile", "p.json", "--cluster", "c.json", "--global-batch", 16, "--epochs", 6,
                      "--method", "static", "--fix", "pp=2", "-o", "chats.json")
        runs = {}
        for loss_on in ("completions", "all"):
            self.run_tool("train", "chats.json", "--data", "chats.jsonl", "--test-data", "unseen.jsonl",
                          "--learning-rate", 0.01, "--loss-on", loss_on, "-o", loss_on)
            runs[loss_on] = run = self.read(f"{loss_on}/summary.json")
            self.assertLess(run["steps"][-1]["loss"], run["steps"][0]["loss"] / 2)
            self.assertEqual(run["test_metric"], "next-token accuracy")
            self.write(f"{loss_on}/model/chat_template.jinja", TEMPLATE)
            found = self.evaluate("unseen.jsonl", "--loss-on", loss_on, model=f"{loss_on}/model")
            self.assertAlmostEqual(found["value"], run["test_accuracy"], delta=1e-6)
        self.assertNotEqual(self.losses(runs["completions"]), self.losses(runs["all"]))
        self.check_prompts_without_answers()
        self.write("mute.jsonl", json_lines(chats(3) + [{"messages": [{"role": "user", "content": "a"}]}]))
        for command in (["profile", "--model", "gpt2", "-o", "q.json"], ["train", "chats.json", "-o", "mute"],
                        ["evaluate", "--model", "all/model"]):
            self.assert_refused(*command, "--data", "mute.jsonl",
                                says=['mute.jsonl:4: messages: must have a message of the role "assistant"'])

    def check_prompts_without_answers(self):
        """Prompts are completed as with their answers, and only those with an answer are scored."""
        def completed(records):
            self.write("asked.jsonl", json_lines(records))
            done = self.run_tool("evaluate", "--model", "all/model", "--data", "asked.jsonl", "--max-new-tokens", 4,
                                 "--predictions", "said.jsonl", "--format", "json")
            said = [json.loads(line) for line in (self.folder / "said.jsonl").read_text().splitlines()]
            return json.loads(done.stdout), said, done.stderr
        answered = chats(4)
        asked = [{"messages": chat["messages"][:1]} for chat in answered]
        scored, said, notes = completed(answered)
        self.assertEqual((scored["num_samples"], scored["num_completions"]), (4, 4))
        self.assertNotIn("no answer", notes)
        found, said_again, notes = completed(answered[:1] + asked[1:])
        self.assertEqual((found["num_samples"], found["num_completions"]), (1, 4))
        self.assertIn("3 of 4 prompts have no answer: they are completed and not scored", notes)
        self.assertEqual([line["completion"] for line in said], [line["completion"] for line in said_again])
        found, said_again, _ = completed(asked)
        self.assertEqual((found["num_samples"], found["num_completions"], "metric" in found), (0, 4, False))
        self.assertEqual([line["completion"] for line in said], [line["completion"] for line in said_again])
        shown = self.run_tool("evaluate", "--model", "all/model", "--data", "asked.jsonl", "--max-new-tokens", 4,
                              "--predictions", "said.jsonl").stdout
        self.assertEqual(shown, "4 completions, without answers to compare with\n")


if __name__ == "__main__":
    unittest.main()
