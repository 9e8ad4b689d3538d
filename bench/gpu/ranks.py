"""Checks of several ranks that share the device: messages overlap with compute, four ranks compute as on the CPU, a
user's workflow changes the layout and uses the cache, training resumes from a checkpoint, and a lack of memory is
reported.

A rank that shares a device has it to itself while the other ranks wait, but the profile is measured while all ranks
compute. So iteration times have no targets here; those of one rank have (elastic.py, steps.py)."""
import re

import inputs
import messages
import workflow
from programs import Failure, NotDone
from results import Check, Target

SECONDS = 120


def quickstart(programs, check):
    """A run on two ranks that share the device, which freezes layers, changes the layout and caches activations."""
    job = programs.jobs["quickstart"]
    workflow.profile(programs, job, "quickstart", 2)
    workflow.plan(programs, job, "quickstart", "--method", "pipetransformer", "--fix", "pp=2", "--epochs", job.epochs)
    summary, _ = programs.train("quickstart.plan.json", job.data, "quickstart-run", "--freeze", "cap",
                                "--learning-rate", job.learning_rate)
    run = programs.compared("quickstart.plan.json", "quickstart-run")
    check.figures["test accuracy"] = summary["test_accuracy"]
    check.targets = [Target(f"quickstart: memory of phase {i}, off by", value, workflow.MEMORY_ERROR)
                     for i, value in workflow.prediction_errors(run)[1].items()]
    workflow.note_phases(check, run)
    workflow.require_learning(check, summary)


def gpt2(programs, check):
    """Trains by a static pipeline on two ranks that share the device."""
    job = programs.jobs["gpt2"]
    workflow.profile(programs, job, "gpt2-two", 2)
    workflow.plan(programs, job, "gpt2-two", "--method", "static", "--fix", "pp=2", "--schedule", "1F1B", "--fix",
                  "m=4", "--steps", job.steps)
    half = job.steps // 2
    summary, _ = programs.train("gpt2-two.plan.json", job.data, "gpt2-two-run", "--checkpoint-every", half)
    run = programs.compared("gpt2-two.plan.json", "gpt2-two-run")
    check.figures["iteration [ms]"] = run["phases"][0]["measured_iteration_ns"] / 1e6
    check.targets = [Target("gpt2 on two ranks: memory, off by", workflow.prediction_errors(run)[1][0],
                            workflow.MEMORY_ERROR)]
    workflow.require_learning(check, summary)


def overlap(programs, check):
    """Judges how much of the message time that the simulator hides behind compute the run hides as well. The messages
    are those of gpt2(), through host memory."""
    job = programs.jobs["gpt2"]
    micro_batches = programs.read("gpt2-two.plan.json")["phases"][0]["num_micro_batches"]
    link = programs.read("gpt2-two.cluster.json")["intra_node"]["point_to_point"]
    size = 4 * job.hidden * job.tokens * job.batch / micro_batches
    message = link["latency_ns"] / 1e3 + 1e6 * size / link["bandwidth_bytes_per_second"]
    programs.frostpipe("simulate", "gpt2-two.plan.json", "--timeline", "gpt2-two.timeline.json")
    simulated = messages.median_exposed(programs.read("gpt2-two.timeline.json"), 0)
    measured = messages.median_exposed(programs.read("gpt2-two-run/trace.json"), workflow.WARM_UP_STEPS)
    share, can_hide = messages.hidden_share(message, simulated, measured)
    check.figures |= {"messages": len(simulated), "one message [ms]": message / 1e3,
                      "exposed time of all, simulated [ms]": sum(simulated.values()) / 1e3,
                      "exposed time of all, measured [ms]": sum(measured.values()) / 1e3}
    if can_hide < 0.05 * message * len(simulated):
        raise NotDone(f"the simulator hides none of {len(simulated)} messages of {message / 1e3:.3f} ms")
    check.targets.append(Target("message time hidden, as a fraction of what the simulator hides", share, least=0.8))


def resume(programs, check):
    """Repeats the second half of the run from the checkpoint in its middle."""
    job = programs.jobs["gpt2"]
    half = job.steps // 2
    expected = programs.read("gpt2-two-run/summary.json")["steps"][half:]
    summary, _ = programs.train("gpt2-two.plan.json", job.data, "gpt2-again", "--resume",
                                f"gpt2-two-run/checkpoints/step-{half:08}")
    again = summary["steps"][-len(expected):]
    if [step["step"] for step in again] != [step["step"] for step in expected]:
        raise Failure(f"it repeated the steps from {again[0]['step']}, not from {half}")
    check.figures["losses apart by"] = workflow.require_alike(workflow.losses_of({"steps": again}),
                                                              workflow.losses_of({"steps": expected}), 1e-3,
                                                              "those of the whole run")


def out_of_memory(programs, check):
    """Runs the same plan with three quarters of the memory that it needs."""
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
    message = re.search(r"rank \d+: out of memory in (\S+): \d+ (more )?bytes.*", done.stderr)
    if not message:
        raise Failure(f"the message names no rank and action: {done.stderr.strip()[-300:]}")
    check.figures["message"] = message.group(0)


def four_ranks(programs, check):
    """Trains by one plan on one device, through host memory, and on the CPU, and compares the losses."""
    job = programs.jobs["four_ranks"]
    workflow.profile(programs, job, "four", 4)
    workflow.plan(programs, job, "four", "--method", "static", "--fix", "pp=4", "--schedule", "1F1B", "--fix", "m=4",
                  "--steps", job.steps)
    programs.frostpipe("train", "four.plan.json", "--data", job.data, "-o", "four-cpu-run", "--overwrite",
                       "--device", "cpu")
    on_cpu = workflow.losses_of(programs.read("four-cpu-run/summary.json"))
    check.figures["steps"] = len(on_cpu)
    for how, words in workflow.WAYS.items():
        if words and programs.device != "cuda":
            continue
        on_device, _ = programs.train("four.plan.json", job.data, "four-run", *words)
        check.figures[f"losses{how} apart by"] = workflow.require_alike(workflow.losses_of(on_device), on_cpu, 1e-4,
                                                                        f"the CPU's{how}")


def checks(programs):
    inputs.write_all(programs.folder, programs.jobs)
    for name, step in ((f"profile, plan, train, compare of {programs.jobs['gpt2'].name}", gpt2),
                       ("messages overlap with compute", overlap),
                       ("four ranks on one device equal four on the CPU", four_ranks),
                       ("profile, plan, train, compare of the quickstart's model", quickstart),
                       ("training resumes from a checkpoint", resume),
                       ("out of memory names rank and action", out_of_memory)):
        yield Check("ranks", name), lambda check, step=step: step(programs, check)
