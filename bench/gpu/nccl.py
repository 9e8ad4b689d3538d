"""Checks of ranks that have a GPU each, so that NCCL carries their messages: the executor's tests with several ranks (a
test with more ranks than GPUs goes through host memory), and GPT-2 on two ranks by pipeline, data and tensor
parallelism, whose losses must agree. The pipeline also runs with settings of NCCL and of LibTorch's allocator that may
make it faster (docs/gpus.md)."""
import os

import device_tests
import facts
import inputs
import workflow
from programs import NotDone
from results import Check, Target

SECONDS = 180
NUM_RANKS = 2
LAYOUTS = {"pp": ("--fix", "pp=2", "--schedule", "1F1B", "--fix", "m=4"), "dp": ("--fix", "dp=2", "--fix", "m=1"),
           "tp": ("--fix", "tp=2", "--fix", "m=1")}
SETTINGS = {"NCCL_MAX_P2P_NCHANNELS": 4, "TORCH_NCCL_HIGH_PRIORITY": 1,
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


def visible_gpus():
    """Returns the numbers or names of the GPUs that the user lets programs use."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return chosen.split(",") if chosen else [str(number) for number in range(len(facts.gpus()[0]))]


def is_possible(device):
    """The CPU's ranks try the section itself; there sockets carry the messages."""
    return device == "cpu" or len(visible_gpus()) >= NUM_RANKS


def all_gpus(programs):
    """Returns the variables with which a program sees all GPUs and loads all kernels at its start, as the tool itself
    does if there are several ranks."""
    if programs.device == "cpu":
        return {}
    return {"CUDA_VISIBLE_DEVICES": ",".join(visible_gpus()), "CUDA_MODULE_LOADING": "EAGER"}


def test(programs, name):
    return device_tests.run_test(programs, name, **all_gpus(programs))


def layouts(programs, check):
    """Trains GPT-2 on two GPUs in each of LAYOUTS, and compares the losses."""
    job, more = programs.jobs["gpt2"], all_gpus(programs)
    workflow.profile(programs, job, "nccl", NUM_RANKS, "--tensor-parallel", 2, **more)
    losses = {}
    for name, words in LAYOUTS.items():
        workflow.plan(programs, job, f"nccl-{name}", "--method", "static", *words, "--steps", job.steps,
                      profile="nccl")
        summary, said = programs.train(f"nccl-{name}.plan.json", job.data, f"nccl-{name}-run", **more)
        require_nccl(said)
        run = programs.compared(f"nccl-{name}.plan.json", f"nccl-{name}-run")
        phase = run["phases"][0]
        check.figures |= {f"{name}=2: iteration [ms]": phase["measured_iteration_ns"] / 1e6,
                          f"{name}=2: predicted [ms]": phase["predicted_iteration_ns"] / 1e6}
        check.targets.append(Target(f"GPT-2, {name}=2 under NCCL: memory, off by",
                                    workflow.prediction_errors(run)[1][0], workflow.MEMORY_ERROR))
        losses[name] = workflow.losses_of(summary)
        check.figures[f"{name}=2: losses apart from pp=2 by"] = workflow.require_alike(losses[name], losses["pp"], 1e-3,
                                                                                       "those of pp=2")


def require_nccl(said):
    """Raises NotDone if the ranks share a GPU, of which the run's messages tell."""
    if "host memory" in said:
        raise NotDone("the ranks share a GPU although several are visible; see `frostpipe doctor`")


def settings(programs, check):
    """Trains by the pipeline of layouts() with each of SETTINGS alone, then with all."""
    job, more = programs.jobs["gpt2"], all_gpus(programs)
    for what, variables in [*((f"{name}={value}", {name: value}) for name, value in SETTINGS.items()),
                            ("all three", SETTINGS), ("none", {})]:
        _, said = programs.train("nccl-pp.plan.json", job.data, "nccl-settings-run", **more, **variables)
        require_nccl(said)
        run = programs.compared("nccl-pp.plan.json", "nccl-settings-run")
        check.figures[f"iteration with {what} [ms]"] = run["phases"][0]["measured_iteration_ns"] / 1e6


def not_enough(_):
    raise NotDone(f"it needs {NUM_RANKS} GPUs, and programs see {len(visible_gpus())}")


def checks(programs):
    if not is_possible(programs.device):
        yield Check("nccl", "ranks with a GPU each"), not_enough
        return
    inputs.write_all(programs.folder, programs.jobs)
    yield Check("nccl", "GPT-2 on two GPUs: pp=2, dp=2, tp=2"), lambda check: layouts(programs, check)
    yield Check("nccl", "settings of NCCL and the allocator"), lambda check: settings(programs, check)
    if not programs.options.tests or programs.device == "cpu":  # on the CPU, the section `tests` has run them
        return
    for name in device_tests.wanted_names(programs)[1]:
        yield Check("nccl", name), lambda _, name=name: test(programs, name)
