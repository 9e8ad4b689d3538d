"""Commands read files in which any field may be hostile: they give an answer, or one error message of ours, in bounded
time and memory, and a failed command leaves no file. Each command gets FROSTPIPE_HOSTILE_FILES mutants (default 40),
always the same."""

import json
import os
import resource
import subprocess
import unittest
import random
import tempfile
from pathlib import Path

from hostile_values import mutant
from support import FROSTPIPE, HANG_SECONDS, CliTest, synthetic_cluster, synthetic_run, synthetic_serving_plan

NUM_MUTANTS = int(os.environ.get("FROSTPIPE_HOSTILE_FILES", 40))
MOST_SECONDS = 5  # of processor time
MOST_BYTES = 2 << 30
MOST_LETTERS = 4000  # of an error
FOREIGN = ["[json.exception", "std::", "basic_string", "vector::", "stoi", "stod", "terminate", "what():", "bug",
           "Assertion", "map::", "bad_", "filesystem error", "out of memory"]

BERT = {"model_type": "bert", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 128, "vocab_size": 1000, "max_position_embeddings": 128, "type_vocab_size": 2,
        "hidden_act": "gelu", "id2label": {"0": "a", "1": "b"}, "num_labels": 2, "is_decoder": False,
        "position_embedding_type": "absolute", "pruned_heads": {}, "quantization_config": None}
VIT = {"model_type": "vit", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
       "intermediate_size": 128, "image_size": 32, "patch_size": 8, "num_channels": 3, "num_labels": 10}
GPT2 = {"model_type": "gpt2", "n_embd": 64, "n_positions": 128, "vocab_size": 1000, "n_layer": 2, "n_head": 4,
        "n_inner": 256, "hidden_size": 64}
RESNET = {"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 2], "layer_type": "basic",
          "hidden_act": "relu", "downsample_in_first_stage": False, "num_channels": 3, "image_size": 32,
          "id2label": {"0": "a", "1": "b"}}
MOBILENET = {"model_type": "mobilenet_v2", "depth_multiplier": 0.25, "depth_divisible_by": 8, "min_depth": 8,
             "expand_ratio": 6, "output_stride": 32, "hidden_act": "relu6", "tf_padding": True, "image_size": 32,
             "layer_norm_eps": 0.001, "num_labels": 3}
VGG = {"architecture": "vgg11_bn", "num_classes": 2, "head_hidden_size": 512, "global_pool": "avg",
       "label_names": ["a", "b"], "model_args": {"drop_rate": 0.5}, "pretrained_cfg": {"input_size": [3, 32, 32]}}
HARDWARE = {"format": "frostpipe.hardware", "version": 1, "name": "mine", "peak_flops": 1e12, "bytes_per_second": 1e11,
            "memory_bytes": 1 << 30, "efficiency": 0.5, "source": "a test"}
PIPER = {"nodes": [{"id": i, "name": f"n{i}", "TMPCs": {"1": [{"timePerSample": 0.003, "parameterSize": 400.0}]}}
                   for i in range(4)],
         "edges": [{"sourceId": i, "destId": i + 1, "communicationCost": 8192.0} for i in range(3)]}
SAILOR_SIZES = {"OPT": {ranks: {layer: {"params_bytes": 400, "act_output_bytes": 8192, "act_mem_bytes": 100}
                                for layer in "012"} for ranks in "12"}}
SAILOR = {samples: {ranks: {layer: [0.002, 0.004, 0.01] for layer in "012"} for ranks in "12"} for samples in "124"}
CONVOLUTIONS = ("nets", "profile", "--hardware", "A100,V100", "--global-batch", 16, "--like")
PLAN = ("plan", "--global-batch", 64, "--profile", "profile.json", "--cluster", "cluster.json", "-o", "out/plan.json")
SIMULATE = ("simulate", "plan.json", "--profile", "profile.json", "--cluster", "cluster.json", "--timeline",
            "out/trace.json", "--memory", "out/memory.svg")
SERVE = ("serving", "plan", "--profile", "profile.json", "--cluster", "cluster.json", "--slo", "20ms", "-o",
         "out/plan.json")
MTRAIN = ("nets", "plan", "--profile", "ops.json", "--cluster", "mixed.json", "-o", "out/plan.json")


def like(file):
    return ("profile", "--like", file, "--cluster", "out/cluster.json", "-o", "out/profile.json")


def imported(file):
    return ("profile", "--import", file, "--cluster", "out/cluster.json", "-o", "out/profile.json")


