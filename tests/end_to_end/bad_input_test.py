"""An error names file, place, rule and value, its exit code is 1 (2 for wrong use), and nothing is overwritten."""

import json
import os
import shutil
import struct
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import tiny_model
from end_to_end import EndToEndTest

WEIGHTS = "model/model.safetensors"


class BadInputTest(EndToEndTest):
    def assert_train_refused(self, says, *options, plan="static.json", data="data.tsv", code=1):
        """Bad input also leaves an earlier run in the same folder unchanged."""
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        for name in ("summary.json", "executed_plan.json", "trace.json", "model/config.json", WEIGHTS):
            self.write(f"run/{name}", f"keep this {name}")
        self.write("run/.lock", "")
        before = self.contents("run")
        arguments = self.train_arguments(plan, "run", "--overwrite", *options, data=data)
        stderr = self.assert_refused(*arguments, says=says, code=code)
        self.assertEqual({**self.contents("run"), ".lock": b""}, before)  # it names its last holder
        return stderr

    def edit_header(self, change):
        """Changes the JSON header of the weights, but not the data."""
        content = (self.folder / WEIGHTS).read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        change(header)
        text = json.dumps(header).encode()
        (self.folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])

    def restore(self):
        tiny_model.write_model(self.folder / "model")


class BadWeightsTest(BadInputTest):
    def test_bytes(self):
        good = (self.folder / WEIGHTS).read_bytes()
        for what, content, says in [
            ("truncated", good[:-1000], ["tensor", "data_offsets", "truncated"]),
            ("cut in the header", good[:300], ["header length", "at most 292"]),
            ("empty", b"", ["empty"]),
            ("too short", b"abc", ["8-byte length", "3 bytes"]),
            ("another kind of file", b"PK\x03\x04" + bytes(2000), ["header"]),
            ("a header that is no JSON", struct.pack("<Q", 16) + b"{oops" + bytes(2000),
             ["header: ", "is not valid JSON"]),
            ("a header that is a list", struct.pack("<Q", 2) + b"[]" + bytes(2000), ["header must be a JSON object"]),
            ("Git's pointer to the file", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
             ["Git LFS pointer", "git lfs pull"]),
        ]:
            with self.subTest(what):
                (self.folder / WEIGHTS).write_bytes(content)
                self.assert_train_refused([WEIGHTS, *says])

    def test_tensors(self):
        query, up = "encoder.layer.2.attention.self.query.weight", "encoder.layer.1.intermediate.dense.weight"
        for what, change, says in [
            ("missing", lambda header: header.pop(query), [query, "missing"]),
            ("wrong shape", lambda header: header[up].update(shape=[32, 64]),
             [up, "must have shape [64, 32]", "is [32, 64]"]),
            ("shape of another size", lambda header: header[up].update(shape=[64, 31]),
             [up, "must have 7936 bytes", "is 8192"]),
            ("one dimension", lambda header: header[up].update(shape=[2048]),
             [up, "must have shape [64, 32]", "is [2048]"]),
            ("integers", lambda header: header[up].update(dtype="I32"), [up, "F32", "I32"]),
            ("unknown dtype", lambda header: header[up].update(dtype="F4"), [up, "F4"]),
            ("negative shape", lambda header: header[up].update(shape=[-64, -32]), [up, "-64"]),
            ("offsets beyond the file", lambda header: header[up].update(data_offsets=[1 << 40, (1 << 40) + 8192]),
             [up, "data_offsets"]),
            ("negative offsets", lambda header: header[up].update(data_offsets=[-8192, 0]), [up, "data_offsets"]),
            ("no offsets", lambda header: header[up].pop("data_offsets"), [up, "data_offsets"]),
            ("offsets are words", lambda header: header[up].update(data_offsets=["a", "b"]), [up, "data_offsets"]),
            ("a tensor that is a number", lambda header: header.update({up: 3}), [up]),
        ]:
            with self.subTest(what):
                self.restore()
                self.edit_header(change)
                self.assert_train_refused([WEIGHTS, *says])

    def test_weights_in_another_form(self):
        (self.folder / WEIGHTS).rename(self.folder / "model/pytorch_model.bin")
        self.assert_train_refused(["model: must hold its weights as model.safetensors", "pytorch_model.bin alone"])

    def test_evaluate_refuses_them_too(self):
        self.train("static.json", "done", "--epochs", 1)
        path = self.folder / "done/model/model.safetensors"
        path.write_bytes(path.read_bytes()[:-1000])
        self.assert_refused("evaluate", "--model", "done/model", "--data", "data.tsv",
                            says=["done/model/model.safetensors", "data_offsets", "truncated"])

    def test_they_are_said_once(self):
        """Every rank reads the file, but the user sees one message."""
        (self.folder / WEIGHTS).write_bytes((self.folder / WEIGHTS).read_bytes()[:-1000])
        stderr = self.assert_train_refused([WEIGHTS, "data_offsets"])
        self.assertEqual(stderr.count("data_offsets"), 1, stderr)
        self.assertNotRegex(stderr, r"rank \d+ \(process")


