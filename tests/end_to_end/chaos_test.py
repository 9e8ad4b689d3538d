"""Ranks get signals at random moments, in many runs."""

import os
import random
import shutil
import signal
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from recovery import EPOCHS, LIMIT_SECONDS, ScheduleCase


class ChaosTest(ScheduleCase):
    """Sends signals at random moments to random ranks of jobs that spend most of their time in the tested operations:
    computing, sending and reducing; writing checkpoints; changing their layout; filling the cache."""

    def jobs(self):
        changing = self.read("static.json")
        other = self.read("data-parallel.json")["phases"][0]
        changing["phases"] = [{**(changing["phases"][0] if i % 2 == 0 else other), "from_step": 3 * i}
                              for i in range(10 * EPOCHS // 3)]
        changing["num_steps"] = 10 * EPOCHS
        self.write("changing.json", changing)
        return [("static.json", "--checkpoint-every", 25), ("data-parallel.json", "--checkpoint-every", 100),
                ("static.json", "--checkpoint-every", 1),
                ("changing.json", "--checkpoint-every", 20), ("pipetransformer.json", "--checkpoint-every", 10),
                *self.jobs_by_schedule()]

    def jobs_by_schedule(self):
        """Schedules with several stages per rank and with delayed weight gradients, changing every three steps."""
        plans = [self.planned(schedule) for schedule in ("Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble")]
        changing = self.read(plans[0])
        phases = [self.read(plan)["phases"][0] for plan in plans] + self.read("static.json")["phases"]
        changing["phases"] = [{**phases[i % len(phases)], "from_step": 3 * i} for i in range(10 * EPOCHS // 3)]
        self.write("schedules.json", changing)
        return [(plan, "--checkpoint-every", 25) for plan in (*plans, "schedules.json")]

    def four_ranks(self):
        """Pipelines with replicas, which lose half of their stages when layers freeze, so that another rank holds most
        of a rank's layers too."""
        plan = self.read("static.json")
        phase = {**plan["phases"][0], "predicted": {**plan["phases"][0]["predicted"], "peak_memory_bytes": []}}
        halves = {**phase, "partition": [{"begin": 0, "end": 5}, {"begin": 5, "end": 10}], "num_micro_batches": 2,
                  "layout": {"pipeline_parallel_size": 2, "data_parallel_size": 2, "tensor_parallel_size": 1,
                             "placement": []}}
        whole = {**phase, "partition": [{"begin": 0, "end": 10}], "from_step": 5 * EPOCHS, "first_trainable_layer": 3,
                 "num_micro_batches": 1,
                 "layout": {"pipeline_parallel_size": 1, "data_parallel_size": 4, "tensor_parallel_size": 1,
                            "placement": []}}
        plan.update(world_size=4, memory_limited=False, num_steps=10 * EPOCHS, phases=[halves, whole])
        self.write("four.json", plan)
        cluster = self.four_devices()
        return [("four.json", "--checkpoint-every", 40, "--cluster", cluster),
                (self.planned("ZBVZeroBubble", "--fix", "dp=2", cluster=cluster), "--checkpoint-every", 40)]

    def recoveries_of(self, launcher, plan, index, num_ranks):
        """Checks a disturbed run, which must end as the undisturbed one."""
        code = launcher.ended_within(LIMIT_SECONDS + 30)
        # If the signal came while the others were ending, the run ends with a message, and the next start finishes it.
        if code == 1 and "while the others were ending" in launcher.stderr:
            launcher = self.start(*self.train_arguments(plan, "run", "--epochs", EPOCHS, "--overwrite"),
                                  name=f"again-{index}")
        run = self.assert_ended_well(launcher)
        recoveries = run.get("recoveries", [])
        same_layout = all(recovery["world_size"] == num_ranks for recovery in recoveries)
        reference, weights = self.reference(plan, "--epochs", EPOCHS)
        self.assert_same_run(run, reference, weights, bits=same_layout and not (recoveries and self.caches(plan)))
        return recoveries

    def run_chaos(self, count, seed, number, jobs=None, num_ranks=2):
        numbers = random.Random(seed)
        spares_to_have = (0, 1) if jobs is None else (1,)
        jobs = jobs or self.jobs()
        slowest, sources = 0.0, {}
        for index in range(count):
            plan, *options = jobs[index % len(jobs)]
            spares = numbers.choice(spares_to_have)
            undisturbed, _ = self.reference(plan, "--epochs", EPOCHS)  # before another run keeps the machine busy
            launcher = self.start_until(1, plan, "--epochs", EPOCHS, *options, "--spares", spares,
                                        name=f"launcher-{index}")
            time.sleep(numbers.uniform(0, undisturbed["wall_seconds"]))
            ranks = {rank: pid for rank, pid in self.ranks_of(launcher).items() if rank is not None
                     and rank < num_ranks}
            what = f"{index}: {plan} {options}, {spares} spares"
            if ranks:
                victim = numbers.choice(sorted(ranks))
                what += f", {number.name} to rank {victim}"
                try:
                    os.kill(ranks[victim], number)
                except ProcessLookupError:
                    pass
            with self.subTest(what):
                try:
                    recoveries = self.recoveries_of(launcher, plan, index, num_ranks)
                except Exception as error:  # printed at once, since hours of other runs may follow, or be interrupted
                    print(f"\n{what}: FAILED\n{str(error)[:2000]}\n{launcher.stderr}", file=sys.stderr, flush=True)
                    self.end_every_process()
                    raise
                for recovery in recoveries:
                    source = recovery["source"].split(" step-")[0]
                    sources[source] = sources.get(source, 0) + 1
                    slowest = max(slowest,
                                  (recovery["detection_ns"] + recovery["forming_ns"] + recovery["restoring_ns"]) / 1e9)
            shutil.rmtree(self.folder / "run", ignore_errors=True)
        self.assertGreater(sum(sources.values()), count // 2, "most signals hit a rank in its run")
        print(f"\n{count} times {number.name}: recovered from {sources}; slowest recovery {slowest:.2f} s",
              file=sys.stderr)

    def test_100_kills(self):
        self.run_chaos(int(os.environ.get("FROSTPIPE_KILLS", 100)), 1, signal.SIGKILL)

    def test_30_kills_of_four_ranks(self):
        self.run_chaos(int(os.environ.get("FROSTPIPE_KILLS", 30)), 3, signal.SIGKILL, self.four_ranks(), num_ranks=4)

    def test_20_kills_with_token_slices(self):
        self.use_gpt2()
        jobs = [(self.planned_slices(schedule), "--checkpoint-every", 20) for schedule in ("TeraPipe", "Seq1F1B")]
        self.run_chaos(int(os.environ.get("FROSTPIPE_KILLS", 20)), 4, signal.SIGKILL, jobs)

    def test_10_stops(self):
        self.run_chaos(int(os.environ.get("FROSTPIPE_STOPS", 10)), 2, signal.SIGSTOP)


if __name__ == "__main__":
    unittest.main()
