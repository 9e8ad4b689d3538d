"""An error names file, place, rule and value, and nothing is overwritten."""

import unittest

from support import CliTest, synthetic_cluster


def set_at(value, path, new):
    for key in path[:-1]:
        value = value[key]
    if new is DELETED:
        del value[path[-1]]
    else:
        value[path[-1]] = new


DELETED = object()


class OutputTest(CliTest):
    def test_no_file_is_read_and_written_or_written_twice(self):
        self.plan("plan.json", "static")
        (self.folder / "link.json").symlink_to("plan.json")
        plan = ("plan", "--cluster", "cluster.json", "--global-batch", 64, "--method", "static")
        for arguments, whose in (((*plan, "--profile", "profile.json", "-o", "./profile.json"), "--profile's"),
                                ((*plan, "--profile", "profile.json", "-o", "cluster.json"), "--cluster's"),
                                (("simulate", "plan.json", "--timeline", "plan.json"), "PLAN's"),
                                (("simulate", "plan.json", "--timeline", "link.json"), "PLAN's"),
                                (("simulate", "plan.json", "--timeline", "a.svg", "--memory", "a.svg"), "--memory's"),
                                (("profile", "--like", "vit-b16", "-o", "new.json", "--cluster", "new.json"),
                                 "--cluster's"),
                                (("evaluate", "--model", "model", "--data", "profile.json", "--predictions",
                                  "profile.json"), "--data's"),
                                (("report", "plan.json", "-o", "plan.json"), "SUMMARY's"),
                                (("compare", "plan.json", "profile.json", "-o", "profile.json"), "PLAN SUMMARY's")):
            with self.subTest(arguments):
                before = {path.name: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}
                self.assert_refused(*arguments, code=2, says=[f"is {whose} file too", "would be overwritten"])
                self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir() if path.is_file()},
                                 before)
        self.run_tool("simulate", "plan.json", "--timeline", "/dev/null", "--memory", "m.svg")
        self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 64,
                      "--method", "static", "-o", "static")  # a word that is not a file name

    def test_a_joined_profile_overwrites_none_that_it_is_made_of(self):
        self.write("a.profile.json", self.read("profile.json"))
        before = (self.folder / "a.profile.json").read_bytes()
        self.assert_refused("plan", "--profile", "a.profile.json", "--profile", "profile.json",
                            "--cluster", "cluster.json", "--global-batch", 64, "--method", "static", "-o", "a.json",
                            code=2, says=["a.profile.json is one of --profile's"])
        self.assertEqual((self.folder / "a.profile.json").read_bytes(), before)

    def test_outputs_are_tried_before_the_work(self):
        """Without the check these commands would end with another error, or only after runs."""
        self.write("occupied", "a file")
        self.edit("profile.json", lambda profile: profile.pop("workload"))
        for command in (("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 64,
                         "-o", "occupied/plan.json"),
                        ("profile", "--like", "unheard-of", "-o", "p.json", "--cluster", "occupied/cluster.json"),
                        ("profile", "--model", "nowhere", "-o", "occupied/p.json"),
                        ("bench", "rehearsal", "-o", "occupied/bench")):
            with self.subTest(command):
                self.assert_refused(*command, says=["occupied/", "cannot be written"])
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()),
                         ["cluster.json", "occupied", "profile.json"])