class BadModelFolderTest(BadInputTest):
    def test_config(self):
        for change, says in [
            ({"model_type": "t5"}, ["model_type", "bert, vit, gpt2", "t5"]),
            ({"hidden_act": "mish"}, ["hidden_act", "gelu", "mish"]),
            ({"position_embedding_type": "relative_key"}, ["position_embedding_type", "absolute", "relative_key"]),
            ({"hidden_size": None}, ["hidden_size"]),
            ({"hidden_size": "wide"}, ["hidden_size", "whole number from 1 to 2147483647", "wide"]),
            ({"num_hidden_layers": -4}, ["num_hidden_layers", "whole number from 1 to 2147483647", "-4"]),
            ({"num_attention_heads": 5}, ["num_attention_heads", "32", "5"]),
            ({"layer_norm_eps": "small"}, ["layer_norm_eps", "small"]),
            ({"layer_norm_eps": -1.0}, ["layer_norm_eps", "-1"]),
        ]:
            with self.subTest(change=change):
                self.restore()
                self.edit("model/config.json", lambda config: config.update(change))
                self.assert_train_refused(["model/config.json", *says])

    def test_a_config_that_is_no_bert(self):
        self.write("model/config.json", {"model_type": "t5", "hidden_size": 32, "num_hidden_layers": 4})
        self.assert_train_refused(["model/config.json: model_type", "bert", "t5"])
        self.write("old.json", "keep me")
        self.assert_refused("profile", "--model", "model", "-o", "old.json",
                            says=["model/config.json: model_type", "bert", "t5"])
        self.assertEqual((self.folder / "old.json").read_text(), "keep me")

    def test_config_is_no_json(self):
        self.write("model/config.json", "{")
        self.assert_train_refused(["model/config.json", "JSON"])

    def test_an_error_in_the_config_is_said_once(self):
        self.edit("model/config.json", lambda config: config.update(model_type="mamba"))
        stderr = self.assert_train_refused(["model_type"])
        self.assertEqual(stderr.count("mamba"), 1, stderr)

    def test_no_folder_or_an_empty_one(self):
        (self.folder / "empty").mkdir()
        self.assert_train_refused(["empty/config.json", "No such file"], "--model", "empty")
        self.assert_train_refused(["nowhere", "folder of a model"], "--model", "nowhere")
        for command in [("train", "static.json", "--data", "data.tsv"), ("profile", "-o", "new.json"),
                        ("evaluate", "--data", "data.tsv")]:
            self.assert_refused(*command, "--model", "google-bert/bert-base-uncased",
                                says=["folder of a model", "hf download google-bert/bert-base-uncased --local-dir "
                                                           "bert-base-uncased"])
        self.assert_train_refused(["data.tsv", "folder of a model"], "--model", "data.tsv")

    def test_vocabulary(self):
        tokens = tiny_model.vocabulary()
        for what, lines, says in [
            ("no [CLS]", [token for token in tokens if token != "[CLS]"], ["vocab.txt", "[CLS]"]),
            ("a token twice", [*tokens[:-1], "the" + "aa"], ["vocab.txt", "theaa"]),
            ("more tokens than the model has",
             ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"extra{i}" for i in range(200)), *tokens[4:]],
             ["vocab", str(len(tokens))]),
        ]:
            with self.subTest(what):
                self.write("model/vocab.txt", "".join(token + "\n" for token in lines))
                self.assert_train_refused(says)
        (self.folder / "model/vocab.txt").unlink()
        self.assert_train_refused(["model", "vocab.txt"])

    def test_files_without_end(self):
        """A device of zeros, and a pipe without a writer, are refused and not read forever."""
        (self.folder / "model/vocab.txt").unlink()
        (self.folder / "model/vocab.txt").symlink_to("/dev/zero")
        self.assert_train_refused(["model/vocab.txt: must be a regular file, is a device"])
        (self.folder / "model/vocab.txt").unlink()
        self.restore()
        (self.folder / WEIGHTS).unlink()
        os.mkfifo(self.folder / "model/pipe")
        self.write("model/model.safetensors.index.json", {"weight_map": {"x": "pipe"}})
        self.assert_train_refused(["model/pipe: must be a regular file, is a pipe"])

    def test_a_plan_for_another_model(self):
        tiny_model.write_model(self.folder / "smaller", num_blocks=3)
        self.assert_train_refused(["static.json", "another model"], "--model", "smaller")

    def test_predictions_are_tried_before_the_model_is_read(self):
        self.write("occupied", "a file")
        self.assert_refused("evaluate", "--model", "nowhere", "--data", "data.tsv",
                            "--predictions", "occupied/said.csv", says=["occupied/said.csv", "cannot be written"])

    def test_evaluate_needs_labels(self):
        self.assert_refused("evaluate", "--model", "model", "--data", "data.tsv",
                            says=["model/config.json", "id2label"])


