"""Figures with targets: steps compared with eager PyTorch, predictions, an elastic run on one rank, waits of the host,
and ranks that share the device."""
import json
import statistics
from pathlib import Path

import inputs
import workflow
from programs import NotDone, Trouble
from results import Check, Target
from running import last_line

PEER = Path(__file__).resolve().parent.parent / "peers" / "one_device.py"
STEP_ERROR, PHASE_ERROR = 0.05, 0.08
LOSSES_APART = {"float32": 1e-3, "bfloat16": 2e-2}
PEERS = {"float32": "PyTorch eager", "bfloat16": "PyTorch eager, autocast"}
COMPARED_STEPS = 3
STEPS_WITH_GRAPHS = 8  # the third is the first to be replayed, and its update shows in the fourth loss
ELASTIC_EPOCHS = 4
WAITING_STEPS = (5, 10)
MOST_WAITS = 1  # on one rank: at the end of the iteration
WAYS = {"": [], " with CUDA graphs": ["--cuda-graphs"]}
WAITED = "called a synchronizing CUDA operation"  # LibTorch's message


def one_rank(programs, job, name, *words, output=None):
    """Plans the whole model on one rank, whole mini-batches at a time."""
    workflow.plan(programs, job, name, "--fix", "pp=1", "--fix", "m=1", *words, output=output)


def start_of(programs, job):
    """The folder with the job's initial weights, for all runs; it does not exist until initial_weights() makes it."""
    folder = f"{job.name}-start/model"
    return folder if (programs.folder / folder / "model.safetensors").exists() else None


def initial_weights(programs, job, name):
    """Saves the weights after a step with learning rate 0."""
    if not start_of(programs, job):
        one_rank(programs, job, name, "--method", "static", "--steps", 1, output="start.plan.json")
        programs.train("start.plan.json", job.data, f"{job.name}-start", "--learning-rate", 0, "--weight-decay", 0,
                       keeps_model=True)
    return start_of(programs, job)


def run_peer(programs, job, model, dtype):
    if not programs.torch:
        raise NotDone(f"{programs.options.python} cannot import torch: name a Python that can with --python")
    done = programs.run([programs.options.python, PEER, "--model", model, "--data", job.data, "--tokens", job.tokens,
                         "--batch", job.batch, "--steps", job.steps, "--device", programs.device, "--dtype", dtype])
    if done.returncode != 0:
        raise Trouble(f"{PEER.name}: {last_line(done.stderr)}")
    return json.loads(last_line(done.stdout))


class StepTimes:
    """The median step in seconds, without the first steps, of each run of one kind."""

    def __init__(self):
        self.medians = []

    def add(self, seconds):
        self.medians.append(statistics.median(seconds[workflow.WARM_UP_STEPS:] or seconds))

    def best(self):
        return min(self.medians)


def step_beside_pytorch(programs, job, dtype, check):
    name = f"{job.name}-{dtype}"
    workflow.profile(programs, job, name, 1, "--dtype", dtype, model=start_of(programs, job))
    one_rank(programs, job, name, "--method", "static", "--steps", job.steps)
    model = initial_weights(programs, job, name)
    ours, replayed, theirs = StepTimes(), StepTimes(), StepTimes()

    def train(run, times, *words):
        summary, _ = programs.train(f"{name}.plan.json", job.data, run, "--model", model, *words)
        times.add([step["iteration_ns"] / 1e9 for step in summary["steps"]])
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
        check.figures["losses apart by"] = workflow.require_alike(losses[:COMPARED_STEPS], peer["losses"],
                                                                  LOSSES_APART[dtype], "PyTorch's")


def note_predictions(programs, name, check):
    """Adds the predictions and their targets to the check."""
    run = programs.compared(f"{name}.plan.json", f"{name}-run")
    times, memory = workflow.prediction_errors(run)
    check.figures |= {"predicted [ms]": run["phases"][0]["predicted_iteration_ns"] / 1e6,
                      "ours, peak [MiB]": max(run["phases"][0]["measured_peak_memory_bytes"]) / 2**20}
    check.targets = [Target(f"{name}: profile predicts the step, off by", times[0], STEP_ERROR),
                     Target(f"{name}: memory, off by", memory[0], workflow.MEMORY_ERROR)]
    return check.targets


