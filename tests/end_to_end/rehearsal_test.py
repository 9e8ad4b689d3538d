"""Training on emulated devices: more ranks than there are cores, on an estimated profile."""

import json
import os
import signal
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import families
from emulated import RehearsalCase
from end_to_end import HANG_SECONDS, processes_naming, rank_of_process


class RehearsalTest(RehearsalCase):
    def test_static_run_takes_the_profiles_times_and_reports_whole_bytes(self):
        done, run = self.rehearse("static.json", "run", "--emulated-links")
        self.assertNotIn("accuracy", done.stdout)
        self.assertEqual((run["num_steps"], run["num_train_samples"], run["num_test_samples"]), (16, 128, 0))
        self.assertTrue(run["emulated"])
        self.assertFalse((self.folder / "run/model").exists())
        phase = run["phases"][0]
        predicted = self.read("static.json")["phases"][0]["predicted"]
        # Ranks never sleep too short, so the prediction's critical path is a lower bound except for overlapping
        # messages.
        self.assertGreater(phase["measured_iteration_ns"], 0.95 * predicted["iteration_ns"])
        for measured, expected in zip(phase["measured_peak_memory_bytes"], predicted["peak_memory_bytes"]):
            self.assertLess(abs(measured - expected), 0.1 * expected)

    def test_iterations_and_bubbles_are_the_simulators(self):
        """With virtual clocks, whatever else the machine does, every iteration is within 1 % and the bubble within 1
        point. Oracle: the simulator, which uses the same profile and links but no ranks."""
        for schedule in ("GPipe", "1F1B", "Interleaved1F1B", "ZB-H1", "ZBVZeroBubble"):
            with self.subTest(schedule=schedule):
                self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 32,
                              "--method", "static", "--fix", "pp=4", "--schedule", schedule, "--epochs", 1,
                              "-o", f"{schedule}.json")
                predicted = json.loads(self.run_tool("simulate", f"{schedule}.json", "--format", "json").stdout)
                predicted = predicted["phases"][0]
                _, run = self.rehearse(f"{schedule}.json", schedule, "--emulated-links")
                times = [step["iteration_ns"] for step in run["steps"][1:]]
                for time in times:
                    self.assertLess(abs(time / predicted["iteration_ns"] - 1), 0.01)
                events = self.read(f"{schedule}/trace.json")["traceEvents"]
                compute = {"forward", "backward", "input_gradient", "weight_gradient"}
                busy = sum(1000 * event["dur"] for event in events
                           if event["ph"] == "X" and event["cat"].replace(" ", "_") in compute
                           and event["args"]["step"] == 1)
                self.assertLess(abs(1 - busy / (4 * times[0]) - predicted["bubble_fraction"]), 0.01)

    def test_hosts_that_are_connected_unequally(self):
        """Nodes 0 and 2, and 1 and 3, have links ten times as fast as the others. A pipeline goes through one island
        and then the other, as fast as simulated. Oracle: the simulator, within 5 %."""
        cluster = self.read("cluster.json")
        slow, fast = ({use: {"latency_ns": 50_000, "bandwidth_bytes_per_second": rate, "measured_bandwidth": None}
                       for use in ("point_to_point", "collective")} for rate in (100_000_000, 1_000_000_000))
        for node, device in enumerate(cluster["devices"]):
            device["node"] = node
        cluster.update(version=2, inter_node=slow,
                       node_pairs=[{"node": node, "other_node": node + 2, **fast} for node in (0, 1)])
        self.write("islands.json", cluster)
        for stages in (2, 4):
            self.run_tool("plan", "--profile", "profile.json", "--cluster", "islands.json", "--global-batch", 32,
                          "--method", "static", "--fix", f"pp={stages}", "--schedule", "1F1B", "--epochs", 1,
                          "-o", "islands-plan.json")
            layout = self.read("islands-plan.json")["phases"][0]["layout"]
            if stages == 4:
                self.assertEqual([rank % 2 for rank in layout["placement"]], [0, 0, 1, 1])
            predicted = json.loads(self.run_tool("simulate", "islands-plan.json", "--format", "json").stdout)
            _, run = self.rehearse("islands-plan.json", f"islands-{stages}", "--emulated-links")
            for step in run["steps"][1:]:
                self.assertLess(abs(step["iteration_ns"] / predicted["phases"][0]["iteration_ns"] - 1), 0.05)

    def test_tensor_ranks_send_parts_to_another_node(self):
        """Each stage of two tensor ranks is a node, and the link between the nodes is so slow that messages take most
        of the time. Oracle: the simulator, in which each message crosses once, within 1 %; sent whole by each tensor
        rank, messages would take twice as long."""
        self.run_tool("profile", "--like", "vit-b16", "--tensor-parallel", "1,2", "--nodes", 2, "--nproc-per-node", 2,
                      "--global-batch", 32, "--samples", 128, "--cluster", "nodes.json", "-o", "tensor.json")
        slow = {"latency_ns": 50_000, "bandwidth_bytes_per_second": 100_000_000, "measured_bandwidth": None}
        self.edit("nodes.json", lambda cluster: cluster.update(
            inter_node={"point_to_point": slow, "collective": slow}))
        self.run_tool("plan", "--profile", "tensor.json", "--cluster", "nodes.json", "--global-batch", 32, "--method",
                      "static", "--fix", "pp=2", "--fix", "tp=2", "--fix", "m=4", "--schedule", "1F1B", "--epochs", 1,
                      "-o", "tensor-plan.json")
        predicted = json.loads(self.run_tool("simulate", "tensor-plan.json", "--format", "json").stdout)
        whole = json.loads(self.run_tool("simulate", "tensor-plan.json", "--set", "scatter-gather=off", "--format",
                                         "json").stdout)
        predicted = predicted["phases"][0]["iteration_ns"]
        self.assertGreater(whole["rows"][1]["times_base"], 1.3)
        _, run = self.rehearse("tensor-plan.json", "scattered", "--emulated-links")
        for step in run["steps"][1:]:
            self.assertLess(abs(step["iteration_ns"] / predicted - 1), 0.01)

    def test_checkpoints_change_no_time(self):
        """With a frozen stage, ranks reach a step's end at different times, and any agreement would delay the first
        one. Oracle: the same rehearsal without checkpoints."""
        self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 32,
                      "--method", "freeze-only", "--schedule", "1F1B", "--fix", "m=4", "--freeze-set", "warm-up=0.25",
                      "--freeze-set", "interval=0.25", "--epochs", 3, "-o", "frozen.json")
        times = []
        for options in ((), ("--checkpoint-every", 1)):
            _, run = self.rehearse("frozen.json", f"run-{len(times)}", "--emulated-links", *options)
            times.append([step["iteration_ns"] for step in run["steps"]])
        self.assertEqual(*times)

    def test_delayed_updates_fill_the_bubble_across_epochs(self):
        """Without tests the pipeline drains only at the end. Oracle: the simulator's overlapping iteration, within 1 %
        except for the first and the last one."""
        self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 32,
                      "--method", "static", "--fix", "pp=4", "--schedule", "PipeDream-2BW", "--fix", "m=4",
                      "--epochs", 3, "-o", "delayed.json")
        predicted = json.loads(self.run_tool("simulate", "delayed.json", "--format", "json").stdout)["phases"][0]
        _, run = self.rehearse("delayed.json", "run", "--emulated-links")
        self.assertEqual((run["num_steps"], run["num_test_samples"]), (3 * 4, 0))
        for step in run["steps"][1:-1]:
            self.assertLess(abs(step["iteration_ns"] / predicted["iteration_ns"] - 1), 0.01, step["step"])

    def test_sent_tensors_are_released(self):
        """In addition to the plan's bytes a stage holds receives posted ahead and gradients being sent, but not every
        message of the iteration."""
        self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 32,
                      "--method", "static", "--schedule", "1F1B", "--fix", "m=16", "--epochs", 1, "-o", "many.json")
        _, run = self.rehearse("many.json", "run")
        phase, message = run["phases"][0], 2 * 197 * 768 * 4
        self.assertEqual((phase["stages"], phase["num_micro_batches"]), (4, 16))
        for measured, expected in zip(phase["measured_peak_memory_bytes"],
                                      self.read("many.json")["phases"][0]["predicted"]["peak_memory_bytes"]):
            self.assertLess(measured - expected, 6 * message)

    def test_freezing_changes_layout_and_uses_the_cache(self):
        _, run = self.rehearse("pipetransformer-published.json", "published", "--freeze", "cap",
                               "--freeze-set", "warm-up=0.25", "--freeze-set", "interval=0.25")
        layouts = [(phase["stages"], phase["replicas"]) for phase in run["phases"]]
        self.assertEqual((layouts[0], layouts[-1]), ((4, 1), (1, 4)))
        _, run = self.rehearse("pipetransformer.json", "ours", "--freeze", "cap", "--freeze-set", "warm-up=0.25",
                               "--freeze-set", "interval=0.25")
        self.assertTrue(run["phases"][-1]["cache"])
        # Layers freeze at the start of each epoch, so the previous epoch's entries are for the earlier boundary.
        self.assertGreater(max(phase["cache_hit_fraction"] + phase["cache_base_fraction"] for phase in run["phases"]),
                           0.99)

    def test_a_phases_memory_is_not_that_of_the_change_after_it(self):
        """All blocks are frozen, in four stages and then in four replicas: each rank's quarter of the weights is less
        than the whole model, which arrives after the last step. Oracle: the simulator's bytes of each phase, within 10
        %."""
        plan = self.read("pipetransformer-published.json")
        first, last = plan["phases"][0], plan["phases"][-1]
        self.assertEqual(last["layout"]["data_parallel_size"], 4)
        off = {"on": False, "found": []}
        plan["phases"] = [{**first, "first_trainable_layer": last["first_trainable_layer"], "cache": off},
                          {**last, "from_step": 8, "cache": off}]
        self.write("frozen.json", json.dumps(plan))
        planned = json.loads(self.run_tool("simulate", "frozen.json", "--format", "json").stdout)["phases"]
        _, run = self.rehearse("frozen.json", "run")
        self.assertEqual([phase["stages"] for phase in run["phases"]], [4, 1])
        for phase, expected in zip(run["phases"], planned, strict=True):
            for measured, simulated in zip(phase["measured_peak_memory_bytes"], expected["peak_memory_bytes"],
                                           strict=True):
                self.assertLess(abs(measured - simulated), 0.1 * simulated)

    def test_virtual_nodes_have_caches_of_their_own(self):
        """Each node keeps its shard, so all samples are found when its replicas train on their own samples."""
        _, run = self.rehearse("pipetransformer.json", "run", "--nodes", 2, "--freeze", "cap",
                               "--freeze-set", "warm-up=0.25", "--freeze-set", "interval=0.25")
        self.assertEqual(run["num_steps"], 16)
        last = run["phases"][-1]
        if last["stages"] == 1:
            self.assertGreater(last["cache_hit_fraction"] + last["cache_base_fraction"], 0.99)

    def test_a_dead_rank_ends_the_rehearsal(self):
        started = self.start("train", self.of_length("static.json", 400), "--device", "emulated", "--max-restarts", 0,
                             "-o", self.folder / "run")
        self.wait_until(lambda: "step" in started.stderr, HANG_SECONDS, lambda: started.stderr)
        ranks = {rank_of_process(pid): pid for pid in processes_naming(self.folder / "run")}
        os.kill(ranks[2], signal.SIGKILL)
        self.assertEqual(started.ended_within(30), 1)
        self.assertIn("rank 2", started.stderr)

    def test_a_recovery_does_not_count_how_late_ranks_were_before(self):
        """The host stops a rank for 4 s, and then another one is lost. Oracle: the reported times of steps, lost work
        and recovery, from the last sign of life on, do not include the stop. Steps take virtual time, and interrupted
        steps last no longer than others, since a rank may have begun the next one."""
        started = self.start("train", self.of_length("static.json", 24), "--device", "emulated", "--spares", 1,
                             "--checkpoint-every", 5, "-o", self.folder / "run")
        self.wait_until(lambda: any((self.folder / "run/checkpoints").glob("step-????????")), HANG_SECONDS,
                        lambda: started.stderr)
        ranks = {rank_of_process(pid): pid for pid in processes_naming(self.folder / "run")}
        os.kill(ranks[1], signal.SIGSTOP)
        time.sleep(4)
        os.kill(ranks[1], signal.SIGCONT)
        os.kill(ranks[2], signal.SIGKILL)
        self.assertEqual(started.ended_within(HANG_SECONDS), 0, started.stderr)
        run = self.read("run/summary.json")
        [recovery] = run["recoveries"]
        steps = [step["iteration_ns"] for step in run["steps"]]
        lost = sum(recovery[part] for part in ("lost_work_ns", "detection_ns", "forming_ns", "restoring_ns"))
        self.assertGreaterEqual(1e9 * run["wall_seconds"], sum(steps))
        self.assertLessEqual(1e9 * run["wall_seconds"], sum(steps) + lost + 2 * max(steps))

    def test_a_measured_model_with_tied_embeddings(self):
        """Both ends of the pipeline keep a copy of the matrix, shrunk by a number that divides none of its sizes.
        Oracle: layout and bytes of the plan; after a loss, every step is done once."""
        # The first stage needs the most memory for the exchange.
        families.write_model(self.folder / "gpt2", {**families.GPT2, "vocab_size": 4096}, "bytes")
        self.write("text.txt", "the cab is at the lab and the crab is in the cab. " * 160)
        self.run_tool("profile", "--model", "gpt2", "--data", "text.txt", "--max-tokens", 32, "--global-batch", 16,
                      "--micro-batch-sizes", "1,4,16", "--nproc-per-node", 4, "--threads-per-rank", 1,
                      "--cluster", "c.json", "-o", "p.json")
        for stages, replicas in ((4, 1), (1, 4)):
            with self.subTest(stages=stages):
                self.run_tool("plan", "--profile", "p.json", "--cluster", "c.json", "--global-batch", 16,
                              "--method", "static", "--schedule", "1F1B", "--fix", f"pp={stages}", "--fix", "m=2",
                              "--steps", 12, "-o", f"{stages}.json")
                _, run = self.rehearse(f"{stages}.json", f"run-{stages}", "--emulated-shrink", 7)
                phase = run["phases"][0]
                planned = self.read(f"{stages}.json")["phases"][0]["predicted"]["peak_memory_bytes"]
                self.assertEqual((phase["stages"], phase["replicas"], phase["num_steps"], len(run["steps"])),
                                 (stages, replicas, 12, 12))
                for measured, expected in zip(phase["measured_peak_memory_bytes"], planned, strict=True):
                    self.assertLess(abs(measured - expected), 0.1 * expected)

        started = self.start("train", self.of_length("4.json", 168), "--device", "emulated", "--emulated-shrink", 7,
                             "--checkpoint-every", 20, "-o", self.folder / "dead")
        checkpoints = self.folder / "dead/checkpoints"
        self.wait_until(lambda: any(checkpoints.glob("step-????????")), HANG_SECONDS, lambda: started.stderr)
        os.kill({rank_of_process(pid): pid for pid in processes_naming(self.folder / "dead")}[2], signal.SIGKILL)
        self.assertEqual(started.ended_within(HANG_SECONDS), 0, started.stderr)
        run = self.read("dead/summary.json")
        self.assertEqual([(recovery["world_size"], recovery["step"] % 20) for recovery in run["recoveries"]], [(3, 0)],
                         "from a checkpoint, on the ranks that are left")
        self.assertIn("rank 2", run["recoveries"][0]["cause"])
        self.assertEqual([step["step"] for step in run["steps"]], list(range(168)))

    def test_bench_keeps_its_budget_and_does_not_repeat_runs(self):
        bench = ("bench", "rehearsal", "-o", self.folder / "out", "--epochs", 1, "--only", "data_parallel",
                 "--budget", "2s")
        first = self.run_tool(*bench)
        self.assertIn("not run, out of budget: bert-large/data_parallel seed 1", first.stdout)
        table = self.read("out/table.json")
        self.assertEqual((table["format"], [row["configuration"] for row in table["rows"]]),
                         ("frostpipe.bench", ["data_parallel"]))
        self.assertEqual((self.folder / "out/table.txt").read_text(), first.stdout)
        begin = (self.folder / "out/vit-b16/data_parallel/seed-1/summary.json").stat().st_mtime_ns
        second = self.run_tool(*bench[:-1], "0.0001s")
        self.assertIn("data_parallel", second.stdout)
        self.assertEqual((self.folder / "out/vit-b16/data_parallel/seed-1/summary.json").stat().st_mtime_ns, begin)

    def test_refuses_what_makes_no_sense(self):
        self.assert_refused("train", "static.json", "--device", "emulated", "--data", "data.tsv", code=2,
                            says=["--data", "no meaning"])
        self.assert_refused("train", "static.json", code=2, says=["--data: is required"])
        self.assert_refused("train", "static.json", "--device", "emulated", "--freeze", "paper", code=2,
                            says=["--freeze", "no gradients"])
        self.assert_refused("train", "static.json", "--data", "d.tsv", "--emulated-links", code=2,
                            says=["--emulated-links", "--device emulated"])
        self.assert_refused("train", "static.json", "--device", "emulated", "--nodes", 3, code=2,
                            says=["--nodes", "4 ranks", "equal size"])
        self.assert_refused("train", "static.json", "--device", "emulated", "--emulated-shrink", 1000, code=2,
                            says=["--emulated-shrink", "768"])


