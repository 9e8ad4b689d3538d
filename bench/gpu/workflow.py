"""The steps of a user's workflow (profile, plan, train, compare), and figures from their output."""
import math
import statistics

from programs import Failure

STEP_ERROR, MEMORY_ERROR = 0.05, 0.03
LEAST_STEPS = 5  # shorter phases are not judged
WARM_UP_STEPS = 3
WAYS = {"": [], " with CUDA graphs": ["--cuda-graphs"]}


def profile(programs, job, name, ranks, *words, model=None, **more):
    """Measures a profile. `model` is a folder with weights; without it the weights are random. `more` are
    environment variables."""
    sizes = [job.batch] if ranks == 1 else sorted({job.batch, max(1, job.batch // 4)})  # one takes all
    tokens = () if job.varies else ("--tokens", job.tokens)
    quick = ("--quick",) if programs.options.size == "small" else ()
    threads = ("--threads-per-rank", 1) if programs.device == "cpu" else ()
    programs.frostpipe("profile", "--model", model or job.name, "--data", job.data, "--max-tokens", job.tokens,
                       "--global-batch", job.batch, "--nproc-per-node", ranks, *threads,
                       "--micro-batch-sizes", ",".join(map(str, sizes)), *tokens, *quick, *programs.on_device(),
                       "-o", f"{name}.profile.json", "--cluster", f"{name}.cluster.json", *words, **more)


def plan(programs, job, name, *words, output=None, profile=None):
    """Makes a plan from the profile `profile`, which is `name` by default."""
    source = profile or name
    programs.frostpipe("plan", "--profile", f"{source}.profile.json", "--cluster", f"{source}.cluster.json",
                       "--global-batch", job.batch, *words, "-o", output or f"{name}.plan.json")


def one_rank(programs, job, name, *words, output=None):
    """Plans the whole model on one rank, whole mini-batches at a time."""
    plan(programs, job, name, "--fix", "pp=1", "--fix", "m=1", *words, output=output)


def error(predicted, measured):
    return abs(predicted / measured - 1) if measured else math.nan


def prediction_errors(run):
    """Returns the errors of each phase's iteration time, and of the largest rank's memory, by the phase's number and
    without short phases."""
    times, memory = {}, {}
    for number, phase in enumerate(run["phases"]):
        if phase["num_steps"] >= LEAST_STEPS:
            times[number] = error(phase["predicted_iteration_ns"], phase["measured_iteration_ns"])
            memory[number] = error(max(phase["predicted_peak_memory_bytes"]), max(phase["measured_peak_memory_bytes"]))
    return times, memory


def most_apart(ours, others):
    """Returns the largest relative difference between two runs' losses; NaN if one is not a number."""
    apart = [abs(a - b) / b for a, b in zip(ours, others)]
    return max(apart) if all(map(math.isfinite, apart)) else math.nan


def require_alike(ours, others, most, whose):
    """Returns the difference of the losses. Raises Failure if it is more than `most`, or not a number."""
    apart = most_apart(ours, others)
    if not apart <= most:
        raise Failure(f"our losses and {whose} differ by {apart:.1e} of their value, so the jobs differ")
    return apart


def losses_of(summary):
    return [step["loss"] for step in summary["steps"]]


def require_learning(check, summary):
    losses = losses_of(summary)
    if not all(map(math.isfinite, losses)):
        raise Failure(f"a loss is not finite: {losses}")
    quarter = max(1, len(losses) // 4)
    first, last = statistics.mean(losses[:quarter]), statistics.mean(losses[-quarter:])
    check.figures |= {"loss of the first quarter": first, "loss of the last quarter": last}
    if last >= first:
        raise Failure(f"the loss does not fall: {first:.4f} at first, {last:.4f} at last")


def note_phases(check, run):
    """Adds the figures of a run that freezes layers. Raises Failure if nothing was frozen."""
    phases = run["phases"]
    check.figures |= {"layouts": [f"{phase['stages']} x {phase['replicas']}" for phase in phases],
                      "frozen blocks": [phase["frozen_blocks"] for phase in phases],
                      "iterations [ms]": [phase["measured_iteration_ns"] / 1e6 for phase in phases],
                      "predicted [ms]": [phase["predicted_iteration_ns"] / 1e6 for phase in phases],
                      "changes [ms]": [phase["transformation_ns"] / 1e6 for phase in phases[1:]],
                      "cache hits": [phase["cache_hit_fraction"] for phase in phases]}
    if phases[-1]["frozen_blocks"] == 0:
        raise Failure("nothing has been frozen")
