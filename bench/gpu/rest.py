"""What can wait: steps beside torch.compile, waits of the host, an elastic run of a large model."""
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
WAITED = "called a synchronizing CUDA operation"  # LibTorch's words


def beside_compiled(programs, own, dtype, check):
    """Against the run that was measured beside eager PyTorch."""
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
    """Layers of BERT freeze on one rank, by the profile of the steps beside PyTorch."""
    own = programs.jobs["bert"]
    workflow.one_rank(programs, own, f"{own.name}-float32", "--method", "pipetransformer", "--epochs", ELASTIC_EPOCHS,
                      output="elastic.plan.json")
    programs.train("elastic.plan.json", own.data, "elastic-run", "--model", steps.start_of(programs, own) or own.name)
    elastic.judge_phases(check, programs.compared("elastic.plan.json", "elastic-run"), f"{own.name}, elastic")


def waits_of_the_host(programs, check):
    """Of each step, from runs of two lengths: what beginning and end wait for drops out."""
    if programs.device != "cuda":
        raise NotDone("the host waits for nobody on the CPU")
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
            raise Failure("LibTorch reports no wait at all, which cannot be: every iteration ends with one")
        waits = (counts[1] - counts[0]) / (many - few)
        check.figures[f"host's waits per iteration{how}"] = waits
        check.targets.append(Target(f"host's waits per iteration{how}", waits, MOST_WAITS))


def checks(programs):
    inputs.write_all(programs.folder, programs.jobs)
    for name in ("gpt2", "bert", "llama"):
        own = programs.jobs[name]
        yield (Check("rest", f"a step of {own.name} in bfloat16 beside torch.compile"),
               lambda check, own=own: beside_compiled(programs, own, "bfloat16", check))
    for name, step in (("waits of the host within a step", waits_of_the_host),
                       ("an elastic run of BERT on one rank", elastic_bert)):
        yield Check("rest", name), lambda check, step=step: step(programs, check)
