"""Figures with targets: steps beside eager PyTorch, predictions, waits of the host, ranks that share the device,
messages that hide behind compute, and the memory checker."""
import json
import statistics
from pathlib import Path

import device_tests
import workflow
from programs import NotDone, Trouble
from results import Check, Target
from running import last_line

PEER = Path(__file__).resolve().parent.parent / "peers" / "one_device.py"
ROUNDS = {"full": 2, "small": 1}  # of ours and theirs, in turn
WARM_UP_STEPS = 3
LOSSES_APART = {"float32": 1e-3, "bfloat16": 2e-2}
COMPARED_STEPS = 3
STEPS_WITH_GRAPHS = 8  # the third is the first to be replayed, and its update shows in the fourth loss
MOST_WAITS = 1  # on one rank: at the end of the iteration
WAYS = {"": [], " with CUDA graphs": ["--cuda-graphs"]}
WAITED = "called a synchronizing CUDA operation"  # LibTorch's words


def median(seconds):
    return statistics.median(seconds[WARM_UP_STEPS:] or seconds)


def initial_weights(programs, job, plan):
    """A folder with what the job starts from: what a run at learning rate 0 saves. For both, and made once."""
    folder = f"{job.name}-start/model"
    if not (programs.folder / folder / "model.safetensors").exists():
        programs.train(plan, job.data, f"{job.name}-start", "--learning-rate", 0, "--weight-decay", 0)
    return folder


def run_peer(programs, job, model, dtype):
    if not programs.torch:
        raise NotDone(f"{programs.options.python} cannot import torch: name a Python that can with --python")
    done = programs.run([programs.options.python, PEER, "--model", model, "--data", job.data, "--tokens", job.tokens,
                         "--batch", job.batch, "--steps", job.steps, "--device", programs.device, "--dtype", dtype])
    if done.returncode != 0:
        raise Trouble(f"{PEER.name}: {last_line(done.stderr)}")
    return json.loads(last_line(done.stdout))


def losses_apart(ours, others, dtype, whose, steps=COMPARED_STEPS):
    apart = max(abs(a - b) / b for a, b in zip(ours[:steps], others))
    if apart > LOSSES_APART[dtype]:
        raise Trouble(f"our losses and {whose} are apart by {apart:.1e} of their value: not the same job")
    return apart


def step_beside_pytorch(programs, job, dtype):
    name = f"{job.name}-{dtype}"
    workflow.profile(programs, job, name, 1, "--dtype", dtype)
    workflow.plan(programs, job, name, "--method", "static", "--pp", 1, "--fix", "m=1", "--steps", job.steps)
    model = initial_weights(programs, job, f"{name}.plan.json")
    ours, by_graphs, theirs = [], [], []

    def train(run, seconds, *words):
        """The losses of the run's steps, whose times are added to `seconds`."""
        steps = programs.train(f"{name}.plan.json", job.data, run, "--model", model, *words)["steps"]
        seconds.append([step["iteration_ns"] / 1e9 for step in steps])
        return [step["loss"] for step in steps]

    for _ in range(ROUNDS[programs.options.size]):
        losses = train(f"{name}-run", ours)
        if programs.device == "cuda":
            losses_apart(train(f"{name}-graphs-run", by_graphs, "--cuda-graphs"), losses, dtype,
                         "those with CUDA graphs", STEPS_WITH_GRAPHS)
        peer = run_peer(programs, job, model, dtype)
        theirs.append(peer["step_seconds"])
    apart = losses_apart(losses, peer["losses"], dtype, "PyTorch's")
    step, peer_step = min(map(median, ours)), min(map(median, theirs))
    run = programs.compared(f"{name}.plan.json", f"{name}-run")
    times, memory = workflow.prediction_errors(run)
    figures = {"ours [ms]": step * 1e3, "PyTorch eager [ms]": peer_step * 1e3, "times as long": step / peer_step,
               "losses apart by": apart,
               "ours, peak [MiB]": max(run["phases"][0]["measured_peak_memory_bytes"]) / 2**20,
               "predicted [ms]": run["phases"][0]["predicted_iteration_ns"] / 1e6}
    if peer["peak_bytes"]:
        figures["PyTorch, peak [MiB]"] = peer["peak_bytes"] / 2**20
    targets = [Target(f"{name}: step, times PyTorch eager's", step / peer_step, 1.05),
               Target(f"{name}: profile predicts the step, off by", times[0], workflow.STEP_ERROR),
               Target(f"{name}: memory, off by", memory[0], workflow.MEMORY_ERROR)]
    if by_graphs:
        replayed = min(map(median, by_graphs))
        figures["ours with CUDA graphs [ms]"] = replayed * 1e3
        targets.append(Target(f"{name}: step with CUDA graphs, times PyTorch eager's", replayed / peer_step, 0.95))
    return figures, targets