COMMANDS = [  # (the file that is hostile, the command)
    *[(file, (*PLAN, "--ignore-memory-limit", "--method", method))
      for method in ("static", "auto", "pipetransformer", "data-parallel")
      for file in ("profile.json", "cluster.json")],
    *[(file, SIMULATE) for file in ("plan.json", "profile.json", "cluster.json")],
    ("elastic.json", ("simulate", "elastic.json", "--timeline", "out/trace.json")),
    ("plan.json", ("simulate", "plan.json", "--set", "bandwidth=x0.1", "--set", "freeze=x0.5")),
    ("plan.json", ("simulate", "plan.json", "--lose", 1)),
    *[(file, ("compare", "plan.json", "runs/one/summary.json", "elastic.json", "runs/two/summary.json", "-o",
              "out/summary.json"))
      for file in ("plan.json", "runs/one/summary.json", "runs/one/executed_plan.json", "profile.json")],
    *[(file, ("report", file, "--cluster", "cluster.json", "-o", "out/report.html", "--trace", "out/trace.json"))
      for file in ("runs/one/summary.json", "runs/two/summary.json", "summary.json")],
    ("cluster.json", ("report", "summary.json", "--cluster", "cluster.json", "-o", "out/report.html")),
    ("elastic.json", (*PLAN, "--method", "pipetransformer", "--forecast", "elastic.json")),
    *[(file, like(file)) for file in ("bert.json", "vit.json", "gpt2.json")],
    *[(file, (*CONVOLUTIONS, file, "-o", "out/ops.json")) for file in ("resnet.json", "mobilenet.json", "vgg.json")],
    ("hardware.json", (*like("vit-b16"), "--hardware", "hardware.json", "--tensor-parallel", "1,2")),
    ("piper.json", imported("piper.json")),
    ("OPT_V100_profile.json", imported("OPT_V100_profile.json")),
    ("llm_info.json", imported("OPT_V100_profile.json")),
    *[(file, SERVE) for file in ("profile.json", "cluster.json")],
    ("serving.json", ("serving", "simulate", "serving.json", "--seconds", 2, "--timeline", "out/trace.json")),
    ("serving.json", ("serving", "inspect", "serving.json")),
    ("serving.json", ("serving", "run", "serving.json", "--device=emulated", "--rate", "x0.2", "--seconds", 0.2, "-o",
                      "out/run")),
    *[(file, MTRAIN) for file in ("ops.json", "mixed.json")],
    ("mtrain.json", ("nets", "simulate", "mtrain.json", "--timeline", "out/trace.json")),
]


class HostileFilesTest(CliTest):
    def make_files(self):
        """The valid files, and the files that commands write from them."""
        self.plan("plan.json", "static")
        self.plan("elastic.json", "pipetransformer")
        for name, plan in (("one", "plan.json"), ("two", "elastic.json")):
            simulated = json.loads(self.run_tool("simulate", plan, "--format", "json").stdout)
            self.write(f"runs/{name}/executed_plan.json", self.read(plan))
            self.write(f"runs/{name}/summary.json", synthetic_run(self.read(plan), simulated, name=name))
        self.run_tool("compare", "plan.json", "runs/one/summary.json", "elastic.json", "runs/two/summary.json", "-o",
                      "summary.json")
        self.write("serving.json", synthetic_serving_plan())
        mixed = synthetic_cluster(2)
        for rank, device in enumerate(mixed["devices"]):
            device.update(node=rank, type="A100" if rank == 0 else "V100")
        self.write("mixed.json", mixed)
        self.run_tool(*CONVOLUTIONS, "resnet-18", "-o", "ops.json")
        self.run_tool(*MTRAIN[:-1], "mtrain.json")
        for name, value in (("bert.json", BERT), ("vit.json", VIT), ("gpt2.json", GPT2), ("hardware.json", HARDWARE),
                            ("resnet.json", RESNET), ("mobilenet.json", MOBILENET), ("vgg.json", VGG),
                            ("piper.json", PIPER), ("OPT_V100_profile.json", SAILOR), ("llm_info.json", SAILOR_SIZES)):
            self.write(name, value)

    def outputs(self):
        return sorted(str(path.relative_to(self.folder)) for path in (self.folder / "out").rglob("*")
                      if path.is_file())

    def run_within_limits(self, command):
        """(exit code or minus the signal, stderr, seconds of a core, bytes)"""
        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (2 * MOST_SECONDS, 2 * MOST_SECONDS))
            resource.setrlimit(resource.RLIMIT_DATA, (2 * MOST_BYTES, 2 * MOST_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen([FROSTPIPE, *map(str, command)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=errors, preexec_fn=limit)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            return (process.returncode, errors.read().decode(errors="replace"), usage.ru_utime + usage.ru_stime,
                    usage.ru_maxrss << 10)

    def faults_of(self, command):
        code, errors, seconds, used = self.run_within_limits(command)
        left = self.outputs() if code != 0 else []
        for path in (self.folder / "out").rglob("*"):
            if path.is_file():
                path.unlink()
        faults = [f"says {word}" for word in FOREIGN if word in errors]
        if code not in (0, 1, 2):
            faults.append(f"ends by {code}")
        if code != 0 and not errors.startswith("frostpipe: "):
            faults.append("says nothing")
        if len(errors) > MOST_LETTERS:
            faults.append(f"says {len(errors)} letters")
        if seconds > MOST_SECONDS:
            faults.append(f"takes {seconds:.1f} s")
        if used > MOST_BYTES:
            faults.append(f"takes {used >> 20} MiB")
        if left:
            faults.append(f"fails and leaves {left}")
        return code, [f"{fault}: {errors[:300]}" for fault in faults]

    def test_every_field_of_every_file(self):
        self.make_files()
        for number, (file, command) in enumerate(COMMANDS):
            valid = (self.folder / file).read_text()
            self.assertEqual(self.faults_of(command), (0, []), command)
            refused = 0
            for case in range(NUM_MUTANTS):
                self.write(file, mutant(valid, random.Random(f"{number}, {case}")))
                with self.subTest(file=file, command=command, case=case):
                    code, faults = self.faults_of(command)
                    refused += code != 0
                    self.assertEqual(faults, [])
            self.write(file, valid)
            self.assertGreater(refused, NUM_MUTANTS // 3, "the changes hardly change anything")


if __name__ == "__main__":
    unittest.main()
