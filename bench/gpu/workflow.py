"""A user's workflow on the device: profile, plan, train, compare, with a change of the layout and the cache; resuming
from a checkpoint; and what is said where memory does not suffice."""
import math
import re
import statistics

import inputs
from programs import Trouble
from results import Check, Target

EPOCHS = 4  # of a run that freezes
PHASE_ERROR, STEP_ERROR, MEMORY_ERROR = 0.08, 0.05, 0.03
LEAST_STEPS = 5  # of a phase, for a figure that means something


def profile(programs, job, name, ranks, *words):
    sizes = sorted({job.batch, max(1, job.batch // 4)})
    tokens = () if job.varies else ("--tokens", job.tokens)
    quick = ("--quick",) if programs.options.size == "small" else ()
    threads = ("--threads-per-rank", 1) if programs.device == "cpu" else ()
    programs.frostpipe("profile", "--model", job.name, "--data", job.data, "--max-tokens", job.tokens,
                       "--global-batch", job.batch, "--nproc-per-node", ranks, *threads,
                       "--micro-batch-sizes", ",".join(map(str, sizes)), *tokens, *quick, *programs.on_device(),
                       "-o", f"{name}.profile.json", "--cluster", f"{name}.cluster.json", *words)


def plan(programs, job, name, *words):
    programs.frostpipe("plan", "--profile", f"{name}.profile.json", "--cluster", f"{name}.cluster.json",
                       "--global-batch", job.batch, *words, "-o", f"{name}.plan.json")


def error(predicted, measured):
    return abs(predicted / measured - 1) if measured else math.nan


def prediction_errors(run):
    """(of each phase's iteration, of the fullest rank's memory); of short phases none."""
    phases = [phase for phase in run["phases"] if phase["num_steps"] >= LEAST_STEPS]
    times = [error(phase["predicted_iteration_ns"], phase["measured_iteration_ns"]) for phase in phases]
    memory = [error(max(phase["predicted_peak_memory_bytes"]), max(phase["measured_peak_memory_bytes"]))
              for phase in phases]
    return times, memory


def check_loss_falls(run):
    losses = [step["loss"] for step in run["steps"]]
    if not all(map(math.isfinite, losses)):
        raise Trouble(f"a loss is not finite: {losses}")
    quarter = max(1, len(losses) // 4)
    first, last = statistics.mean(losses[:quarter]), statistics.mean(losses[-quarter:])
    if last >= first:
        raise Trouble(f"the loss does not fall: {first:.4f} at first, {last:.4f} at last")
    return {"loss of the first quarter": first, "loss of the last quarter": last}


def quickstart(programs):
    """An elastic run on two ranks that share the device: freezing, another layout, cached activations."""
    job = programs.jobs["quickstart"]
    profile(programs, job, "quickstart", 2)
    plan(programs, job, "quickstart", "--method", "pipetransformer", "--pp", 2, "--epochs", EPOCHS)
    summary = programs.train("quickstart.plan.json", job.data, "quickstart-run", "--freeze", "cap",
                             "--learning-rate", job.learning_rate)
    run = programs.compared("quickstart.plan.json", "quickstart-run")
    figures = check_loss_falls(summary)
    phases = run["phases"]
    if phases[-1]["frozen_blocks"] == 0:
        raise Trouble("nothing has been frozen")
    times, memory = prediction_errors(run)
    figures |= {"layouts": [f"{phase['stages']} x {phase['replicas']}" for phase in phases],
                "frozen blocks": [phase["frozen_blocks"] for phase in phases],
                "iterations [ms]": [phase["measured_iteration_ns"] / 1e6 for phase in phases],
                "changes [ms]": [phase["transformation_ns"] / 1e6 for phase in phases[1:]],
                "cache hits": [phase["cache_hit_fraction"] for phase in phases],
                "test accuracy": summary["test_accuracy"]}
    targets = [Target(f"quickstart: iteration of phase {i}, off by", value, PHASE_ERROR)
               for i, value in enumerate(times)]
    return figures, [*targets, *(Target(f"quickstart: memory of phase {i}, off by", value, MEMORY_ERROR)
                                 for i, value in enumerate(memory))]


def gpt2(programs):
    """A static pipeline on two ranks that share the device."""
    job = programs.jobs["gpt2"]
    profile(programs, job, "gpt2-two", 2)
    plan(programs, job, "gpt2-two", "--method", "static", "--pp", 2, "--schedule", "1F1B", "--fix", "m=4",
         "--steps", job.steps)
    half = job.steps // 2
    summary = programs.train("gpt2-two.plan.json", job.data, "gpt2-two-run", "--checkpoint-steps", half)
    run = programs.compared("gpt2-two.plan.json", "gpt2-two-run")
    times, memory = prediction_errors(run)
    figures = check_loss_falls(summary) | {"iteration [ms]": run["phases"][0]["measured_iteration_ns"] / 1e6}
    return figures, [Target("gpt2 on two ranks: iteration, off by", times[0], STEP_ERROR),
                     Target("gpt2 on two ranks: memory, off by", memory[0], MEMORY_ERROR)]


def resume(programs):
    """The second half of the run once more, from the checkpoint in its middle."""
    job = programs.jobs["gpt2"]
    half = job.steps // 2
    expected = programs.read("gpt2-two-run/summary.json")["steps"][half:]
    summary = programs.train("gpt2-two.plan.json", job.data, "gpt2-again", "--resume",
                             f"gpt2-two-run/checkpoints/step-{half:08}")
    again = summary["steps"][-len(expected):]
    apart = max(abs(a["loss"] - b["loss"]) / b["loss"] for a, b in zip(again, expected))
    if [step["step"] for step in again] != [step["step"] for step in expected] or apart > 1e-3:
        raise Trouble(f"the losses are apart by {apart:.1e} of their value")
    return {"losses apart by": apart}, []


def out_of_memory(programs):
    """The same run with three quarters of the memory that it took."""
    plan_file, cluster = programs.read("gpt2-two.plan.json"), programs.read("gpt2-two.cluster.json")
    phase = programs.read("gpt2-two-run/summary.json")["phases"][0]
    plan_file["memory_limited"] = True
    for device, peak in zip(cluster["devices"], phase["measured_peak_memory_bytes"]):
        device["memory_limit_bytes"] = peak * 3 // 4
    programs.write("limited.plan.json", plan_file)
    programs.write("limited.cluster.json", cluster)
    done = programs.frostpipe("train", "limited.plan.json", "--cluster", "limited.cluster.json", "--data",
                              programs.jobs["gpt2"].data, "-o", "limited-run", "--overwrite", *programs.on_device(),
                              code=1)
    said = re.search(r"rank \d+: out of memory in (\S+): \d+ (more )?bytes.*", done.stderr)
    if not said:
        raise Trouble(f"no rank and action are named: {done.stderr.strip()[-300:]}")
    return {"said": said.group(0)}, []


def checks(programs):
    inputs.write_all(programs.folder, programs.jobs, EPOCHS)
    for name, step in (("profile, plan, train, compare of the quickstart's model", quickstart),
                       (f"profile, plan, train, compare of {programs.jobs['gpt2'].name}", gpt2),
                       ("training resumes from a checkpoint", resume),
                       ("out of memory names rank and action", out_of_memory)):
        yield Check("workflow", name), lambda step=step: step(programs)