class BadTextTest(BadInputTest):
    def test_content(self):
        for what, content, says in [
            ("no label column", "text\tclass\na\tb\n", ["own.tsv:1", "label", "class"]),
            ("no header", "a b c\tx\nd e f\ty\n", ["own.tsv:1", "header"]),
            ("no text column", "words\tlabel\na\tb\n", ["own.tsv:1", "text", "words"]),
            ("one label", "text\tlabel\na\tx\nb\tx\n", ["own.tsv", "two different labels", "x"]),
            ("header alone", "text\tlabel\n", ["own.tsv", "row"]),
            ("empty", "", ["own.tsv:1", "header"]),
            ("a row without a label", "text\tlabel\na\tx\nb\nc\ty\n", ["own.tsv:3", "2 tab-separated fields", "b"]),
            ("an empty label", "text\tlabel\na\tx\nb\t\nc\ty\n", ["own.tsv:3", "label", "empty"]),
            ("a tab too much", "text\tlabel\na\tx\nb\tc\ty\n", ["own.tsv:3", "2 tab-separated fields", "3 fields"]),
            ("semicolons", "text;label\na;x\nb;y\n", ["own.tsv:1", "between tabs or commas"]),
            ("commas too many", "text,label\na,x\nb,,y\n", ["own.tsv:3", "2 comma-separated fields"]),
            ("an open quote", "text,label\n\"a,x\nb,y\n", ["own.tsv:2", "double quote"]),
            ("NUL bytes", "text\tlabel\na\0\tx\nb\ty\n", ["own.tsv:2", "NUL", "in this line"]),
        ]:
            with self.subTest(what):
                self.write("own.tsv", content)
                self.assert_train_refused(says, data="own.tsv")

    def test_latin_1(self):
        (self.folder / "own.tsv").write_bytes("text\tlabel\na\tx\nnaïve\ty\ncafé\tx\nb\ty\n".encode("latin1"))
        self.assert_train_refused(["own.tsv:3", "must be UTF-8", "iconv -f latin1", "in 2 lines"], data="own.tsv")

    def test_no_file(self):
        self.assert_train_refused(["nowhere.tsv", "No such file"], data="nowhere.tsv")
        self.assert_train_refused(["model", "sub-folder of images for each label"], data="model")

    def test_too_few_rows_to_hold_any_out(self):
        self.write("own.tsv", "text\tlabel\na\tx\nb\ty\n")
        self.assert_train_refused(["own.tsv", "at least two samples of a label", "--test-data",
                                   "--held-out 0", 'one of each of its 2 labels: "x", "y"'], data="own.tsv")

    def test_evaluate_labels_that_the_model_does_not_know_or_tell_apart(self):
        self.train("static.json", "done", "--epochs", 1)
        self.write("own.tsv", "text\tlabel\na\tfood\nb\tfurniture\n")
        self.assert_refused("evaluate", "--model", "done/model", "--data", "own.tsv",
                            says=["own.tsv:3", "furniture", "food"])
        # Two labels have one name, so an item with this label would count only for one of them.
        self.edit("done/model/config.json", lambda config: config["id2label"].update({"3": config["id2label"]["1"]}))
        self.assert_refused("evaluate", "--model", "done/model", "--data", "data.tsv",
                            says=["done/model/config.json: id2label", "differently", "3 names for 4 labels"])

    def test_profile_refuses_it_too(self):
        self.write("own.tsv", "text\tclass\na\tb\n")
        self.write("old.json", "keep me")
        self.assert_refused("profile", "--model", "model", "--data", "own.tsv", "-o", "old.json",
                            says=["own.tsv:1", "label", "class"])
        self.assertEqual((self.folder / "old.json").read_text(), "keep me")