def elastic(programs, check):
    """Layers freeze on one rank, with the cache, using the profile of the comparison with PyTorch."""
    job = programs.jobs["bert"]
    name = f"{job.name}-float32"
    one_rank(programs, job, name, "--method", "pipetransformer", "--epochs", ELASTIC_EPOCHS, output="elastic.plan.json")
    programs.train("elastic.plan.json", job.data, "elastic-run", "--model", start_of(programs, job) or job.name)
    run = programs.compared("elastic.plan.json", "elastic-run")
    times, memory = workflow.prediction_errors(run)
    check.targets = [*(Target(f"elastic: iteration of phase {i}, off by", value, PHASE_ERROR)
                       for i, value in times.items()),
                     *(Target(f"elastic: memory of phase {i}, off by", value, workflow.MEMORY_ERROR)
                       for i, value in memory.items())]
    workflow.note_phases(check, run)
    if not any(check.figures["cache hits"]):
        raise Trouble("the cache was of no use")


def waits_of_the_host(programs, check):
    """Waits in each step, from runs of two lengths, so that the waits at the start and end cancel out."""
    if programs.device != "cuda":
        raise NotDone("the host waits for nobody on the CPU")
    job = programs.jobs["gpt2"]
    few, many = WAITING_STEPS
    for how, words in WAYS.items():
        counts = []
        for steps in WAITING_STEPS:
            one_rank(programs, job, f"{job.name}-float32", "--method", "static", "--steps", steps,
                     output="waits.plan.json")
            _, said = programs.train("waits.plan.json", job.data, "waits-run", "--model",
                                     start_of(programs, job) or job.name, *words, FROSTPIPE_CUDA_REPORT_WAITS=1,
                                     TORCH_CPP_LOG_LEVEL="WARNING")
            counts.append(said.count(WAITED))
        if counts[0] == 0:
            raise Trouble("LibTorch reports no wait at all, which cannot be: every iteration ends with one")
        waits = (counts[1] - counts[0]) / (many - few)
        check.figures[f"host's waits per iteration{how}"] = waits
        check.targets.append(Target(f"host's waits per iteration{how}", waits, MOST_WAITS))


def four_ranks(programs, check):
    """Four ranks on one device, through host memory, and four on the CPU."""
    job = programs.jobs["four_ranks"]
    workflow.profile(programs, job, "four", 4)
    workflow.plan(programs, job, "four", "--method", "static", "--fix", "pp=4", "--schedule", "1F1B", "--fix", "m=4",
                  "--steps", job.steps)
    programs.frostpipe("train", "four.plan.json", "--data", job.data, "-o", "four-cpu-run", "--overwrite",
                       "--device", "cpu")
    on_cpu = workflow.losses_of(programs.read("four-cpu-run/summary.json"))
    check.figures["steps"] = len(on_cpu)
    for how, words in WAYS.items():
        if words and programs.device != "cuda":
            continue
        on_device, _ = programs.train("four.plan.json", job.data, "four-run", *words)
        check.figures[f"losses{how} apart by"] = workflow.require_alike(workflow.losses_of(on_device), on_cpu, 1e-4,
                                                                        f"the CPU's{how}")


def checks(programs):
    inputs.write_all(programs.folder, programs.jobs)
    for job in ("gpt2", "bert"):
        for dtype in ("float32", "bfloat16"):
            own = programs.jobs[job]
            yield (Check("measurements", f"a step of {own.name} in {dtype} beside PyTorch eager"),
                   lambda check, own=own, dtype=dtype: step_beside_pytorch(programs, own, dtype, check))
    for name, measure in (("an elastic run on one rank", elastic),
                          ("waits of the host within a step", waits_of_the_host),
                          ("four ranks on one device equal four on the CPU", four_ranks)):
        yield Check("measurements", name), lambda check, measure=measure: measure(programs, check)