class BadProfileTest(CliTest):
    def assert_plan_refused(self, says, file="profile.json"):
        self.write("old.json", "keep me")
        self.assert_refused("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 64,
                            "--method", "static", "-o", "old.json", says=[file, *says])
        self.assertEqual((self.folder / "old.json").read_text(), "keep me")

    def test_fields(self):
        for path, new, says in [
            (["format"], "someone.else", ["format", "frostpipe.profile", "someone.else"]),
            (["version"], 99, ["version", "99"]),
            (["machine"], DELETED, ["machine"]),
            (["measurements", 3, "cost", "forward_ns"], DELETED, ["measurements[3].cost", "forward_ns"]),
            (["measurements", 3, "cost", "forward_ns"], -5, ["measurements[3].cost.forward_ns", "must be >= 0", "-5"]),
            (["measurements", 3, "cost", "forward_ns"], "fast", ["measurements[3].cost.forward_ns", "integer", "fast"]),
            (["measurements", 3, "cost", "forward_ns"], 1.5, ["measurements[3].cost.forward_ns", "integer", "1.5"]),
            (["measurements", 3, "cost", "foward_ns"], 1, ["measurements[3].cost.foward_ns", "forward_ns"]),
            (["measurements", 0, "key", "micro_batch_size"], 0, ["measurements[0].key.micro_batch_size", ">= 1", "0"]),
            (["model", "layers", 1, "kind"], "convolution", ["model.layers[1].kind", "convolution"]),
        ]:
            with self.subTest(path=path, new=str(new)):
                self.setUp()
                self.edit("profile.json", lambda profile: set_at(profile, path, new))
                self.assert_plan_refused(says)

    def test_profiles_from_which_no_plan_can_be_made(self):
        def no_backward(profile):
            for measurement in profile["measurements"]:
                measurement["cost"].update(input_gradient_ns=0, weight_gradient_ns=0)
        for change, says in [(no_backward, ["must have backward times"]),
                             (lambda profile: profile.update(measurements=[]),
                              ["must have backward times", "no measurements"]),
                             (lambda profile: set_at(profile, ["measurements", 3, "cost", "forward_ns"], 2**62),
                              ["profile.json: measurements[3].cost.forward_ns", "must be <= 1000000000000000"])]:
            self.setUp()
            self.edit("profile.json", change)
            self.assert_refused("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 64,
                                "--method", "auto", "-o", "new.json", says=says)
        self.setUp()
        self.write("profile.json",
                   (self.folder / "profile.json").read_text().replace('"forward_ns": 2000', '"forward_ns": NaN', 1))
        self.assert_plan_refused(["is not valid JSON"])

    def test_a_million_layers(self):
        layers = [{"name": "embedding", "kind": "embedding", "parameter_count": 1}]
        layers += [{"name": f"layer{i}", "kind": "layer", "block": i, "parameter_count": 1} for i in range(1_000_000)]
        self.edit("profile.json", lambda profile: profile["model"].update(layers=layers))
        self.assert_plan_refused(["must be at most 64 MiB"])

    def test_more_stages_than_layers_and_fewer_samples_than_micro_batches(self):
        self.write("cluster.json", synthetic_cluster(num_ranks=32))
        plan = ["plan", "--profile", "profile.json", "--cluster", "cluster.json", "--method", "static",
                "-o", "new.json"]
        self.assert_refused(*plan, "--global-batch", 64, "--fix", "pp=32", says=["the model has 14 layers"])
        self.assert_refused(*plan, "--global-batch", 64, "--fix", "pp=2", "--fix", "m=5",
                            says=["64 samples are too few for 5 micro-batches on each of 16 replicas"])
        # More ranks would need even more.
        stderr = self.assert_refused(*plan[:-4], "--method", "data-parallel", "-o", "new.json", "--global-batch", 4,
                                     says=["4 samples are too few for 1 micro-batch on each of 32 replicas",
                                           "a global batch of 32"])
        self.assertNotIn("more ranks", stderr)
        self.assert_refused(*plan, "--global-batch", 64, "--fix", "pp=2", "--fix", "dp=17",
                            says=["p = 2: this takes 34 ranks for 17 replicas, the cluster has 32"])

    def test_a_device_type_that_no_profile_knows_is_said_once(self):
        self.edit("cluster.json", lambda cluster: [device.update(type="V100") for device in cluster["devices"]])
        stderr = self.assert_refused("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch",
                                     64, "-o", "new.json",
                                     says=["p = 1, 2: profile of synthetic: layer 0 on V100",
                                           "(the profile is of cpu; make one of V100 too)"])
        self.assertEqual(stderr.count("V100 in float32"), 1)

    def test_not_json(self):
        self.write("profile.json", "{\n  oops")
        self.assert_plan_refused(["line 2"])

    def test_empty_file(self):
        self.write("profile.json", "")
        self.assert_plan_refused([])

    def test_a_cluster_in_place_of_a_profile(self):
        self.write("profile.json", synthetic_cluster())
        self.assert_plan_refused(["format", "frostpipe.cluster"])

    def test_negative_latency(self):
        self.edit("cluster.json", lambda cluster: set_at(cluster, ["intra_node", "point_to_point", "latency_ns"], -1))
        self.assert_plan_refused(["intra_node.point_to_point.latency_ns", "-1"], file="cluster.json")