class BadOptionsTest(BadInputTest):
    def test_wrong_use(self):
        for options, says in [
            (["--freeze", "sometimes"], ["--freeze", "plan, paper, cap", "sometimes"]),
            (["--freeze", "fixed:"], ["--freeze", "fixed:"]),
            (["--freeze", "fixed:2,1"], ["--freeze", "ascending", "fixed:2,1"]),
            (["--freeze", "fixed:two"], ["--freeze", "fixed:two"]),
            (["--freeze", "fixed:1,"], ["--freeze", "fixed:1,"]),
            (["--device", "tpu"], ["--device", "tpu"]),
            (["--learning-rate", "-1"], ["--learning-rate", "-1"]),
            (["--learning-rate", "fast"], ["--learning-rate", "fast"]),
            (["--held-out", 1.5], ["--held-out", "1.5"]),
            (["--seed", "-1"], ["--seed", "-1"]),
            (["--accuracy-guard", 1, "--held-out", 0], ["--accuracy-guard", "data to test on", "--test-data"]),
        ]:
            with self.subTest(options=options):
                self.assert_train_refused(says, *options, code=2)

    def test_more_frozen_layers_than_there_are(self):
        self.assert_train_refused(["--freeze", "4 blocks", "9"], "--freeze", "fixed:2,9")

    def test_delayed_updates_with_what_decides_on_the_way(self):
        self.edit("static.json", lambda plan: plan["phases"][0].update(schedule="PipeDream-2BW"))
        where = "static.json: phases[0].schedule: PipeDream-2BW delays updates"
        for options in (["--accuracy-guard", 1], ["--freeze", "paper"], ["--freeze", "fixed:1,2"]):
            with self.subTest(options=options):
                self.assert_train_refused([where, str(options[0])], *options)

    def test_a_world_of_another_size(self):
        self.edit("cluster.json", lambda cluster: cluster["devices"].append(dict(cluster["devices"][0])))
        self.assert_train_refused(["cluster.json: devices", "must be 2", "static.json", "is 3"],
                                  "--cluster", "cluster.json")

    def test_cuda_without_a_gpu(self):
        if Path("/dev/nvidiactl").exists():
            print("\nSKIPPED LOUDLY: this machine has a GPU", file=sys.stderr)
            self.skipTest("this machine has a GPU")
        self.assert_train_refused(["cuda"], "--device", "cuda")
        self.assert_refused("evaluate", "--model", self.folder / "model", "--data", "data.tsv", "--device", "cuda",
                            says=["frostpipe: "])
        self.assert_refused("profile", "--model", "model", "--data", "data.tsv", "--device", "cuda", "-o", "new.json",
                            says=["cuda"])
        self.assertFalse((self.folder / "new.json").exists())

    def test_weights_that_are_no_numbers(self):
        name = "encoder.layer.3.output.dense.bias"
        tensors = tiny_model.random_tensors()
        tensors[name] = (tensors[name][0], [float("nan")] * tiny_model.HIDDEN)
        tiny_model.write_safetensors(self.folder / WEIGHTS, tensors)
        self.assert_refused(*self.train_arguments("static.json", "run"), says=["rank", "OPTIMIZER_STEP", "not finite"])


