"""A user's workflow on the device: profile, plan, train, compare, with a change of the layout and the cache; messages
that overlap with compute; resuming from a checkpoint; and the error message if memory does not suffice.

Ranks that share a device have it to themselves while the others wait, and the profile was measured with all of them at
work. So their iterations have no targets here; those of one rank do (measurements.py)."""
import math
import re
import statistics

import inputs
import messages
from programs import NotDone, Trouble
from results import Check, Target

MEMORY_ERROR = 0.03
LEAST_STEPS = 5  # of a phase, for a figure that means something
WARM_UP_STEPS = 3


def profile(programs, job, name, ranks, *words, model=None):
    """`model`: a folder with weights; without it, weights are random."""
    sizes = sorted({job.batch, max(1, job.batch // 4)})
    tokens = () if job.varies else ("--tokens", job.tokens)
    quick = ("--quick",) if programs.options.size == "small" else ()
    threads = ("--threads-per-rank", 1) if programs.device == "cpu" else ()
    programs.frostpipe("profile", "--model", model or job.name, "--data", job.data, "--max-tokens", job.tokens,
                       "--global-batch", job.batch, "--nproc-per-node", ranks, *threads,
                       "--micro-batch-sizes", ",".join(map(str, sizes)), *tokens, *quick, *programs.on_device(),
                       "-o", f"{name}.profile.json", "--cluster", f"{name}.cluster.json", *words)


def plan(programs, job, name, *words, output=None):
    """Makes a plan from the profile `name`."""
    programs.frostpipe("plan", "--profile", f"{name}.profile.json", "--cluster", f"{name}.cluster.json",
                       "--global-batch", job.batch, *words, "-o", output or f"{name}.plan.json")


def error(predicted, measured):
    return abs(predicted / measured - 1) if measured else math.nan


def prediction_errors(run):
    """(errors of each phase's iteration time, errors of the largest rank's memory) by the phase's number, without short
    phases."""
    times, memory = {}, {}
    for number, phase in enumerate(run["phases"]):
        if phase["num_steps"] >= LEAST_STEPS:
            times[number] = error(phase["predicted_iteration_ns"], phase["measured_iteration_ns"])
            memory[number] = error(max(phase["predicted_peak_memory_bytes"]), max(phase["measured_peak_memory_bytes"]))
    return times, memory


def most_apart(ours, others):
    """The largest relative difference between two runs' losses; NaN if one is not a number."""
    apart = [abs(a - b) / b for a, b in zip(ours, others)]
    return max(apart) if all(map(math.isfinite, apart)) else math.nan


def require_alike(ours, others, most, whose):
    """The difference of the losses. Raises Trouble if it is more than `most`, or not a number."""
    apart = most_apart(ours, others)
    if not apart <= most:
        raise Trouble(f"our losses and {whose} are apart by {apart:.1e} of their value: not the same job")
    return apart


def losses_of(summary):
    return [step["loss"] for step in summary["steps"]]


def require_learning(check, summary):
    losses = losses_of(summary)
    if not all(map(math.isfinite, losses)):
        raise Trouble(f"a loss is not finite: {losses}")
    quarter = max(1, len(losses) // 4)
    first, last = statistics.mean(losses[:quarter]), statistics.mean(losses[-quarter:])
    check.figures |= {"loss of the first quarter": first, "loss of the last quarter": last}
    if last >= first:
        raise Trouble(f"the loss does not fall: {first:.4f} at first, {last:.4f} at last")


def note_phases(check, run):
    """Figures of a run that freezes layers."""
    phases = run["phases"]
    check.figures |= {"layouts": [f"{phase['stages']} x {phase['replicas']}" for phase in phases],
                      "frozen blocks": [phase["frozen_blocks"] for phase in phases],
                      "iterations [ms]": [phase["measured_iteration_ns"] / 1e6 for phase in phases],
                      "predicted [ms]": [phase["predicted_iteration_ns"] / 1e6 for phase in phases],
                      "changes [ms]": [phase["transformation_ns"] / 1e6 for phase in phases[1:]],
                      "cache hits": [phase["cache_hit_fraction"] for phase in phases]}
    if phases[-1]["frozen_blocks"] == 0:
        raise Trouble("nothing has been frozen")


def quickstart(programs, check):
    """An elastic run on two ranks that share the device: freezing, another layout, cached activations."""
    job = programs.jobs["quickstart"]
    profile(programs, job, "quickstart", 2)
    plan(programs, job, "quickstart", "--method", "pipetransformer", "--fix", "pp=2", "--epochs", job.epochs)
    summary, _ = programs.train("quickstart.plan.json", job.data, "quickstart-run", "--freeze", "cap",
                                "--learning-rate", job.learning_rate)
    run = programs.compared("quickstart.plan.json", "quickstart-run")
    check.figures["test accuracy"] = summary["test_accuracy"]
    check.targets = [Target(f"quickstart: memory of phase {i}, off by", value, MEMORY_ERROR)
                     for i, value in prediction_errors(run)[1].items()]
    note_phases(check, run)
    require_learning(check, summary)


def gpt2(programs, check):
    """A static pipeline on two ranks that share the device."""
    job = programs.jobs["gpt2"]
    profile(programs, job, "gpt2-two", 2)
    plan(programs, job, "gpt2-two", "--method", "static", "--fix", "pp=2", "--schedule", "1F1B", "--fix", "m=4",
         "--steps", job.steps)
    half = job.steps // 2
    summary, _ = programs.train("gpt2-two.plan.json", job.data, "gpt2-two-run", "--checkpoint-every", half)
    run = programs.compared("gpt2-two.plan.json", "gpt2-two-run")
    check.figures["iteration [ms]"] = run["phases"][0]["measured_iteration_ns"] / 1e6
    check.targets = [Target("gpt2 on two ranks: memory, off by", prediction_errors(run)[1][0], MEMORY_ERROR)]
    require_learning(check, summary)


def overlap(programs, check):
    """For the messages of that run, through host memory: the fraction of the time hidden in the simulator that is also
    hidden in the run."""
    job = programs.jobs["gpt2"]
    micro_batches = programs.read("gpt2-two.plan.json")["phases"][0]["num_micro_batches"]
    link = programs.read("gpt2-two.cluster.json")["intra_node"]["point_to_point"]
    size = 4 * job.hidden * job.tokens * job.batch / micro_batches
    message = link["latency_ns"] / 1e3 + 1e6 * size / link["bandwidth_bytes_per_second"]
    programs.frostpipe("simulate", "gpt2-two.plan.json", "--timeline", "gpt2-two.timeline.json")
    simulated = messages.median_exposed(programs.read("gpt2-two.timeline.json"), 0)
    measured = messages.median_exposed(programs.read("gpt2-two-run/trace.json"), WARM_UP_STEPS)
    share, can_hide = messages.hidden_share(message, simulated, measured)
    check.figures |= {"messages": len(simulated), "one of them [ms]": message / 1e3,
                      "exposed of all, simulated [ms]": sum(simulated.values()) / 1e3,
                      "exposed of all, measured [ms]": sum(measured.values()) / 1e3}
    if can_hide < 0.05 * message * len(simulated):
        raise NotDone(f"the simulator hides none of {len(simulated)} messages of {message / 1e3:.3f} ms")
    check.targets.append(Target("messages hidden behind compute, of what can be", share, least=0.8))


def resume(programs, check):
    """Repeats the second half of the run from the checkpoint in its middle."""
    job = programs.jobs["gpt2"]
    half = job.steps // 2
    expected = programs.read("gpt2-two-run/summary.json")["steps"][half:]
    summary, _ = programs.train("gpt2-two.plan.json", job.data, "gpt2-again", "--resume",
                                f"gpt2-two-run/checkpoints/step-{half:08}")
    again = summary["steps"][-len(expected):]
    if [step["step"] for step in again] != [step["step"] for step in expected]:
        raise Trouble(f"it made the steps from {again[0]['step']}, not from {half}")
    check.figures["losses apart by"] = require_alike(losses_of({"steps": again}), losses_of({"steps": expected}), 1e-3,
                                                     "those of the whole run")


def out_of_memory(programs, check):
    """The same run with three quarters of the memory that it used."""
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
    check.figures["said"] = said.group(0)


def checks(programs):
    inputs.write_all(programs.folder, programs.jobs)
    for name, step in (("profile, plan, train, compare of the quickstart's model", quickstart),
                       (f"profile, plan, train, compare of {programs.jobs['gpt2'].name}", gpt2),
                       ("messages behind compute", overlap),
                       ("training resumes from a checkpoint", resume),
                       ("out of memory names rank and action", out_of_memory)):
        yield Check("workflow", name), lambda check, step=step: step(programs, check)
