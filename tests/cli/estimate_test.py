"""A profile without measurements: from a config and a device's figures, through plan and simulate."""

import json
import unittest

from support import CliTest


class EstimateTest(CliTest):
    CONFIG = {"model_type": "gpt2", "n_embd": 256, "n_layer": 6, "n_head": 4, "n_positions": 128, "vocab_size": 1000}

    def test_a_config_on_a_device_is_planned(self):
        (self.folder / "config.json").write_text(json.dumps(self.CONFIG))
        for device in ("A100", "h200"):
            self.run_tool("profile", "--like", "config.json", "--hardware", device, "--nproc-per-node", 4,
                          "--global-batch", 64, "--samples", 640,
                          "--cluster", f"{device}.cluster.json", "-o", f"{device}.json")
            self.run_tool("plan", "--profile", f"{device}.json", "--cluster", f"{device}.cluster.json",
                          "--method", "static", "--global-batch", 64, "-o", f"{device}.plan.json")
        slow, fast = (self.read(f"{device}.plan.json")["phases"][0]["predicted"]["iteration_ns"]
                      for device in ("A100", "h200"))
        self.assertGreater(slow, fast)
        self.assertEqual(self.read("A100.cluster.json")["devices"][0]["memory_limit_bytes"], 40_000_000_000)

    def test_a_causal_language_model_is_cut_into_token_slices(self):
        self.write("config.json", {**self.CONFIG, "n_positions": 1024})
        self.run_tool("profile", "--like", "config.json", "--hardware", "A100", "--nproc-per-node", 4,
                      "--global-batch", 4, "--cluster", "cluster.json", "-o", "p.json")
        common = ("plan", "--cluster", "cluster.json", "--global-batch", 4, "--steps", 10)
        for name, choice in (("measured", ("--profile", "p.json", "--method", "terapipe")),
                             ("seq1f1b", ("--profile", "p.json", "--schedule", "Seq1F1B", "--fix", "pp=4"))):
            with self.subTest(name):
                self.run_tool(*common, *choice, "-o", f"{name}.plan.json")
                phase = self.read(f"{name}.plan.json")["phases"][0]
                self.assertEqual(sum(phase.get("token_slices", [1024])), 1024)
                self.assertIn("device-hours", self.run_tool("simulate", f"{name}.plan.json").stdout)
        self.assertGreater(len(self.read("seq1f1b.plan.json")["phases"][0]["token_slices"]), 1)
        given = [*common, *choice]  # Seq1F1B with the number of slices open: no bound, and no slower than with four
        free = json.loads(self.run_tool(*given, "--format", "json").stdout)
        four = json.loads(self.run_tool(*given, "--fix", "slices=4", "--format", "json").stdout)
        self.assertLessEqual(free["predicted_iteration_ns"], four["predicted_iteration_ns"])
        self.assertEqual((free["lower_bound_ns"], free["gap"]), (None, None))
        self.assertLessEqual(four["lower_bound_ns"], four["predicted_iteration_ns"])
        self.write("bert.json", {"model_type": "bert", "hidden_size": 64, "num_hidden_layers": 4, "vocab_size": 100,
                                "num_attention_heads": 2, "intermediate_size": 256, "max_position_embeddings": 64,
                                "type_vocab_size": 2})
        self.run_tool("profile", "--like", "bert.json", "--hardware", "A100", "--global-batch", 4, "-o", "b.json")
        self.assert_refused(*common, "--profile", "b.json", "--method", "terapipe", "-o", "none.json",
                            says="must describe a causal language model")

    def test_plan_estimates_a_model_by_itself(self):
        """As `profile --like` with the same figures does."""
        self.write("config.json", self.CONFIG)
        before = set(self.folder.iterdir())
        shown = self.run_tool("plan", "--model", "config.json", "--hardware", "A100", "--nproc-per-node", 4).stdout
        self.assertIn("4 ranks", shown)
        self.assertEqual(set(self.folder.iterdir()), before)
        self.run_tool("plan", "--model", "config.json", "--hardware", "A100", "--nproc-per-node", 4, "-o", "own.json")
        self.run_tool("profile", "--like", "config.json", "--hardware", "A100", "--nproc-per-node", 4, "--dtype",
                      "bfloat16", "--tensor-parallel", "2,4", "--global-batch", 128, "--cluster", "c.json", "-o",
                      "p.json")
        self.run_tool("plan", "--profile", "p.json", "--cluster", "c.json", "--global-batch", 128, "-o", "other.json")
        self.assertEqual(self.read("own.json")["phases"], self.read("other.json")["phases"])
        self.assertEqual(self.read("own.cluster.json"), self.read("c.json"))
        self.run_tool("simulate", "own.json")

    def test_plan_takes_files_or_a_model(self):
        for arguments, says in ((("--model", "bert-large", "--cluster", "c"), "--cluster excludes --model"),
                                (("--model", "bert-large", "--profile", "p"), "--profile excludes --model"),
                                (("--cluster", "c"), "needs --profile FILE and --cluster FILE, or --model NAME"),
                                (("--profile", "p", "--cluster", "c"), "--global-batch is required with --profile"),
                                (("--nodes", 2), "--nodes requires --model")):
            with self.subTest(arguments):
                self.assert_refused("plan", *arguments, code=2, says=says)

    def test_a_number_of_threads_is_refused_without_the_name_of_a_file_that_is_not_written(self):
        self.write("config.json", self.CONFIG)
        self.assert_refused("plan", "--model", "config.json", "--threads-per-rank", 4, code=1,
                            says="--threads-per-rank: must be a number that the profile has for all devices: 1, is 4")

    def test_nodes_times_devices_per_node_as_torchrun_counts(self):
        self.write("config.json", self.CONFIG)
        for nodes, per_node in ((4, 4), (4, 6), (1, 3)):
            self.run_tool("profile", "--like", "config.json", "--nodes", nodes, "--nproc-per-node", per_node,
                          "--cluster", "c.json", "-o", "p.json")
            self.assertEqual([device["node"] for device in self.read("c.json")["devices"]],
                             [node for node in range(nodes) for _ in range(per_node)])

    def test_ranks_of_this_machine_are_no_nodes_to_measure(self):
        self.assert_refused("profile", "--model", "model", "--nodes", 2, "-o", "p.json", code=2,
                            says="--model excludes --nodes")

    def test_a_cluster_that_no_command_could_read_is_not_written(self):
        self.write("config.json", self.CONFIG)
        self.assert_refused("profile", "--like", "config.json", "--memory-limit", "9000TiB",
                            "--cluster", "c.json", "-o", "p.json", says="memory_limit_bytes: must be <= ")
        self.assertFalse((self.folder / "p.json").exists() or (self.folder / "c.json").exists())

    def test_options_without_effect_are_refused(self):
        self.write("config.json", self.CONFIG)
        for options, says in ((("--frozen-dtype", "bfloat16"), "--frozen-dtype requires --model"),
                              (("--data", "nosuch.tsv"), "--data requires --model"),
                              (("--micro-batch-sizes", "1,2"), "--micro-batch-sizes requires --model"),
                              (("--seed", 3), "--seed requires --model"),
                              (("--tokens", "16,32"), "--tokens: takes one length"),
                              (("--sequence-parallel",), "--sequence-parallel requires --tensor-parallel")):
            with self.subTest(options):
                self.assert_refused("profile", "--like", "config.json", *options, "-o", "p.json", code=2, says=says)
        self.assert_refused("profile", "--import", "graph.txt", "--hardware", "A100", "-o", "p.json", code=2,
                            says="--hardware requires --like")
        self.assert_refused("profile", "--model", "model", "--hardware", "A100", "-o", "p.json", code=2,
                            says="--hardware requires --like")
        self.assert_refused("profile", "--model", "model", "--samples", 10, "-o", "p.json", code=2,
                            says="--model excludes --samples")

    def test_replicas_share_out_experts(self):
        """Oracle, computed by hand: each of two replicas has half of each layer's 4 experts, of 3 matrices of 64 x
        128."""
        self.write("moe.json", {"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 4, "vocab_size": 100,
                                "num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 128,
                                "num_local_experts": 4})
        profile = ("profile", "--like", "moe.json", "--nproc-per-node", 4, "--global-batch", 16, "--tokens", 64,
                   "--cluster", "c.json")
        self.run_tool(*profile, "--expert-parallel", 2, "-o", "shared.json")
        self.assertEqual(self.read("shared.json")["model"]["expert_parallel_size"], 2)
        plan = ("plan", "--cluster", "c.json", "--global-batch", 16, "--steps", 10)
        self.run_tool(*plan, "--profile", "shared.json", "-o", "shared.plan.json")
        layout = self.read("shared.plan.json")["phases"][0]["layout"]
        self.assertEqual(layout["data_parallel_size"] % 2, 0)
        self.assert_refused(*plan, "--profile", "shared.json", "--fix", "pp=4", "-o", "none.json",
                            says="1 replica cannot share out experts by 2")
        self.run_tool(*profile, "-o", "whole.json")
        peaks = []
        for name in ("shared", "whole"):
            self.run_tool(*plan, "--profile", f"{name}.json", "--method", "data-parallel", "-o", f"{name}.plan.json")
            peaks.append(self.read(f"{name}.plan.json")["phases"][0]["predicted"]["peak_memory_bytes"][0])
        self.assertEqual(peaks[1] - peaks[0], 4 * 2 * (3 * 64 * 128) * 4 * 4)  # weight, gradient, two moments
        self.assert_refused(*profile, "--expert-parallel", 3, "-o", "none.json",
                            says="--expert-parallel: must divide the 4 experts of mixtral, is 3")

    def test_one_rank_alone_is_always_estimated(self):
        self.write("config.json", self.CONFIG)
        self.run_tool("profile", "--like", "config.json", "--tensor-parallel", 2, "--nproc-per-node", 2, "-o", "p.json")
        sizes = {one["key"]["tensor_parallel_size"] for one in self.read("p.json")["measurements"]}
        self.assertEqual(sizes, {1, 2})

    def test_tensor_ranks_share_the_ranks_and_the_heads(self):
        """Oracle: the rule for measured profiles and for training, which is by key and value heads where there are
        several, and by the heads of queries where there is one."""
        llama = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 8,
                 "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 64}
        for heads, sizes, ranks, says in (
                (2, 3, 8, "must divide the 8 ranks of a node, is 3"),
                (2, 16, 8, "must divide the 8 ranks of a node, is 16"),
                (2, "1,2,4", 8, "must be at most 2, the model's attention heads that can be shared, is 4"),
                (8, 16, 16, "must be at most 8, the model's attention heads that can be shared, is 16"),
                (2, 2, 8, None), (1, 8, 8, None), (8, 8, 8, None)):
            with self.subTest(heads=heads, sizes=sizes):
                self.write("llama.json", {**llama, "num_key_value_heads": heads})
                profile = ("profile", "--like", "llama.json", "--tensor-parallel", sizes, "--nproc-per-node", ranks,
                           "-o", "p.json")
                if says:
                    self.assert_refused(*profile, says="--tensor-parallel: " + says)
                else:
                    self.run_tool(*profile)
        self.write("llama.json", {**llama, "num_key_value_heads": 2})
        plan = ("plan", "--model", "llama.json", "--nproc-per-node", 8, "-o", "plan.json", "--fix")
        self.run_tool(*plan, "tp=2")
        self.assert_refused(*plan, "tp=4", says="tensor-parallel size 4: was not measured")

    def test_an_imported_graph_is_planned_and_simulated_but_not_rehearsed(self):
        (self.folder / "graph.txt").write_text("".join(
            f"node{i} -- Linear -- forward_compute_time={i}.0, backward_compute_time={2 * i}.0, "
            "activation_size=1000.0, parameter_size=400.0\n" for i in range(1, 7))
            + "".join(f"\tnode{i} -- node{i + 1}\n" for i in range(1, 6)))
        self.run_tool("profile", "--import", "graph.txt", "--import-samples", 64, "--nproc-per-node", 2,
                      "--global-batch", 64, "--cluster", "cluster.json",
                      "-o", "graph.json")
        self.run_tool("plan", "--profile", "graph.json", "--cluster", "cluster.json", "--method", "static",
                      "--global-batch", 64, "-o", "graph.plan.json")
        self.assertIn("device-hours", self.run_tool("simulate", "graph.plan.json").stdout)
        refused = self.run_tool("train", "graph.plan.json", "--device", "emulated", "-o", "run", code=1)
        self.assertRegex(refused.stderr, "must be a Transformer .* simulate")

    def test_the_faulty_field_is_named(self):
        (self.folder / "config.json").write_text(json.dumps({**self.CONFIG, "model_type": "mamba"}))
        self.assert_refused("profile", "--like", "config.json", "-o", "p.json", code=1,
                            says=["model_type", "must be one of bert, vit, gpt2", "is \"mamba\""])
        self.assert_refused("profile", "--like", "nowhere", "-o", "p.json", code=1, says="nowhere")
        self.assert_refused("profile", "--like", "vit-b16", "--hardware", "abacus", "-o", "p.json", code=2,
                            says=["--hardware: must be one of", "A100", 'or a file, is "abacus"'])
        self.write("broken.json", "{}")
        self.assert_refused("profile", "--like", "vit-b16", "--hardware", "broken.json", "-o", "p.json", code=1,
                            says="broken.json: ")

    def test_a_model_that_is_too_large_for_all_devices_is_reported(self):
        """70,553,706,496 parameters have 4 bytes each of weight, gradient and two moments, and 2 of a copy in bfloat16;
        of eight times 40 GB, 2 % are kept free."""
        refused = self.run_tool("plan", "--model", "llama-3-70b", "--hardware", "A100", code=1).stderr
        layout = r"(t = \d, )?p = \d: "
        self.assertRegex(refused, rf"^frostpipe: no auto plan fits: {layout}stage \d needs .*\n  {layout}")
        self.assertRegex(refused, r"\n  and \d+ more layouts\n")
        self.assertIn("Weights, gradients and optimizer state need about 1.16 TiB, 18 bytes for each of 70.6 billion "
                      "parameters; all 8 devices have 292 GiB.\n", refused)
        whole_replicas = self.run_tool("plan", "--model", "llama-3-8b", "--hardware", "A100", "--fix", "dp=8", code=1)
        self.assertNotIn("Weights, gradients and optimizer state need", whole_replicas.stderr)

    def test_an_unknown_name_is_refused_with_the_known_ones(self):
        self.assert_refused("profile", "--like", "bert-base-uncased", "-o", "none.json",
                            says=["must be one of gpt2, ", "deepseek-v3, or a config.json or its folder",
                                  "hf download bert-base-uncased --local-dir bert-base-uncased"])

    def test_names_are_read_in_any_case(self):
        given = self.run_tool("plan", "--model", "GPT2", "--hardware", "a100", "--schedule", "1f1b", "--fix", "pp=2",
                              "--fix", "m=8", "--format", "json").stdout
        same = self.run_tool("plan", "--model", "gpt2", "--hardware", "A100", "--schedule", "1F1B", "--fix", "pp=2",
                             "--fix", "m=8", "--format", "json").stdout
        self.assertEqual(given, same)
        self.assertEqual(json.loads(given)["phases"][0]["schedule"], "1F1B")
        self.assert_refused("plan", "--model", "gpt2", "--schedule", "1f1c", code=2, says=["--schedule", "1f1c"])

    def test_a_folder_comes_before_a_name_in_another_case(self):
        (self.folder / "GPT2").mkdir()
        (self.folder / "GPT2" / "config.json").write_text(json.dumps({**self.CONFIG, "model_type": "mamba"}))
        self.assert_refused("profile", "--like", "GPT2", "-o", "p.json", code=1, says="is \"mamba\"")

    def test_tokens_per_second_of_models_of_text(self):
        """By hand: 128 samples of 1024 tokens in each iteration. Pictures have none."""
        for model, tokens in (("gpt2", 1024), ("vit-b16", None)):
            answer = json.loads(self.run_tool("plan", "--model", model, "--nproc-per-node", 4, "--fix", "pp=2",
                                              "--schedule", "1F1B", "-o", "p.json", "--format", "json").stdout)
            simulated = json.loads(self.run_tool("simulate", "p.json", "--format", "json").stdout)["phases"][0]
            self.assertEqual(simulated["stages_of_ranks"], [[0], [0], [1], [1]])
            text = self.run_tool("simulate", "p.json").stdout
            if tokens is None:
                self.assertNotIn("tokens_per_second", answer["phases"][0])
                self.assertNotIn("tokens_per_second", simulated)
                self.assertNotIn("tokens/s", text)
                continue
            expected = 128 * tokens * 1e9 / answer["predicted_iteration_ns"]
            self.assertAlmostEqual(answer["phases"][0]["tokens_per_second"], expected)
            self.assertAlmostEqual(simulated["tokens_per_second"], expected)
            self.assertRegex(text, rf"tokens/s(.|\n)* {expected:.0f} ")

    def test_operations_of_the_model_and_their_rate(self):
        """By hand: 6 FLOP per token for each of 8,030,261,248 parameters but those of the table, 128256 x 4096, and of
        65 norms of 4096; in the attention of each of 32 layers 12 x 4096 for each key that a query meets, 2049 / 2 on
        average; 6 x 4096 for the embedding's sums. An H100 has 989 TFLOP/s in bfloat16."""
        shown = self.run_tool("plan", "--model", "llama-3-8b", "--hardware", "H100", "--tokens", 2048, "--global-batch",
                              64, "--schedule", "1F1B", "--fix", "pp=4", "--fix", "tp=2", "--fix", "m=8",
                              "-o", "p.json", "--format", "json")
        answer = json.loads(shown.stdout)
        matrices = 8_030_261_248 - 128256 * 4096 - 65 * 4096
        per_token = 6 * (matrices + 4096 * 2049 * 32 + 4096)
        rate = 64 * 2048 * per_token / (answer["predicted_iteration_ns"] * 1e-9) / 8
        simulated = json.loads(self.run_tool("simulate", "p.json", "--format", "json").stdout)
        for figures in (answer, simulated):
            self.assertEqual(figures["parameter_count"], 8_030_261_248)
            self.assertAlmostEqual(figures["flops_per_token"] / per_token, 1)
            self.assertAlmostEqual(figures["flops_per_sample"] / (2048 * per_token), 1)
            phase = figures["phases"][0]
            self.assertEqual(phase["micro_batch_size"], 8)
            self.assertAlmostEqual(phase["flops_per_second_per_device"] / rate, 1)
            self.assertAlmostEqual(phase["mfu"] / (rate / 989e12), 1)
        line = (f"; forward and backward take {per_token / 1e9:.1f} GFLOP per token, "
                f"{2048 * per_token / 1e12:.1f} TFLOP per sample of 2048 tokens\n"
                f"first phase: 8 micro-batches of 8 samples; {rate / 1e12:.0f} TFLOP/s per device, "
                f"{rate / 989e10:.1f} % of the peak of H100 in bfloat16 (MFU)\n")
        text = self.run_tool("simulate", "p.json").stdout
        self.assertIn("model: 8.03 billion parameters" + line, text)
        self.assertIn(" 8 x 8  1F1B ", text)
        older = {key: value for key, value in self.read("p.profile.json").items() if key != "forward_flops"}
        self.write("old.json", older)
        text = self.run_tool("simulate", "p.json", "--profile", "old.json").stdout
        self.assertIn("model: 8.03 billion parameters\nfirst phase: 8 micro-batches of 8 samples\n", text)

    def test_a_plan_without_expert_parallelism_says_so(self):
        note = ("this is without expert parallelism: every replica holds all experts. To distribute them over N "
                "replicas, plan from a profile: frostpipe profile --like mixtral-8x7b --hardware H100 --nodes 2 "
                "--nproc-per-node 8 --dtype bfloat16 --tokens 512 --global-batch 64 --expert-parallel N "
                "-o profile.json --cluster cluster.json")
        given = ("--model", "mixtral-8x7b", "--nodes", 2, "--tokens", 512, "--global-batch", 64)
        for options in ((), ("--format", "json")):
            self.assertIn(note, self.run_tool("plan", *given, *options).stderr)
        self.assertIn(note, self.run_tool("plan", *given, "--fix", "pp=1", "--fix", "tp=1", code=1).stderr)
        command = note.split("frostpipe ")[-1].replace("parallel N", "parallel 2").split()
        self.run_tool(*command)
        spread = self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 64)
        self.assertNotIn("expert", spread.stderr)
        dense = self.run_tool("plan", "--model", "gpt2", "--nodes", 2, "--tokens", 512, "--global-batch", 64)
        self.assertNotIn("expert", dense.stderr)

    def test_a_part_of_the_layout_is_fixed_once(self):
        self.assert_refused("plan", "--model", "gpt2", "--fix", "pp=2", "--fix", "pp=4", code=2,
                            says="--fix: must give pp once, is pp=2 and pp=4")


if __name__ == "__main__":
    unittest.main()
