"""Simulated serving: loads, data planes, files of arrivals, and the input that simulate refuses."""

import copy
import json
import unittest

from support import MS, CliTest, synthetic_serving_plan


class SimulateServingTest(CliTest):
    def setUp(self):
        super().setUp()
        self.write("serving.json", synthetic_serving_plan())

    def simulate(self, *options):
        done = self.run_tool("serving", "simulate", "serving.json", *options, "--format", "json")
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def test_a_multiple_is_of_each_models_throughput(self):
        answer = self.simulate("--rate", "x0.5", "--arrivals", "even", "--seconds", 10)
        self.assertEqual((answer["format"], answer["version"]), ("frostpipe.serving_simulation", 1))
        large, small = answer["models"]
        self.assertEqual((large["requests"], small["requests"]), (499, 624))  # of 10 s at 50 and 62.5
        self.assertEqual((large["attainment"], small["attainment"]), (1, 1))
        self.assertEqual(large["largest_latency_ns"], 26 * MS)  # no request waits: 20 + 1 + 5
        self.assertEqual(small["median_latency_ns"], 8 * MS)
        self.assertAlmostEqual(small["pools"][0]["utilisation"], 0.5, 2)

    def test_a_rate_is_shared_by_weight(self):
        answer = self.simulate("--rate", 40, "--arrivals", "even", "--seconds", 10)
        self.assertEqual([one["requests"] for one in answer["models"]], [299, 99])

    def test_poisson_at_the_planned_throughput_is_the_default(self):
        answer = self.simulate()
        self.assertEqual((answer["arrivals"], answer["seed"]), ("poisson arrivals", 1))
        self.assertEqual(answer["data_plane"], "reserved")
        self.assertEqual(answer["window_ns"], 30_000 * MS)
        self.assertAlmostEqual(answer["requests_per_second"], 225)
        self.assertEqual(answer, self.simulate("--rate", "x1", "--arrivals", "poisson", "--seed", 1))
        self.assertNotEqual(answer["models"], self.simulate("--seed", 2)["models"])

    def test_too_much_load_is_dropped_with_a_reason_and_the_rest_is_in_time(self):
        for plane, reason in ("reserved", "no device in time"), ("reactive", "time spent in queues"):
            small = self.simulate("--rate", "x2", "--data-plane", plane)["models"][1]
            self.assertEqual(small["drops"][reason], small["requests"] - small["in_time"], plane)
            self.assertLess(small["attainment"], 0.6)
            self.assertGreater(small["goodput_per_second"], 115)
            self.assertLessEqual(small["largest_latency_ns"], 20 * MS)
        text = self.run_tool("serving", "simulate", "serving.json", "--rate", "x2").stdout
        self.assertRegex(text, r"small: \d+ of \d+ requests not answered in time: no device in time \d+\n")

    def test_text_names_the_load_and_has_units_in_its_headers(self):
        text = self.run_tool("serving", "simulate", "serving.json", "--rate", "x0.5", "--seconds", 2).stdout
        self.assertEqual(text.splitlines()[0],
                         "poisson arrivals (seed 1), 112.5 requests/s for 2.00 s, reserved data plane")
        for header in ("in time [%]", "99 % [ms]", "SLO [ms]", "computing [%]", "requests per batch"):
            self.assertIn(header, text)

    def test_recorded_arrivals_as_they_are_and_stretched(self):
        self.edit("serving.json", lambda plan: plan.update(models=plan["models"][1:], objective_value=125))
        self.write("times.csv", "TIMESTAMP,tokens\n2023-11-16 10:00:00.5,7\n2023-11-16 10:00:00.501,7\n"
                                "2023-11-16 10:00:03.5,7\n")
        recorded = self.simulate("--arrivals", "times.csv")
        self.assertEqual(recorded["window_ns"], 3_000 * MS + 1)
        self.assertNotIn("seed", recorded)
        self.assertEqual(recorded["models"][0]["mean_latency_ns"], (8 + 15 + 8) * MS // 3)  # the second waits for 7 ms
        stretched = self.simulate("--arrivals", "times.csv", "--rate", 100)
        self.assertEqual(stretched["window_ns"], 30 * MS + 1)
        self.assertEqual(self.simulate("--arrivals", "times.csv", "--seconds", 1)["models"][0]["requests"], 2)

    def test_a_timeline_has_every_batch(self):
        models = self.simulate("--arrivals", "even", "--rate", "x0.5", "--seconds", 1,
                               "--timeline", "trace.json")["models"]
        events = self.read("trace.json")["traceEvents"]
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(list(names.values()), ["large, pipeline 0, partition 0: slow",
                                                "large, pipeline 0, partition 1: fast",
                                                "small, pipeline 0, partition 0: slow"])
        pools = [pool for model in models for pool in model["pools"]]
        for process, pool in zip(names, pools, strict=True):
            spans = [event for event in events if event["ph"] == "X" and event["pid"] == process]
            computed = [event for event in spans if event["cat"] == "compute"]
            self.assertEqual(len(computed), pool["batches"])
            self.assertEqual(sum(event["args"]["requests"] for event in computed), pool["requests"])
            sent = [event["dur"] for event in spans if event["cat"] == "transfer"]
            self.assertEqual(sent, [1000] * (pool["batches"] if pool["partition"] == 1 else 0))

    def test_wrong_use_and_wrong_content_are_reported(self):
        refused = lambda *options, **how: self.assert_refused("serving", "simulate", "serving.json", *options, **how)
        refused("--arrivals", "gamma", says='--arrivals: must be a file of times or one of even, poisson, square, mmpp')
        self.write("times.csv", "a,b\n1,2\n")
        refused("--arrivals", "times.csv", says="times.csv: line 1: has no column TIMESTAMP, only a, b")
        self.write("times.csv", "a,Timestamp\n1,2\n")
        refused("--arrivals", "times.csv", "--rate", 5, says="all requests come at one time")
        refused("--rate", 1e9, says="are more than 20 million requests; ask for fewer --seconds")
        for process in ("square", "mmpp"):  # each change of the rate takes computing time, even if nothing arrives
            refused("--arrivals", process, "--rate", 1e-6, "--seconds", 1e9,
                    says=f"--seconds: must be <= 1e+06 with --arrivals {process}, is 1e+09")
        self.write("two.csv", "1\n2\n")
        refused("--arrivals", "two.csv", "--rate", 0, says="--rate: stretches the 2 requests of two.csv over more than")
        for rate in ("-1", "x-1", "x", "5x", "nan", "xx1", "x 1"):
            refused("--rate", rate, code=2, says="--rate: must be requests per second such as 120, or a multiple of")
        refused("--load-factor", 1, code=2, says="use --rate xF")
        refused("--arrivals-column", "b", code=2, says="; name the column TIMESTAMP")
        self.plan("training.json", "static")
        self.assert_refused("serving", "simulate", "training.json", code=2,
                            says="training.json: is a plan of training, which `frostpipe simulate` and")
        broken = copy.deepcopy(synthetic_serving_plan())
        broken["models"][0]["pipelines"][0]["partitions"][1]["device_class"] = "huge"
        self.write("broken.json", broken)
        self.assert_refused("serving", "simulate", "broken.json",
                            says="broken.json: models[0].pipelines[0].partitions[1].device_class: must be one of "
                                 "device_classes")


if __name__ == "__main__":
    unittest.main()
