"""Plans with freezing: when the layout changes, and when the cache is used."""

import re
import shutil
import unittest

from support import CliTest, synthetic_cluster


class FreezingTest(CliTest):
    def test_elastic_plan_gets_faster_as_layers_freeze(self):
        self.plan("elastic.json", "pipetransformer", "--epochs", 300)
        phases = self.read("elastic.json")["phases"]
        self.assertGreater(len(phases), 1)
        self.assertEqual(phases[0]["layout"]["pipeline_parallel_size"], 2)
        times = [phase["predicted"]["iteration_ns"] for phase in phases]
        self.assertEqual(times, sorted(times, reverse=True))

    def test_no_change_of_layout_that_does_not_pay(self):
        """Rebuilding groups costs 50 ms, and the 20 steps after the first freeze of a run of 30 take 13 ms each."""
        self.plan("elastic.json", "pipetransformer", "--epochs", 3)
        self.assertTrue(all(phase["layout"]["pipeline_parallel_size"] == 2
                            for phase in self.read("elastic.json")["phases"]))

    def test_published_rule_changes_whether_or_not_it_pays(self):
        self.plan("published.json", "pipetransformer-published", "--epochs", 3)
        phases = self.read("published.json")["phases"]
        self.assertEqual({phase["schedule"] for phase in phases}, {"GPipe"})
        self.assertEqual(phases[-1]["layout"]["pipeline_parallel_size"], 1)
        self.assertTrue(all(phase["first_trainable_layer"] < phase["partition"][0]["end"] for phase in phases),
                        "frozen layers are on the first device")

    def test_published_rule_uses_no_more_devices_than_it_may(self):
        self.write("cluster.json", synthetic_cluster(num_ranks=4))
        self.plan("few.json", "pipetransformer-published", "--max-devices", 2, "--epochs", 30)
        for phase in self.read("few.json")["phases"]:
            self.assertLessEqual(phase["layout"]["pipeline_parallel_size"] * phase["layout"]["data_parallel_size"], 2)

    def test_freeze_only_keeps_the_static_layout(self):
        self.plan("static.json", "static")
        self.plan("frozen.json", "freeze-only")
        static, frozen = self.read("static.json")["phases"], self.read("frozen.json")["phases"]
        self.assertGreater(len(frozen), 1)
        for phase in frozen:
            self.assertEqual({**phase, "from_step": 0, "first_trainable_layer": 0, "predicted": 0},
                             {**static[0], "predicted": 0})

    def test_layers_may_be_frozen_from_the_first_step_on(self):
        for method in "freeze-only", "pipetransformer-published", "pipetransformer":
            self.plan("frozen.json", method, "--freeze-set", "warm-up=0", "--forecast", "fixed:4", "--epochs", 3)
            first = self.read("frozen.json")["phases"][0]
            self.assertEqual((first["from_step"], first["first_trainable_layer"]), (0, 9), method)

    def test_a_deadline_freezes_as_late_as_it_allows(self):
        def frozen_from(*options):
            done = self.plan("late.json", "pipetransformer", "--steps", 3000, *options)
            phases = self.read("late.json")["phases"]
            total = sum((after - phase["from_step"]) * phase["predicted"]["iteration_ns"]
                        + phase["predicted"]["transformation_ns"]
                        for phase, after in zip(phases, [one["from_step"] for one in phases[1:]] + [3000]))
            first = next((phase["from_step"] for phase in phases if phase["first_trainable_layer"] > 0), 3000)
            return first, total / 1e9, done.stdout
        by_rule, seconds, _ = frozen_from()
        deadline = round(seconds + 10, 1)
        later, within, text = frozen_from("--deadline", f"{deadline:.1f}s")
        self.assertGreater(later, by_rule)
        self.assertLessEqual(within, deadline)
        self.assertIn("of all updates of blocks are still made", text)
        self.assertEqual(frozen_from("--deadline", "1h")[0], 3000)
        self.assertIn("the run takes",
                      self.plan("none.json", "pipetransformer", "--steps", 3000, "--deadline", "1s", code=1).stderr)
        self.assertIn("needs a --method that freezes",
                      self.plan("none.json", "static", "--deadline", "1h", code=2).stderr)

    def test_a_forecast_from_a_list_or_a_recorded_run(self):
        self.plan("fixed.json", "pipetransformer", "--steps", 1000, "--forecast", "fixed:2,2,6")
        model = self.read("profile.json")["model"]["layers"]
        frozen = sorted({phase["first_trainable_layer"] for phase in self.read("fixed.json")["phases"]})
        self.assertEqual([model[first]["name"] for first in frozen], ["embedding", "block.2.attention", "head"])
        self.plan("again.json", "pipetransformer", "--steps", 2000, "--forecast", "fixed.json")
        steps = lambda name: {phase["first_trainable_layer"]: phase["from_step"]
                              for phase in reversed(self.read(name)["phases"])}
        self.assertEqual({layer: 2 * step for layer, step in steps("fixed.json").items()}, steps("again.json"))
        self.assertIn("at most 6", self.plan("none.json", "pipetransformer", "--forecast", "fixed:7", code=2).stderr)

    def test_the_type_of_frozen_layers_travels(self):
        self.plan("static.json", "static")
        self.assertNotIn("frozen_dtype", self.read("static.json"))
        shutil.copy(self.folder / "profile.json", self.folder / "rounded.json")
        self.edit("rounded.json", lambda profile: profile.update(frozen_dtype="bfloat16"))
        done = self.run_tool("simulate", "static.json", "--profile", "rounded.json", code=1)
        self.assertIn(
            "rounded.json: frozen_dtype: frozen layers were measured in bfloat16, but static.json was made for float32",
            done.stderr)
        self.edit("profile.json", lambda profile: profile.update(frozen_dtype="bfloat16"))
        self.assertIn("frozen layers compute in bfloat16", self.plan("static.json", "static").stdout)
        self.assertEqual(self.read("static.json")["frozen_dtype"], "bfloat16")
        self.run_tool("simulate", "static.json")


