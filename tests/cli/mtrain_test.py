"""Operator plans: profile, plan and simulate, and the input that they refuse."""

import json
import unittest

from support import CliTest, synthetic_cluster


class MTrainTest(CliTest):
    def setUp(self):
        """Three unequal devices, each on its own node."""
        super().setUp()
        mixed = synthetic_cluster(3)
        for rank, device in enumerate(mixed["devices"]):
            device.update(node=rank, type="A100" if rank == 0 else "V100")
        self.write("mixed.json", mixed)
        done = self.run_tool("nets", "profile", "--like", "resnet-18", "--hardware", "A100,V100",
                             "--global-batch", "16", "-o", "ops.json")
        self.assertIn("resnet-18, 23 layers, mini-batch 16", done.stdout)

    def arguments(self, *options):
        return ("nets", "plan", "--profile", "ops.json", "--cluster", "mixed.json", "-o", "mtrain.json", *options)

    def test_a_plan_is_written_explained_and_simulated(self):
        text = self.run_tool(*self.arguments("--explain")).stdout
        for words in ("mtrain of resnet-18, mini-batch 16, on 3 devices", "critical path of", "mtrain-data-parallel"):
            self.assertIn(words, text)
        plan = self.read("mtrain.json")
        self.assertEqual((plan["kind"], plan["version"]), ("operators", 4))
        run = json.loads(self.run_tool("nets", "simulate", "mtrain.json", "--format", "json", "--timeline",
                                       "t.json").stdout)
        self.assertEqual(run["iteration_ns"], plan["predicted_ns"])
        self.assertGreater(len(self.read("t.json")["traceEvents"]), len(plan["graph"]["operators"]))
        self.assertIn("critical path", self.run_tool("nets", "simulate", "mtrain.json").stdout)
        above = 100 * (plan["predicted_ns"] / plan["lower_bound_ns"] - 1)
        self.assertIn(f"; this one is {above:.1f} % above\n", text)

    def test_slices_of_a_lane_do_not_overlap(self):
        """Perfetto drops a slice that ends within another one of its lane. The latency is 50 us."""
        self.run_tool(*self.arguments())
        self.run_tool("nets", "simulate", "mtrain.json", "--timeline", "t.json")
        lanes, on_links = {}, 0
        for event in self.read("t.json")["traceEvents"]:
            if event["ph"] == "X":
                lanes.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
                on_links += event["tid"] > 0
        self.assertGreater(on_links, 0)
        for lane, slices in lanes.items():
            slices.sort()
            for (_, end), (begin, _) in zip(slices, slices[1:]):
                self.assertLessEqual(end, begin + 1e-6, lane)

    def test_old_spellings_name_the_new_command(self):
        self.run_tool(*self.arguments())
        for arguments, says in [
            (["plan", "--method", "mtrain", "--profile", "ops.json", "--cluster", "mixed.json", "--global-batch", 16,
              "-o", "p.json"], "`frostpipe nets plan` makes plans by mtrain"),
            (["simulate", "mtrain.json"], "mtrain.json: is a plan of operators, which `frostpipe nets simulate` and"),
            (["train", "mtrain.json", "--data", "d"], "`frostpipe nets simulate` and `frostpipe nets train` take"),
            (["inspect", "mtrain.json"], "mtrain.json: is a plan of operators, which `frostpipe nets simulate` shows"),
            (["serving", "inspect", "mtrain.json"], "which `frostpipe nets simulate` and `frostpipe nets train` take"),
        ]:
            with self.subTest(arguments):
                self.assert_refused(*arguments, code=2, says=says)

    def test_the_executed_plan_of_a_nets_run_is_refused_as_a_plan(self):
        """Also as it was written before, when its method was static."""
        self.run_tool(*self.arguments())
        operators = (self.folder / "mtrain.json").read_text()
        for method in ("operators", "static"):
            self.write("executed.json", {
                "format": "frostpipe.plan", "version": 1, "method": method, "world_size": 3, "global_batch_size": 12,
                "num_steps": 4, "optimizer": "sgd", "dtype": "float32", "partitioner": "exact",
                "memory_limited": False, "cache": {"dtype": "float32", "memory_bytes": 0, "disk_bytes": 0},
                "phases": [{
                    "from_step": 0, "first_trainable_layer": 0,
                    "layout": {"pipeline_parallel_size": 1, "data_parallel_size": 3, "tensor_parallel_size": 1,
                               "placement": []},
                    "partition": [{"begin": 0, "end": 23}], "num_micro_batches": 1, "schedule": "mtrain",
                    "tokens": 1, "longest_tokens": 0, "cache": {"on": False, "found": []},
                    "operator_plan": operators,
                    "predicted": {"iteration_ns": 1, "transformation_ns": 0, "peak_memory_bytes": []}}],
                "provenance": {"model_name": "net", "model_fingerprint": "", "model_path": "", "profile_path": "",
                               "profile_fingerprint": "", "cluster_path": "", "cluster_fingerprint": "",
                               "version": ""}})
            for command in (["simulate", "executed.json"], ["train", "executed.json", "--data", "d"],
                            ["nets", "simulate", "executed.json"], ["inspect", "executed.json"]):
                with self.subTest((method, *command)):
                    self.assert_refused(*command, code=2, says="executed.json: is the plan that a net's run has "
                                        "executed; name the one that `frostpipe nets plan` wrote")

    def test_a_config_says_which_pictures_and_labels_a_net_takes(self):
        vgg = {"architecture": "vgg16_bn", "num_classes": 10, "pretrained_cfg": {"input_size": [3, 32, 32]}}
        small = ("nets", "profile", "--hardware", "A100", "-o", "small.json", "--like")
        (self.folder / "vgg").mkdir()
        self.write("vgg/config.json", vgg)
        self.assertIn("vgg, 22 layers, mini-batch 64", self.run_tool(*small, "vgg").stdout)
        operators = {one["name"]: one for one in self.read("small.json")["operators"]}
        self.assertEqual(operators["fc3"]["weight_bytes"], 4 * 4097 * 10)
        self.assertEqual(operators["stage1.conv1"]["output_bytes"], 4 * 64 * 32 * 32 * self.read("small.json")["batch"])
        self.write("vgg/config.json", {**vgg, "head_norm": "layer"})
        self.assert_refused(*small, "vgg", says="vgg/config.json: head_norm: must not be given: it is not known here")
        self.write("vgg/config.json", {**vgg, "pretrained_cfg": {"input_size": [3, 31, 31]}})
        self.assert_refused(*small, "vgg/config.json",
                            says="pretrained_cfg.input_size: must be 32 to 255 pixels for a VGG, is 31")
        self.assert_refused(*small, "alexnet", says="--like: must be one of resnet-18, resnet-50, vgg-16-bn, "
                            'mobilenet, or a config.json or its folder, is "alexnet"')
        self.assert_refused(*small, "resnet-50", "--global-batch", 100000,
                            says="--global-batch: must be at most 85598 for resnet-50, so that the output of conv1 has "
                                 "at most 256 GiB, is 100000")
        self.assert_refused(*small, "resnet-18", "--picture-size", 32, code=2,
                            says="; use --like with a config.json that says it")
        self.assert_refused("nets", "profile", "--hardware", "cpu", "-o", "small.json", code=2,
                            says="needs either --model FOLDER or --like NAME")

    def test_frozen_layers_make_an_iteration_shorter(self):
        self.run_tool(*self.arguments())
        whole = self.read("mtrain.json")["predicted_ns"]
        self.run_tool(*self.arguments("--freeze", "10"))
        self.assertLess(self.read("mtrain.json")["predicted_ns"], whole)
        self.assert_refused(*self.arguments("--freeze", "23"), says="--freeze: must leave one of the 23 layers, is 23")

    def test_a_mini_batch_smaller_than_the_devices_is_not_shared_by_all(self):
        self.edit("ops.json", lambda ops: ops.update(batch=2))
        self.assert_refused(*self.arguments("--method", "mtrain-data-parallel"),
                            says="ops.json: batch: must be >= the 3 devices that share it, is 2")
        self.run_tool(*self.arguments())

    def test_an_operator_that_is_not_known_is_refused(self):
        self.edit("ops.json", lambda ops: ops["operators"][4].update(kind="attention"))
        self.assert_refused(*self.arguments(), says="ops.json: operators[4].kind: must be a kind of operator, such as "
                                                    'forward or weight_gradient, is "attention"')

    def test_bad_input_is_refused_in_a_sentence(self):
        self.assert_refused(*self.arguments("--slo", "10ms"), code=2, says="'frostpipe serving plan' has --slo")
        self.edit("mixed.json", lambda mixed: mixed["devices"][2].update(type="H100"))
        self.assert_refused(*self.arguments(), says='ops.json: must have times of every operator on "H100"')
        self.edit("ops.json", lambda ops: ops["edges"].append({"from": 5, "to": 0, "kind": "samples"}))
        self.assert_refused(*self.arguments(), says="ops.json: edges: must hold no cycle")
        self.edit("ops.json", lambda ops: ops["edges"].append({"from": 5, "to": 1000, "kind": "samples"}))
        self.assert_refused(*self.arguments(), says="must join two of the ")


if __name__ == "__main__":
    unittest.main()
