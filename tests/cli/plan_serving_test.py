"""Serving plans: the options of plan, its output, and the input that it refuses."""

import json
import unittest

from support import CliTest, synthetic_cluster, synthetic_serving_plan


class PlanServingTest(CliTest):
    def setUp(self):
        """Two devices of the type "cpu" and four of the type "slow", which takes three times as long."""
        super().setUp()
        profile = self.read("profile.json")
        self.write("slow.json", json.dumps(profile).replace('"cpu"', '"slow"'))
        self.edit("slow.json", lambda slow: [one["cost"].update(frozen_forward_ns=3 * one["cost"]["frozen_forward_ns"])
                                             for one in slow["measurements"]])
        mixed = synthetic_cluster(6)
        for rank, device in enumerate(mixed["devices"]):
            device.update(node=rank // 2, type="cpu" if rank < 2 else "slow")
        mixed["price_per_hour"] = {"cpu": 2, "slow": 0.5}
        self.write("mixed.json", mixed)

    def arguments(self, *options):
        return ("serving", "plan", "--profile", "profile.json", "--profile", "slow.json", "--cluster",
                "mixed.json", "-o", "serving.json", *options)

    def serve(self, *options):
        done = self.run_tool(*self.arguments("--slo", "20ms", *options))
        self.assertEqual(done.stderr, "")
        return done.stdout

    def refused(self, *options, **how):
        return self.assert_refused(*self.arguments(*options), **how)

    def test_a_plan_is_written_shown_and_explained(self):
        text = self.serve("--explain")
        plan = self.read("serving.json")
        self.assertEqual((plan["kind"], plan["method"], plan["version"]), ("serving", "ppipe", 3))
        self.assertTrue(text.startswith("serving.json: ppipe plan for serving 1 model on 2 cpu and 4 slow\n"), text)
        for words in ("SLO [ms]", "what binds\n", "building of 12.0 ms that the margin leaves of 20.0 ms"):
            self.assertIn(words, text)
        [model] = plan["models"]
        self.assertAlmostEqual(plan["objective_value"], model["requests_per_second"])
        self.assertEqual(sum(pool["num_virtual_devices"] for pipeline in model["pipelines"]
                             for pool in pipeline["partitions"] if pool["device_class"] == "cpu"), 2)

    def test_inspect_shows_the_plan_that_is_there(self):
        shown = self.serve("--explain")
        self.assertEqual(self.run_tool("serving", "inspect", "serving.json").stdout, shown)
        self.assertEqual(json.loads(self.run_tool("serving", "inspect", "serving.json", "--format", "json").stdout),
                         self.read("serving.json"))

    def test_each_class_has_a_line_that_says_what_it_is_for_or_why_not(self):
        """The plan depends on whether a request's time on "slow" fits into the part of the objective that the margin
        leaves."""
        self.assertRegex(self.serve("--explain"), r"\n  2 of 2 cpu in use, for blocks \[\d+,\d+\) of synthetic")
        self.edit("slow.json", lambda slow: [one["cost"].update(frozen_forward_ns=10 ** 9)
                                             for one in slow["measurements"]])
        too_slow = self.serve("--explain")
        self.assertIn("\n  none of 4 slow in use: no pipeline with it answers in time\n", too_slow)
        self.assertEqual(self.run_tool("serving", "inspect", "serving.json").stdout,
                         too_slow.replace(": no pipeline with it answers in time", ""))
        cheapest = self.serve("--required-rate", 10, "--explain", "--weight", 1)
        self.assertIn("\n  none of 4 slow in use: no pipeline with it answers in time\n", cheapest)

    def test_times_that_fall_as_batches_grow_are_named_and_no_plan_has_them(self):
        """On "slow" a forward of one request takes as long as one of 1000 times as many; each plan's times of a batch
        must ascend."""
        self.edit("slow.json", lambda slow: [one["cost"].update(frozen_forward_ns=1000 * one["cost"][
            "frozen_forward_ns"]) for one in slow["measurements"] if one["key"]["micro_batch_size"] == 1])
        done = self.run_tool(*self.arguments("--slo", "900s"))
        self.assertRegex(done.stderr, r"WARNING: by its profile, synthetic takes .* for a batch of 1 on slow, but only "
                                      r".* for one of \d+: such times are mostly noise; profile again")
        [model] = self.read("serving.json")["models"]
        for pipeline in model["pipelines"]:
            for pool in pipeline["partitions"]:
                self.assertEqual(pool["compute_ns"], sorted(pool["compute_ns"]))

    def test_a_request_is_as_long_as_the_longest_sample_that_was_measured(self):
        """The profile knows 16 and 32 tokens."""
        def tokens_with(mean, longest, *options):
            for name in "profile.json", "slow.json":
                self.edit(name, lambda profile: profile["workload"].update(tokens=mean, longest_tokens=longest))
            text = self.serve(*options)
            [model] = self.read("serving.json")["models"]
            self.assertRegex(text, r"tokens .*\n.*\nsynthetic +20\.0 +%d " % model["tokens"])
            return model["tokens"]

        self.assertEqual(tokens_with(17.4, 30), 30)
        self.assertEqual(tokens_with(17.4, 200), 17)
        self.assertEqual(tokens_with(17.4, 30, "--tokens", 20), 20)

    def test_stdout_as_json_is_the_plan(self):
        self.assertEqual(json.loads(self.serve("--format", "json")), self.read("serving.json"))

    def test_options_shape_the_plan(self):
        self.serve("--margin", 0.9, "--max-partitions", 1, "--weight", "synthetic=2")
        plan = self.read("serving.json")
        self.assertEqual(plan["margins"]["objective_fraction"], 0.9)
        [model] = plan["models"]
        self.assertEqual((model["weight"], model["objective_ns"]), (2, 20_000_000))
        self.assertTrue(all(len(pipeline["partitions"]) == 1 for pipeline in model["pipelines"]))
        self.assertAlmostEqual(plan["objective_value"], model["requests_per_second"] / 2)

    def test_the_cheapest_plan_has_a_price(self):
        text = self.serve("--required-rate", 10, "--explain")
        self.assertIn("price of the devices in use: 0.50 per hour", text)
        self.assertNotIn("least throughput per weight", text)
        self.assertEqual(self.read("serving.json")["models"][0]["required_requests_per_second"], 10)

    def test_heads_behind_shared_layers_are_planned_as_a_model_whose_later_layers_take_as_many_times_as_long(self):
        text = self.serve("--heads", "3,9")
        self.assertIn("synthetic: 3 heads answer every request; their first 9 of 14 layers are computed once\n", text)
        of_heads = self.read("serving.json")
        self.assertEqual(of_heads["version"], 5)
        self.assertEqual(of_heads["models"][0].pop("shared_prefix"), {"layers": 9, "heads": 3})
        for name in ("profile.json", "slow.json"):
            self.edit(name, self.with_later_layers_three_times)
        self.serve()
        by_hand = self.read("serving.json")
        for plan in of_heads, by_hand:
            del plan["version"], plan["models"][0]["provenance"]
        self.assertEqual(of_heads, by_hand)

    @staticmethod
    def with_later_layers_three_times(profile):
        for layer in profile["model"]["layers"][9:]:
            layer["parameter_count"] *= 3
        for one in profile["measurements"]:
            if one["key"]["layer"] >= 9:
                for name in "frozen_forward_ns", "output_activation_bytes":
                    one["cost"][name] *= 3

    def test_heads_are_two_or_more_and_share_some_layers_but_not_all(self):
        for value in "3", "1,3", "65,3", "x,3", "2.5,3", "2,0", "2,14", "2,-1", "2,3,4", ",", "2,", "2, 3":
            self.refused("--slo", "20ms", "--heads", value, code=2,
                         says="--heads: must be K,N: 2 to 64 models that share their first N of the 14 layers of "
                              f'synthetic, but not all of them, is "{value}"')
        self.refused("--slo", "20ms", "--shared-layers", 3, code=2, says="use --heads K,N")
        self.refused("--slo", "20ms", "--heads", "other=2,3", code=2,
                     says='--heads: must name a model of the profiles: "synthetic", is "other"')

    def test_a_profile_of_a_type_that_the_cluster_does_not_have_changes_nothing(self):
        self.serve()
        without = self.read("serving.json")
        self.write("odd.json", json.dumps(self.read("profile.json")).replace('"cpu"', '"odd"'))
        self.edit("odd.json", lambda odd: [
            one["cost"].update(frozen_forward_ns=one["cost"]["frozen_forward_ns"] * (1 + one["key"]["layer"] ** 3))
            for one in odd["measurements"]])
        self.serve("--profile", "odd.json")
        self.assertEqual(self.read("serving.json"), without)

    def test_an_option_of_the_other_subject_is_refused_with_the_command_that_has_it(self):
        self.refused("--slo", "20ms", "--global-batch", 64, code=2, says="'frostpipe plan' has --global-batch")
        self.assert_refused("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 64,
                            "-o", "plan.json", "--slo", "20ms", code=2, says="'frostpipe serving plan' has --slo")

    def test_old_spellings_name_the_new_command(self):
        self.serve()
        for arguments, says in [
            (["plan", "--method", "ppipe", "--profile", "profile.json", "--cluster", "cluster.json", "--slo", "20ms",
              "-o", "serving.json"], "`frostpipe serving plan` makes plans by ppipe"),
            (["simulate", "serving.json"], "which `frostpipe serving simulate`, `serving run` and `serving inspect`"),
            (["inspect", "serving.json"], "is a plan of serving, which `frostpipe serving inspect` shows"),
            (["serve", "serving.json"], "there is no command 'serve'; use 'frostpipe serving run'"),
        ]:
            with self.subTest(arguments):
                self.assert_refused(*arguments, code=2, says=says)

    def test_bad_values_are_refused_with_the_option(self):
        self.refused(code=2, says="serving plan: needs --slo TIME, the latency objective of synthetic")
        for objective, says in (("2000s", 'must be > 0 and <= 16.7 min, is "2000s"'), ("0s", "must be a time"),
                                ("100", 'must be a time such as 20ms or 0.5s, is "100"'),
                                ("other=20ms", 'must name a model of the profiles: "synthetic", is "other"')):
            self.refused("--slo", objective, code=2, says=f"--slo: {says}")
        self.refused("--slo", "20ms", "--slo", "30ms", code=2,
                     says="--slo: must be given once; MODEL=VALUE is for one model, is twice")
        self.refused("--slo", "20ms", "--weight", "synthetic=2", "--weight", "synthetic=3", code=2,
                     says='--weight: must be given once for "synthetic", is twice')
        for weight in ("1e13", "1e-11", "nan", "0", "-1", "x"):
            self.refused("--slo", "20ms", "--weight", weight, code=2,
                         says=f'--weight: must be a number >= 1e-06 and <= 1e+06, is "{weight}"')
        for option, value in (("--margin", "nan"), ("--margin", 1), ("--margin", -1), ("--max-partitions", 9)):
            self.refused("--slo", "20ms", option, value, code=2, says=option)
        self.refused("--slo", "20ms", "--profile", "profile.json", says='must be of different device types, is "cpu"')

    def test_models_that_cannot_be_served_are_named(self):
        done = self.run_tool(*self.arguments("--slo", "0.1ms"), code=1)
        self.assertIn("no ppipe plan fits: model synthetic: a single request takes at least", done.stderr)
        self.write("odd.json", json.dumps(self.read("profile.json")).replace('"cpu"', '"odd"')
                   .replace('"name": "synthetic", "hidden_size"', '"name": "odd", "hidden_size"'))
        self.refused("--slo", "20ms", "--profile", "odd.json",
                     says='model "odd": no profile of it was measured on a device of the cluster ("cpu", "slow"), or '
                          'on a part down to 1/4 of one, only on "odd"')

    def test_a_written_plan_is_read_again(self):
        for slo in ("1ms", "20ms", "999s"):
            for weight in (1e-6, 1, 1e6):
                self.run_tool(*self.arguments("--slo", slo, "--weight", weight, "--max-partitions", 1))
                self.run_tool("serving", "inspect", "serving.json")

    def test_numbers_that_are_none_are_refused_everywhere(self):
        self.write("serving.json", synthetic_serving_plan())
        for option in ("--rate", "--seconds"):
            for value in ("nan", "inf", "-1"):
                self.assert_refused("serving", "simulate", "serving.json", option, value, code=2, says=option)
        for option, value in (("--memory-reserve", "nan"), ("--freeze-set", "alpha=nan")):
            self.assert_refused("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 64,
                                "-o", "plan.json", option, value, code=2, says=option)
        self.assert_refused("schedule", "1F1B", "--format", "times", "--pp", 2, "--micro-batches", 4, "--latency-ms",
                            "nan", code=2, says="--latency-ms")


if __name__ == "__main__":
    unittest.main()