class CacheTest(CliTest):
    def test_cache_is_used_where_it_pays_and_explained(self):
        """The prefix of 3 blocks takes 60 us a sample to compute; its entry takes 5 us to read: filled, then hit."""
        speed = {"latency_ns": 1_000, "bandwidth_bytes_per_second": 5_000_000_000}
        self.edit("profile.json", lambda profile: profile.update(cache={"read": speed, "write": speed}))
        done = self.plan("elastic.json", "pipetransformer", "--epochs", 300, "--explain")
        phases = self.read("elastic.json")["phases"]
        self.assertTrue(all(phase["cache"]["on"] for phase in phases if phase["first_trainable_layer"] > 0))
        self.assertEqual([found["fraction"] for found in phases[-1]["cache"]["found"]], [1])
        self.assertIn("paid back after", done.stdout)
        self.assertIn(" hit ", done.stdout)
        self.run_tool("simulate", "elastic.json")
        slow = {"latency_ns": 1_000_000, "bandwidth_bytes_per_second": 1_000_000}
        self.edit("profile.json", lambda profile: profile.update(cache={"read": slow, "write": slow}))
        self.plan("slow.json", "pipetransformer", "--epochs", 300)
        self.assertFalse(any(phase["cache"]["on"] for phase in self.read("slow.json")["phases"]))

    def explained(self, *options):
        """Returns the sentences of --explain about the cache, and whether phases of the plan use it, for a cache that
        takes no time."""
        self.edit("profile.json",
                  lambda profile: profile.update(cache={way: {"latency_ns": 0, "bandwidth_bytes_per_second": 0}
                                                        for way in ("read", "write")}))
        done = self.plan("plan.json", "pipetransformer", *options, "--explain")
        reasons = re.findall(r"^(?:the|no) cache.*", done.stdout, re.MULTILINE)
        return reasons, [phase["cache"]["on"] for phase in self.read("plan.json")["phases"]]

    def test_the_explanation_says_what_the_plan_does_with_the_cache(self):
        reasons, uses = self.explained("--epochs", 1)
        self.assertGreater(len(uses), 1)
        self.assertFalse(any(uses), "one epoch cannot hit")
        self.assertEqual(set(reasons), {"no cache: the run ends before a sample comes again"})
        reasons, uses = self.explained("--epochs", 300)
        self.assertTrue(uses[-1])
        self.assertRegex(reasons[-1], r"^the cache is used: the rest of the run takes .* with it, .* without; filling ")

    def test_no_cache_without_its_measurement_and_when_off(self):
        done = self.plan("elastic.json", "pipetransformer", "--epochs", 300, "--explain")
        self.assertIn("no cache: the profile has not measured a cache", done.stdout)
        done = self.plan("off.json", "pipetransformer", "--epochs", 300, "--explain", "--cache", "off")
        self.assertIn("no cache: the cache is switched off", done.stdout)


if __name__ == "__main__":
    unittest.main()