def waits_of_the_host(programs):
    """Of each step, from runs of two lengths: what beginning and end wait for drops out."""
    if programs.device != "cuda":
        raise NotDone("the host waits for nobody on the CPU")
    job = programs.jobs["gpt2"]
    name, figures = f"{job.name}-float32", {}
    for how, words in WAYS.items():
        counts = []
        for steps in (job.steps // 2, job.steps):
            programs.frostpipe("plan", "--profile", f"{name}.profile.json", "--cluster", f"{name}.cluster.json",
                               "--global-batch", job.batch, "--method", "static", "--pp", 1, "--fix", "m=1",
                               "--steps", steps, "-o", "waits.plan.json")
            done = programs.frostpipe("train", "waits.plan.json", "--data", job.data, "-o", "waits-run", "--overwrite",
                                      *programs.on_device(), *words, FROSTPIPE_CUDA_REPORT_WAITS=1,
                                      TORCH_CPP_LOG_LEVEL="WARNING")
            counts.append(done.stderr.count(WAITED))
        if counts[0] == 0:
            raise Trouble("LibTorch reports no wait at all, which cannot be: every iteration ends with one")
        figures[f"host's waits per iteration{how}"] = (counts[1] - counts[0]) / (job.steps - job.steps // 2)
    return figures, [Target(what, waits, MOST_WAITS) for what, waits in figures.items()]


def four_ranks(programs):
    """On one device, through host memory, and on the CPU."""
    job = programs.jobs["four_ranks"]
    workflow.profile(programs, job, "four", 4)
    workflow.plan(programs, job, "four", "--method", "static", "--pp", 4, "--schedule", "1F1B", "--fix", "m=4",
               "--steps", job.steps)
    programs.frostpipe("train", "four.plan.json", "--data", job.data, "-o", "four-cpu-run", "--overwrite",
                       "--device", "cpu")
    on_cpu, figures = programs.read("four-cpu-run/summary.json"), {}
    for how, words in WAYS.items():
        if words and programs.device != "cuda":
            continue
        on_device = programs.train("four.plan.json", job.data, "four-run", *words)
        apart = max(abs(a["loss"] - b["loss"]) / b["loss"] for a, b in zip(on_device["steps"], on_cpu["steps"]))
        if apart > 1e-4:
            raise Trouble(f"the losses{how} are apart by {apart:.1e} of their value")
        figures[f"losses{how} apart by"] = apart
    return figures | {"steps": len(on_cpu["steps"])}, []


def overlap(programs):
    """Of the time that messages take, which part of what can hide behind compute does hide. What can is what the
    simulator hides; the same plan without messages is the simulator's, too."""
    job = programs.jobs["gpt2"]
    plan, link = programs.read("gpt2-two.plan.json"), programs.read("gpt2-two.cluster.json")["intra_node"]
    rows = json.loads(programs.frostpipe("simulate", "gpt2-two.plan.json", "--set", "bandwidth=x1000000,latency=x0",
                                         "--format", "json").stdout)["rows"]
    with_messages, without = (1e3 * row["training_seconds"] / job.steps for row in rows)
    measured = programs.read("gpt2-two-run/summary.json")["phases"][0]["measured_iteration_ns"] / 1e6
    micro_batches = plan["phases"][0]["num_micro_batches"]
    one = link["point_to_point"]
    size = 4 * job.hidden * job.tokens * job.batch / micro_batches
    messages = 2 * micro_batches * (one["latency_ns"] / 1e6 + 1e3 * size / one["bandwidth_bytes_per_second"])
    can_hide, hidden = messages - (with_messages - without), messages - (measured - without)
    figures = {"messages [ms]": messages, "without them [ms]": without, "simulated [ms]": with_messages,
               "measured [ms]": measured}
    if can_hide < 0.05 * messages:
        raise NotDone(f"the simulator hides none of {messages:.2f} ms of messages")
    return figures, [Target("messages hidden behind compute, of what can be", hidden / can_hide, least=0.8)]


def sanitizer(programs):
    if programs.device != "cuda":
        raise NotDone("compute-sanitizer is of CUDA")
    if not programs.sanitizer:
        raise NotDone("compute-sanitizer is not installed")
    if not programs.options.tests:
        raise NotDone("frostpipe_executor_tests is not beside the tool")
    report = programs.folder / "logs" / f"{programs.num_started + 1:03}.json"
    done = programs.run([programs.sanitizer, "--tool", "memcheck", "--error-exitcode", 9, programs.options.tests,
                         "--gtest_filter=On/Devices.*Limit*/cuda:On/Devices.*Group*/cuda:On/ModelsOnDevices.*/cuda",
                         f"--gtest_output=json:{report}"], most_seconds=420, **programs.libraries)
    summary = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR SUMMARY" in line]
    if done.returncode != 0 or not summary:
        raise Trouble(f"exit code {done.returncode}: {summary[-1] if summary else last_line(done.stderr)}")
    ran = [test for test in device_tests.tests_of(report) if test["result"] != "SKIPPED"] if report.exists() else []
    if not ran:
        raise Trouble("it watched no test: the test program has none of these, or skipped them all")
    return {"said": summary[-1].strip("= "), "tests": len(ran)}, []


def checks(programs):
    for job in ("gpt2", "bert"):
        for dtype in ("float32", "bfloat16"):
            own = programs.jobs[job]
            yield (Check("measurements", f"a step of {own.name} in {dtype} beside PyTorch eager"),
                   lambda own=own, dtype=dtype: step_beside_pytorch(programs, own, dtype))
    for name, measure in (("waits of the host within a step", waits_of_the_host),
                          ("four ranks on one device equal four on the CPU", four_ranks),
                          ("messages behind compute", overlap),
                          ("compute-sanitizer memcheck", sanitizer)):
        yield Check("measurements", name), lambda measure=measure: measure(programs)