class LongRehearsalTest(RehearsalCase):
    def test_memory_does_not_grow_with_the_steps(self):
        """Oracle: the private memory of each process, and the size of a checkpoint's figures, after a tenth of the
        steps."""
        self.run_tool("profile", "--like", "vit-b16", "--nproc-per-node", 2, "--global-batch", 8, "--samples", 80,
                      "--memory-limit", "4GiB", "--cluster", "c.json", "-o", "p.json")

        def hurry(profile):
            for measurement in profile["measurements"]:
                measurement["cost"].update({name: 100 for name in measurement["cost"] if name.endswith("_ns")})
            for update in profile["updates"]:
                update["update_ns"] = 100

        self.edit("p.json", hurry)
        self.run_tool("plan", "--profile", "p.json", "--cluster", "c.json", "--global-batch", 8, "--method", "static",
                      "--fix", "pp=2", "--fix", "m=1", "--epochs", 5100, "-o", "fast.json")
        started = self.start("train", "fast.json", "--device", "emulated", "--emulated-shrink", 768,
                             "--checkpoint-every", 2500, "-o", self.folder / "run")

        def steps_done():
            try:
                with open(self.folder / "run/scalars.jsonl", "rb") as file:
                    file.seek(max(0, file.seek(0, os.SEEK_END) - 1000))
                    return json.loads(file.read().split(b"\n")[-2])["step"]
            except (FileNotFoundError, IndexError, ValueError):
                return 0

        def private_kilobytes():
            found = {}
            for pid in processes_naming(self.folder / "run"):
                lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                found[rank_of_process(pid)] = sum(int(line.split()[1]) for line in lines
                                                  if line.startswith(("Private_Clean:", "Private_Dirty:")))
            return found

        self.wait_until(lambda: steps_done() >= 5000, HANG_SECONDS, lambda: started.stderr)
        before = private_kilobytes()
        self.wait_until(lambda: steps_done() >= 50000, 1200, lambda: started.stderr)
        after = private_kilobytes()
        print(f"\nprivate memory by rank in kB after 5,000 steps {before}, after 50,000 {after}", file=sys.stderr)
        self.assertEqual(len(before), 3, "the launcher and two ranks")
        for rank, kilobytes in before.items():
            self.assertLessEqual(after[rank], 1.05 * kilobytes, rank)
        newest = max((self.folder / "run/checkpoints").glob("step-????????"))
        self.assertLess((newest / "run.json").stat().st_size, 10_000)


if __name__ == "__main__":
    unittest.main()
