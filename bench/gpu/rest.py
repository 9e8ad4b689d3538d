"""The less important checks: steps compared with torch.compile, waits of the host, a run of a large model that freezes
layers."""
import elastic
import inputs
import steps
import workflow
from programs import Failure, NotDone
from results import Check, Target

SECONDS = 300
ELASTIC_EPOCHS = 4
WAITING_STEPS = (5, 10)
MOST_WAITS = 1  # on one rank: at the end of the iteration
WAITED = "called a synchronizing CUDA operation"  # in LibTorch's message


def beside_compiled(programs, own, dtype, check):
    """Compares torch.compile with the run that was measured for the comparison with eager PyTorch."""
    name = f"{own.name}-{dtype}"
    ours = steps.StepTimes()
    summary = programs.read(f"{name}-run/summary.json")
    ours.add_run(summary)
    check.figures["ours [ms]"] = ours.best() * 1e3
    peer = steps.run_peer(programs, own, steps.start_of(programs, own), dtype, "compiled")
    theirs = steps.StepTimes()
    theirs.add(peer["step_seconds"])
    check.figures |= {"torch.compile [ms]": theirs.best() * 1e3, "times as long": ours.best() / theirs.best()}
    steps.require_same_job(check, workflow.losses_of(summary), peer, dtype)


def elastic_bert(programs, check):
    """Trains BERT on one rank and freezes layers, with the profile that was measured for the section `steps`."""
    own = programs.jobs["bert"]
    workflow.one_rank(programs, own, f"{own.name}-float32", "--method", "pipetransformer", "--epochs", ELASTIC_EPOCHS,
                      output="elastic.plan.json")
    programs.train("elastic.plan.json", own.data, "elastic-run", "--model", steps.start_of(programs, own) or own.name)
    elastic.judge_phases(check, programs.compared("elastic.plan.json", "elastic-run"), f"{own.name}, elastic")


def waits_of_the_host(programs, check):
    """Counts the waits of each step from runs of two lengths, so that the waits at begin and end cancel out."""
    if programs.device != "cuda":
        raise NotDone("on the CPU the host waits for no device")
    own = programs.jobs["gpt2"]
    few, many = WAITING_STEPS
    for how, words in workflow.WAYS.items():
        counts = []
        for count in WAITING_STEPS:
            workflow.one_rank(programs, own, f"{own.name}-float32", "--method", "static", "--steps", count,
                              output="waits.plan.json")
            _, said = programs.train("waits.plan.json", own.data, "waits-run", "--model",
                                     steps.start_of(programs, own) or own.name, *words, FROSTPIPE_CUDA_REPORT_WAITS=1,
                                     TORCH_CPP_LOG_LEVEL="WARNING")
            counts.append(said.count(WAITED))
        if counts[0] == 0:
            raise Failure("LibTorch reports no wait, though every iteration ends with one")
        waits = (counts[1] - counts[0]) / (many - few)
        check.figures[f"host's waits per iteration{how}"] = waits
        check.targets.append(Target(f"host's waits per iteration{how}", waits, MOST_WAITS))


def checks(programs):
    inputs.write_all(programs.folder, programs.jobs)
    for name in ("gpt2", "bert", "llama"):
        own = programs.jobs[name]
        yield (Check("rest", f"a step of {own.name} in bfloat16 compared with torch.compile"),
               lambda check, own=own: beside_compiled(programs, own, "bfloat16", check))
    for name, step in (("waits of the host within a step", waits_of_the_host),
                       ("an elastic run of BERT on one rank", elastic_bert)):
        yield Check("rest", name), lambda check, step=step: step(programs, check)
