"""Compares steps with PyTorch on the same samples and weights, and with the predictions from the profile."""
import json
import statistics
from pathlib import Path

import inputs
import workflow
from programs import Failure, NotDone
from results import Check, Target
from running import last_line

SECONDS = 240
PEER = Path(__file__).resolve().parent.parent / "peers" / "one_device.py"
LOSSES_APART = {"float32": 1e-3, "bfloat16": 2e-2}
PEERS = {"float32": "PyTorch eager", "bfloat16": "PyTorch eager, autocast"}
COMPARED_STEPS = 3
STEPS_WITH_GRAPHS = 8  # the third is the first to be replayed, and its update shows in the fourth loss
FASTER_THAN_PADDED, FASTER_THAN_UNPADDED = 1.3, 1.05  # on texts of several lengths


def start_of(programs, job):
    """Returns the folder with the weights from which all runs of the job start; None before initial_weights()."""
    folder = f"{job.name}-start/model"
    return folder if (programs.folder / folder / "model.safetensors").exists() else None


def initial_weights(programs, job, name):
    """Returns the folder of the job's initial weights, which a step at learning rate 0 saves."""
    if not start_of(programs, job):
        workflow.one_rank(programs, job, name, "--method", "static", "--steps", 1, output="start.plan.json")
        programs.train("start.plan.json", job.data, f"{job.name}-start", "--learning-rate", 0, "--weight-decay", 0,
                       keeps_model=True)
    return start_of(programs, job)


def run_peer(programs, job, model, dtype, row="eager"):
    if not programs.torch:
        raise NotDone(f"{programs.options.python} cannot import torch: name a Python that can with --python")
    done = programs.run([programs.options.python, PEER, "--model", model, "--data", job.data, "--tokens", job.tokens,
                         "--batch", job.batch, "--steps", job.steps, "--device", programs.device, "--dtype", dtype,
                         "--row", row], HF_HUB_OFFLINE=1)
    if done.returncode != 0:
        raise Failure(f"{PEER.name}: {last_line(done.stderr)}")
    said = json.loads(last_line(done.stdout))
    if "not_here" in said:
        raise NotDone(said["not_here"])
    return said


class StepTimes:
    """The median step time in seconds, without the first steps, of each run of one kind."""

    def __init__(self):
        self.medians = []

    def add(self, seconds):
        self.medians.append(statistics.median(seconds[workflow.WARM_UP_STEPS:] or seconds))

    def add_run(self, summary):
        self.add([step["iteration_ns"] / 1e9 for step in summary["steps"]])

    def best(self):
        return min(self.medians)


def step_beside_pytorch(programs, job, dtype, check):
    name = f"{job.name}-{dtype}"
    workflow.profile(programs, job, name, 1, "--dtype", dtype, model=start_of(programs, job))
    workflow.one_rank(programs, job, name, "--method", "static", "--steps", job.steps)
    model = initial_weights(programs, job, name)
    ours, replayed, theirs = StepTimes(), StepTimes(), StepTimes()

    def train(run, times, *words):
        summary, _ = programs.train(f"{name}.plan.json", job.data, run, "--model", model, *words)
        times.add_run(summary)
        return workflow.losses_of(summary)

    predictions = []
    for _ in range(programs.options.rounds):
        losses = train(f"{name}-run", ours)
        check.figures["ours [ms]"] = ours.best() * 1e3
        predictions = predictions or note_predictions(programs, name, check)
        if programs.device == "cuda":
            by_graphs = train(f"{name}-graphs-run", replayed, "--cuda-graphs")
            check.figures["ours with CUDA graphs [ms]"] = replayed.best() * 1e3
            workflow.require_alike(by_graphs[:STEPS_WITH_GRAPHS], losses, LOSSES_APART[dtype],
                                   "those with CUDA graphs")
        peer = run_peer(programs, job, model, dtype)
        theirs.add(peer["step_seconds"])
        check.figures |= {f"{PEERS[dtype]} [ms]": theirs.best() * 1e3, "times as long": ours.best() / theirs.best()}
        if peer["peak_bytes"]:
            check.figures["PyTorch, peak [MiB]"] = peer["peak_bytes"] / 2**20
        check.targets = [*predictions, Target(f"{name}: step, times {PEERS[dtype]}'s", ours.best() / theirs.best(),
                                              1.05)]
        if replayed.medians:
            check.targets.append(Target(f"{name}: step with CUDA graphs, times {PEERS[dtype]}'s",
                                        replayed.best() / theirs.best(), 0.95))
        require_same_job(check, losses, peer, dtype)


def note_predictions(programs, name, check):
    """Adds the predictions to the check as figures and targets, and returns the targets."""
    run = programs.compared(f"{name}.plan.json", f"{name}-run")
    times, memory = workflow.prediction_errors(run)
    check.figures |= {"predicted [ms]": run["phases"][0]["predicted_iteration_ns"] / 1e6,
                      "ours, peak [MiB]": max(run["phases"][0]["measured_peak_memory_bytes"]) / 2**20}
    check.targets = [Target(f"{name}: profile predicts the step, off by", times[0], workflow.STEP_ERROR),
                     Target(f"{name}: memory, off by", memory[0], workflow.MEMORY_ERROR)]
    return check.targets


def require_same_job(check, losses, peer, dtype):
    check.figures["losses apart by"] = workflow.require_alike(losses[:COMPARED_STEPS], peer["losses"],
                                                              LOSSES_APART[dtype], f"PyTorch's ({peer['how']})")


def mixed_beside_pytorch(programs, job, dtype, check):
    """Compares frostpipe with eager PyTorch with padding, and with transformers without, on texts of several
    lengths."""
    name = f"{job.name}-{dtype}"
    workflow.profile(programs, job, name, 1, "--dtype", dtype, "--quick", model=start_of(programs, job))
    workflow.one_rank(programs, job, name, "--method", "static", "--steps", job.steps)
    model = initial_weights(programs, job, name)
    summary, _ = programs.train(f"{name}.plan.json", job.data, f"{name}-run", "--model", model)
    ours = StepTimes()
    ours.add_run(summary)
    check.figures["ours [ms]"] = ours.best() * 1e3
    for row, least in (("eager", FASTER_THAN_PADDED), ("unpadded", FASTER_THAN_UNPADDED)):
        peer = run_peer(programs, job, model, dtype, row)
        theirs = StepTimes()
        theirs.add(peer["step_seconds"])
        how = "eager, padded" if row == "eager" else f"unpadded ({peer['how']})"
        check.figures[f"{how} [ms]"] = theirs.best() * 1e3
        check.targets.append(Target(f"{name}: times as fast as {how}", theirs.best() / ours.best(), least=least))
        require_same_job(check, workflow.losses_of(summary), peer, dtype)


def checks(programs):
    inputs.write_all(programs.folder, programs.jobs)
    for dtype in ("float32", "bfloat16"):
        for name in ("bert", "gpt2", "llama"):
            own = programs.jobs[name]
            yield (Check("steps", f"a step of {own.name} in {dtype} compared with eager PyTorch"),
                   lambda check, own=own, dtype=dtype: step_beside_pytorch(programs, own, dtype, check))
    for dtype in ("bfloat16", "float32"):
        own = programs.jobs["mixed"]
        yield (Check("steps", f"a step of {own.name} in {dtype} compared with PyTorch, padded and unpadded"),
               lambda check, own=own, dtype=dtype: mixed_beside_pytorch(programs, own, dtype, check))
