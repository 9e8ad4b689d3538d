"""Runs are disturbed. Oracle: the undisturbed run has the same losses and weights, bitwise equal if the layout is the
same, and every sample is used once per epoch."""

import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import families
from end_to_end import (GLOBAL_BATCH, HANG_SECONDS, NOT_FOR_USERS, EndToEndTest, has_done, processes_naming,
                        rank_of_process)

LIMIT_SECONDS = 30  # for a recovery or a clear end
EPOCHS = 30  # 300 steps, some 3 seconds on two cores
FEWER_EPOCHS = 12  # for unit tests: a signal after a quarter of the steps still comes long before the end

# Messages of a run that continues; any other message of the run says how it ended.
SAID_WHILE_GOING_ON = re.compile(
    r"^train |(which training|the whole model) starts at random$|; going on without it$|\(restart \d+ of \d+\)$"
    r"|; training goes on$"
    r"|^frostpipe: the plan's \d+ steps are |^frostpipe: goes on with step |^frostpipe: a checkpoint is skipped: ")
# After a loss, if the remaining ranks have everything.
FROM_MEMORY = re.compile(r"frostpipe: goes on with step \d+ on \d ranks? \(.*?\), from the survivors' memory: no step "
                         "lost")


class RecoveryCase(EndToEndTest):
    epochs = EPOCHS
    references = {}  # of all tests in this process; a plan's name may mean another plan in another test

    def reference(self, plan, *options):
        """The summary and the weights of the undisturbed run."""
        self.train_arguments(plan, "run", *options)  # gives the plan its length
        key = ((self.folder / plan).read_text(), self.data, *options)
        if key not in self.references:
            run = self.train(plan, f"reference-{len(self.references)}", *options)
            saved = self.folder / f"reference-{len(self.references)}/model/model.safetensors"
            self.references[key] = (run, saved.read_bytes())
        return self.references[key]

    def caches(self, plan):
        return any(phase["cache"]["on"] for phase in self.read(plan)["phases"])

    def ranks_of(self, launcher):
        return {rank_of_process(pid): pid for pid in processes_naming(self.folder) if pid != launcher.pid}

    def start_until(self, steps, plan, *options, name="launcher"):
        """The launcher, once enough steps are done. Since the moment is given in steps, it comes before the end on a
        fast machine, and after the first checkpoints on a slow one."""
        launcher = self.start(*self.train_arguments(plan, "run", *options), name=name)
        scalars = self.folder / "run/scalars.jsonl"
        self.wait_until(lambda: has_done(scalars, steps) or launcher.ended_within(0) is not None, HANG_SECONDS,
                        lambda: launcher.stderr)
        return launcher

    def assert_ended_well(self, launcher):
        code = launcher.ended_within(LIMIT_SECONDS + 30)
        self.assertEqual(code, 0, launcher.stderr)
        self.assertNotRegex(launcher.stderr, NOT_FOR_USERS)
        self.assert_no_process_within(5)
        return self.read("run/summary.json")

    def assert_same_account(self, run, reference):
        """Checks that every epoch uses every sample once."""
        for field in ("step", "samples", "learning_rate"):
            self.assertEqual([step[field] for step in run["steps"]], [step[field] for step in reference["steps"]],
                             field)

    def assert_same_run(self, run, reference, weights, bits=True, out="run"):
        self.assert_same_account(run, reference)
        if bits:
            self.assertEqual([step["loss"] for step in run["steps"]], [step["loss"] for step in reference["steps"]])
            self.assertEqual((self.folder / out / "model/model.safetensors").read_bytes(), weights)
            self.assertEqual(run["test_predictions"], reference["test_predictions"])
        else:
            loss, expected = run["steps"][-1]["loss"], reference["steps"][-1]["loss"]
            self.assertLessEqual(abs(loss - expected), 1e-4 * abs(expected))


class ScheduleCase(RecoveryCase):
    """Plans with any schedule, with two stages per rank if it has several, and with a small GPT-2 for token slices."""

    def planned(self, schedule, *options, cluster="cluster.json"):
        """The name of a plan with pipelines of two ranks and four micro-batches."""
        fixed = "".join(f"-{option}" for option in options if option != "--fix")
        name = f"{schedule}{fixed}.json"
        self.run_tool("plan", "--profile", "profile.json", "--cluster", cluster, "--global-batch", GLOBAL_BATCH,
                      "--method", "static", "--fix", "pp=2", "--schedule", schedule, "--fix", "m=4",
                      "--ignore-memory-limit", "--epochs", self.epochs, *options, "-o", name)
        return name

    def four_devices(self):
        """The name of a cluster with twice as many ranks."""
        cluster = self.read("cluster.json")
        cluster["devices"] = cluster["devices"] * 2
        self.write("four-ranks.json", cluster)
        return "four-ranks.json"

    def use_gpt2(self):
        """Replaces BERT for all that follows, and labelled text by plain text."""
        shutil.rmtree(self.folder / "model")
        families.write_model(self.folder / "model", {**families.GPT2, "n_layer": 4}, "bytes")
        self.data = "text.txt"
        self.write(self.data, "the cab is at the lab and the crab is in the cab. " * 60)
        self.run_tool("profile", "--model", "model", "--data", self.data, "--max-tokens", 32, "--global-batch",
                      GLOBAL_BATCH, "--micro-batch-sizes", "1,4,16", "--cluster", "cluster.json", "-o", "profile.json")

    def planned_slices(self, schedule):
        return self.planned(schedule, "--fix", "slices=3")