class BadPlanTest(CliTest):
    def setUp(self):
        super().setUp()
        self.plan("plan.json", "static")

    def assert_simulation_refused(self, says):
        self.write("old.trace.json", "keep me")
        self.assert_refused("simulate", "plan.json", "--timeline", "old.trace.json", says=["plan.json", *says])
        self.assertEqual((self.folder / "old.trace.json").read_text(), "keep me")

    def test_fields(self):
        for path, new, says in [
            (["version"], 3, ["version", "3"]),
            (["phases", 0, "partition"], [{"begin": 0, "end": 6}, {"begin": 7, "end": 14}], ["phases[0].partition"]),
            (["phases", 0, "partition"], [{"begin": 0, "end": 6}, {"begin": 6, "end": 13}], ["phases[0].partition"]),
            (["phases", 0, "schedule"], "Zigzag", ["phases[0].schedule", "Zigzag"]),
            (["phases", 0, "from_step"], 3, ["phases[0].from_step", "3"]),
            (["phases", 0, "num_micro_batches"], 0, ["phases[0].num_micro_batches", "0"]),
            (["phases", 0, "num_micro_batches"], 2**31 - 1,
             ["phases[0].num_micro_batches", "must be <= 1048576", "2147483647"]),
            (["phases", 0, "num_micro_batches"], 65,
             ["phases[0].num_micro_batches", "must be <= 64, the samples of a mini-batch", "65"]),
            (["global_batch_size"], 2**31 - 1, ["global_batch_size", "must be <= 16777216"]),
            (["world_size"], 2**31 - 1, ["world_size", "must be <= 1048576"]),
            (["threads_per_rank"], 2**31 - 1, ["threads_per_rank", "must be <= 1024"]),
            (["phases", 0, "tokens"], 2**31 - 1, ["phases[0].tokens", "must be <= 16777216"]),
            (["phases", 0, "predicted", "iteration_ns"], 2**62,
             ["phases[0].predicted.iteration_ns", "must be <= 1000000000000000"]),
            (["phases", 0, "layout", "data_parallel_size"], 8, ["phases[0].layout"]),
            (["phases"], [], ["phases"]),
        ]:
            with self.subTest(path=path, new=str(new)):
                self.setUp()
                self.edit("plan.json", lambda plan: set_at(plan, path, new))
                self.assert_simulation_refused(says)

    def test_shapes_that_a_schedule_does_not_have(self):
        looped = {"schedule": "Interleaved1F1B", "virtual_stages": 2,
                  "partition": [{"begin": 0, "end": 4}, {"begin": 4, "end": 8}, {"begin": 8, "end": 11},
                                {"begin": 11, "end": 14}]}
        schedule = "phases[0].schedule: schedule "
        for change, says in [
            ({"schedule": "ZB-H2", "num_micro_batches": 2}, [f"{schedule}ZB-H2: number", "must be >= 2 p - 1", "is 2"]),
            ({**looped, "schedule": "DualPipeV", "num_micro_batches": 3},
             [f"{schedule}DualPipeV: number of micro-batches", "must be >= 2 p", "is 3"]),
            ({**looped, "num_micro_batches": 5},
             [f"{schedule}Interleaved1F1B: number of micro-batches", "a multiple of the rounds", "4 or 6", "is 5"]),
            ({**looped, "schedule": "1F1B"}, [f"{schedule}1F1B: stages per rank: must be 1, is 2"]),
            ({"schedule": "ZBVZeroBubble"}, [f"{schedule}ZBVZeroBubble: stages per rank: must be 2, is 1"]),
            ({**looped, "virtual_stages": 8}, ["phases[0].partition: must have 16 stages", "2 times 8", "is 4 stages"]),
            ({"token_slices": [8, 8]}, [f"{schedule}", "token slices", "TeraPipe and Seq1F1B", "is 2"]),
            ({"schedule": "TeraPipe", "token_slices": [8, 8]},
             ["phases[0].token_slices: must be empty: only causal language models, such as GPT-2 and Llama, have them",
              "; plan without slices, is synthetic"]),
        ]:
            with self.subTest(change=change):
                self.plan("plan.json", "static", "--schedule", "1F1B")
                self.edit("plan.json", lambda plan: (plan.update(version=2), plan["phases"][0].update(change)))
                self.assert_simulation_refused(says)

    def test_changed_profile(self):
        self.edit("profile.json", lambda profile: profile.update(machine="another"))
        self.assert_simulation_refused(["provenance.profile_fingerprint", "profile.json", "make the plan again",
                                        "--profile"])
        self.run_tool("simulate", "plan.json", "--profile", "profile.json")

    def test_changed_cluster(self):
        self.edit("cluster.json", lambda cluster: cluster.update(name="another"))
        self.assert_simulation_refused(["provenance.cluster_fingerprint", "cluster.json", "--cluster"])

    def test_plan_for_another_model(self):
        def smaller(profile):
            profile["model"]["layers"][1]["parameter_count"] = 1
        self.edit("profile.json", smaller)
        self.assert_refused("simulate", "plan.json", "--profile", "profile.json", says=["plan.json", "model"])

    def test_cluster_of_another_size(self):
        self.write("four.json", synthetic_cluster(num_ranks=4))
        self.assert_refused("simulate", "plan.json", "--cluster", "four.json",
                            says=["four.json: devices", "world size of plan.json", "is 4"])


if __name__ == "__main__":
    unittest.main()
