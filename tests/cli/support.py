"""Runs the tool in a separate folder, on a synthetic model whose costs are round numbers."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

FROSTPIPE = os.environ.get("FROSTPIPE", "frostpipe")
NO_EXECUTOR = "the LibTorch executor, frostpipe-executor, is not beside this program"
HANG_SECONDS = 120  # after this a command counts as hanging; less than ctest's limit for a test
NUM_BLOCKS = 6
MIB = 1 << 20
MS = 1_000_000


def has_executor():
    return Path(FROSTPIPE + "-executor").exists()


def synthetic_model():
    layers = [{"name": "embedding", "kind": "embedding", "parameter_count": 12_000_000}]
    for block in range(NUM_BLOCKS):
        layers.append({"name": f"block.{block}.attention", "kind": "attention", "block": block,
                       "parameter_count": 600_000})
        layers.append({"name": f"block.{block}.mlp", "kind": "mlp", "block": block, "parameter_count": 1_200_000})
    layers.append({"name": "head", "kind": "head", "parameter_count": 3_000})
    edges = [{"from": i, "to": i + 1} for i in range(len(layers) - 1)]
    return {"name": "synthetic", "hidden_size": 384, "layers": layers, "edges": edges}


def synthetic_profile():
    """The forward takes 10 us per sample of 16 tokens in each half block, the backward twice that; the embedding's
    update is expensive."""
    model = synthetic_model()
    measurements, updates = [], []
    for index, layer in enumerate(model["layers"]):
        unit = {"embedding": 2_000, "attention": 10_000, "mlp": 10_000, "head": 1_000}[layer["kind"]]
        for size in (1, 2, 4, 8, 16, 32, 64):
            for tokens in (16, 32):
                forward = unit * size * tokens // 16
                activation = size * tokens * 384 * 4
                key = {"layer": index, "device_type": "cpu", "dtype": "float32", "micro_batch_size": size,
                       "tokens": tokens, "context_tokens": 0, "tensor_parallel_size": 1}
                cost = {"forward_ns": forward, "input_gradient_ns": forward, "weight_gradient_ns": forward,
                        "frozen_forward_ns": forward * 9 // 10, "output_activation_bytes": activation,
                        "stashed_bytes": 6 * activation, "workspace_bytes": activation}
                measurements.append({"key": key, "cost": cost})
        updates.append({"layer": index, "device_type": "cpu", "dtype": "float32", "optimizer": "adamw",
                        "update_ns": layer["parameter_count"] * 2})
    return {"format": "frostpipe.profile", "version": 1, "model": model, "model_path": "", "machine": "synthetic",
            "workload": {"name": "synthetic", "num_samples": 640, "tokens": 16, "longest_tokens": 16,
                         "global_batch_size": 64},
            "measurements": measurements, "updates": updates}


def measure_slices(profile):
    """As if slices of 4 and 8 of 16 tokens had been measured: they take a 20th of the whole longer than their share,
    and the share after 8 tokens is 1.2 times as long."""
    profile["model"].update(is_causal=True)
    for one in [one for one in profile["measurements"] if one["key"]["tokens"] == 16]:
        for tokens in (4, 8):
            for context in (0, 8):
                share = 0.05 + tokens / 16 * (1.2 if context else 1)
                profile["measurements"].append(
                    {"key": {**one["key"], "tokens": tokens, "context_tokens": context},
                     "cost": {name: int(value * (share if name.endswith("_ns") else tokens / 16))
                              for name, value in one["cost"].items()}})


def measure_with_two_threads(profile, share):
    """As if a rank with two threads took this fraction of the time of one with a single thread."""
    for kind in ("measurements", "updates"):
        place = (lambda one: one["key"]) if kind == "measurements" else (lambda one: one)
        profile[kind] = [one for one in profile[kind] if place(one)["device_type"] == "cpu"]
        for one in json.loads(json.dumps(profile[kind])):
            place(one)["device_type"] = "cpu x 2"
            times = one["cost"] if kind == "measurements" else one
            times.update({key: int(value * share) for key, value in times.items() if key.endswith("_ns")})
            profile[kind].append(one)


def synthetic_cluster(num_ranks=2, memory_limit_mib=320):
    """The whole model, with gradients and two moments, takes 349 MiB: it does not fit on one rank."""
    link = {"latency_ns": 50_000, "bandwidth_bytes_per_second": 4_000_000_000}
    links = {"point_to_point": link, "collective": link}
    devices = [{"type": "cpu", "node": 0, "memory_limit_bytes": memory_limit_mib * MIB} for _ in range(num_ranks)]
    return {"format": "frostpipe.cluster", "version": 1, "name": "synthetic", "devices": devices,
            "intra_node": links, "inter_node": links}


def frozen_blocks(first_trainable_layer):
    return min(NUM_BLOCKS, max(0, (first_trainable_layer - 1) // 2))


def timeline(num_ranks, milliseconds):
    spans = [{"rank": rank, "step": 4, "action": f"{stage}{kind}0", "begin_ns": begin * milliseconds * 10**5,
              "end_ns": end * milliseconds * 10**5}
             for rank in range(num_ranks) for stage in [0] for kind, begin, end in [("F", 0, 3), ("B", 3, 8)]]
    return {"num_ranks": num_ranks, "spans": spans, "events": []}


def synthetic_run(plan, simulated, slower=1.05, name=None):
    """A run that followed the plan, `slower` than predicted; every tenth test item is wrong."""
    no_timeline = {"num_ranks": 0, "spans": [], "events": []}
    phases, steps = [], []
    for phase, predicted in zip(plan["phases"], simulated["phases"]):
        iteration_ns = int(predicted["iteration_ns"] * slower)
        layout = phase["layout"]
        phases.append({
            "from_step": phase["from_step"], "num_steps": predicted["num_steps"],
            "frozen_blocks": frozen_blocks(phase["first_trainable_layer"]),
            "first_trainable_layer": phase["first_trainable_layer"], "stages": layout["pipeline_parallel_size"],
            "replicas": layout["data_parallel_size"], "num_micro_batches": phase["num_micro_batches"],
            "schedule": phase["schedule"], "partition": "[0,14)", "tokens": phase["tokens"],
            "predicted_iteration_ns": 0, "measured_iteration_ns": iteration_ns,
            "measured_iteration_low_ns": iteration_ns * 9 // 10, "measured_iteration_high_ns": iteration_ns * 11 // 10,
            "transformation_ns": predicted["transformation_ns"], "predicted_transformation_ns": 0,
            "cache": phase["cache"]["on"], "cache_hit_fraction": 0, "cache_base_fraction": 0,
            "samples_per_second": 64e9 / iteration_ns, "predicted_peak_memory_bytes": [],
            "measured_peak_memory_bytes": [200 * MIB, 210 * MIB][:plan["world_size"]],
            "predicted_timeline": no_timeline,
            "measured_timeline": timeline(plan["world_size"], iteration_ns // 10**6)})
        for step in range(phase["from_step"], phase["from_step"] + predicted["num_steps"]):
            steps.append({"step": step, "loss": 2.0 / (1 + step), "learning_rate": 1e-4, "samples": 64, "tokens": 16,
                          "iteration_ns": iteration_ns})
    seconds = sum(step["iteration_ns"] for step in steps) / 1e9
    labels = [item % 2 for item in range(100)]
    return {"format": "frostpipe.run", "version": 2,
            "name": name or {"static": "static_pipeline",
                             "pipetransformer": "elastic"}.get(plan["method"], "data_parallel"),
            "method": plan["method"], "freeze": "plan", "seed": 1, "world_size": plan["world_size"],
            "threads_per_rank": plan["threads_per_rank"], "epochs": 3,
            "num_steps": plan["num_steps"], "global_batch_size": 64, "num_train_samples": 640, "num_test_samples": 100,
            "samples_per_second": len(steps) * 64 / seconds, "wall_seconds": seconds, "start_seconds": 1.0,
            "evaluation_seconds": 0.5, "cache_note": "", "test_accuracy": 0.9, "test_accuracy_standard_error": 0.03,
            "phases": phases, "decisions": [{"step": 5, "frozen_blocks": 3, "explanation": "a <b> c"}],
            "steps": steps, "evaluations": [{"step": 10, "accuracy": 0.8}, {"step": 30, "accuracy": 0.9}],
            "label_names": ["<script>alert('x')</script>", "Käse & \"Brot\""], "test_items": list(range(100)),
            "test_labels": labels, "test_predictions": [1 - l if i % 10 == 0 else l for i, l in enumerate(labels)]}


NO_PROVENANCE = {key: "" for key in ("model_name", "model_fingerprint", "model_path", "profile_path",
                                     "profile_fingerprint", "cluster_path", "cluster_fingerprint", "version")}


def serving_pool(first, end, device_class, devices, compute_ms, rate, transfer_ms=0):
    return {"first_block": first, "end_block": end, "device_class": device_class, "share": 1,
            "num_virtual_devices": devices, "compute_ns": [ms * MS for ms in compute_ms], "input_bytes": 0,
            "transfer_ns": transfer_ms * MS, "latency_ns": 0, "requests_per_second": rate}


def served_model(name, weight, objective_ms, blocks, pools, rate):
    pipeline = {"batch_size": len(pools[0]["compute_ns"]), "partitions": pools, "batch_building_ns": 0,
                "requests_per_second": rate}
    return {"name": name, "weight": weight, "objective_ns": objective_ms * MS, "tokens": 1,
            "required_requests_per_second": 0, "building_requests_per_second": 0,
            "blocks": [{"begin": i, "end": i + 1} for i in range(blocks)], "pipelines": [pipeline],
            "requests_per_second": rate, "provenance": NO_PROVENANCE}


def synthetic_serving_plan():
    """"large" has 2 slow devices of 20 ms, and after a transfer of 1 ms 1 fast one of 5 ms: 100 requests/s. "small" has
    125."""
    device = {"devices_per_server": 1, "bandwidth_bytes_per_second": 0, "price_per_hour": None}
    return {"format": "frostpipe.plan", "version": 3, "kind": "serving", "method": "ppipe", "objective": "throughput",
            "dtype": "float32", "margins": {"objective_fraction": 0.4, "batch_building": 1.3},
            "device_classes": [{"name": "fast", "count": 1, **device}, {"name": "slow", "count": 3, **device}],
            "models": [served_model("large", 3, 100, 2, [serving_pool(0, 1, "slow", 2, [20], 100),
                                                         serving_pool(1, 2, "fast", 1, [5], 200, 1)], 100),
                       served_model("small", 1, 20, 1, [serving_pool(0, 1, "slow", 1, [8], 125)], 125)],
            "objective_value": 100 / 3, "objective_bound": None}


class CliTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="frostpipe-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.write("profile.json", synthetic_profile())
        self.write("cluster.json", synthetic_cluster())

    def write(self, name, value):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(value if isinstance(value, str) else json.dumps(value))

    def read(self, name):
        return json.loads((self.folder / name).read_text())

    def edit(self, name, change):
        value = self.read(name)
        change(value)
        self.write(name, value)

    def run_tool(self, *arguments, code=0):
        """The finished process, whose exit code must be `code`."""
        environment = {key: value for key, value in os.environ.items()
                       if key not in ("RANK", "WORLD_SIZE") and not key.startswith(("SLURM_", "OMPI_", "PMI_"))}
        done = subprocess.run([FROSTPIPE, *map(str, arguments)], cwd=self.folder, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_SECONDS)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def assert_refused(self, *arguments, code=1, says=()):
        """The command fails with this code, prints all of this on stderr and nothing on stdout."""
        done = self.run_tool(*arguments, code=code)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("frostpipe: "), done.stderr)
        self.assertNotIn("bug", done.stderr)
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, done.stderr)
        return done.stderr

    def plan(self, output, method, *options, code=0):
        return self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 64,
                             "--method", method, "-o", output, *options, code=code)