class BadPlanTest(BadInputTest):
    def test_content(self):
        partition = [{"begin": 2 * stage, "end": 2 * stage + 2} for stage in range(3)] + [{"begin": 6, "end": 10}]
        for change, says in [
            (lambda plan: plan.update(optimizer="lion"), ["optimizer", "adamw", "lion"]),
            (lambda plan: plan.update(dtype="float16"), ["dtype", "float32", "float16"]),
            (lambda plan: plan.update(version=9), ["version", "9"]),
            (lambda plan: plan.update(world_size=0), ["world_size", "0"]),
            (lambda plan: plan["phases"][0]["partition"][0].update(end=9), ["phases[0].partition"]),
            (lambda plan: plan["phases"][0].update(schedule="Zigzag"), ["phases[0].schedule", "Zigzag"]),
            (lambda plan: plan["phases"][0].update(schedule="LoopedBFS", virtual_stages=2),
             ["phases[0].partition", "times 2 per rank"]),
            (lambda plan: plan["phases"][0].update(schedule="ZB-H2", num_micro_batches=2),
             ["phases[0].schedule: schedule ZB-H2", "number of micro-batches", "must be >= 2 p - 1", "is 2"]),
            (lambda plan: plan.update(version=2) or plan["phases"][0].update(
                schedule="Interleaved1F1B", virtual_stages=2, num_micro_batches=5, partition=partition),
             ["phases[0].schedule: schedule Interleaved1F1B", "a multiple of the rounds", "4 or 6", "is 5"]),
            (lambda plan: plan.update(version=2) or plan["phases"][0].update(schedule="TeraPipe", token_slices=[16]),
             ["phases[0].token_slices", "only causal language models", "plan without slices"]),
            (lambda plan: plan["phases"][0].update(first_trainable_layer=10),
             ["phases[0].first_trainable_layer", "10"]),
            (lambda plan: plan["provenance"].update(model_path="nowhere"), ["nowhere", "folder of a model"]),
        ]:
            self.write("plan.json", (self.folder / "static.json").read_text())
            self.edit("plan.json", change)
            with self.subTest(says=says):
                file = [] if "nowhere" in says else ["plan.json"]
                self.assert_train_refused([*file, *says], plan="plan.json")

    def test_a_pipe(self):
        """A pipe gives its content once, and not to every rank; this one has no writer."""
        os.mkfifo(self.folder / "pipe")
        self.assert_train_refused(["pipe: must be a regular file, is a pipe"], plan="pipe")
        self.assert_train_refused(["pipe: must be a regular file, is a pipe"], "--profile", "pipe")

    def test_a_broken_run_is_not_compared(self):
        self.train("static.json", "done", "--epochs", 1)
        self.write("out.json", "keep me")
        good = (self.folder / "done/summary.json").read_text()
        for content, says in [(good[: len(good) // 2], ["done/summary.json", "line"]),
                              ("{}", ["done/summary.json", "format"])]:
            with self.subTest(says=says):
                self.write("done/summary.json", content)
                self.assert_refused("compare", "static.json", "done/summary.json", "-o", "out.json", says=says)
                self.assert_refused("report", "done/summary.json", "-o", "out.json", says=["done/summary.json"])
                self.assertEqual((self.folder / "out.json").read_text(), "keep me")


if __name__ == "__main__":
    unittest.main()
