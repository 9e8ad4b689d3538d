"""A user's first job on one rank: the quickstart's model is profiled, planned and trained, once with nothing frozen and
once with freezing and the cache. The runs are compared with their predictions."""
import inputs
import workflow
from programs import Failure
from results import Check, Target

SECONDS = 120
PHASE_ERROR = 0.08
TIMES_AS_FAST = 2  # as the run that freezes nothing
PROFILE = "job"


def profiled(programs):
    """Measures the profile, unless an earlier check has done so."""
    job = programs.jobs["quickstart"]
    if not (programs.folder / f"{PROFILE}.profile.json").exists():
        workflow.profile(programs, job, PROFILE, 1)
    return job


def trained(programs, check, name, method):
    """Trains by a plan of this method. Returns the run's summary and its comparison with the predictions."""
    job = profiled(programs)
    workflow.one_rank(programs, job, PROFILE, "--method", method, "--epochs", job.epochs, output=f"{name}.plan.json")
    summary, _ = programs.train(f"{name}.plan.json", job.data, f"{name}-run", "--learning-rate", job.learning_rate)
    compared = programs.compared(f"{name}.plan.json", f"{name}-run")
    check.figures |= {"samples per second": summary["samples_per_second"], "test accuracy": summary["test_accuracy"]}
    workflow.require_learning(check, summary)
    return summary, compared


def unfrozen(programs, check):
    _, compared = trained(programs, check, "job-unfrozen", "static")
    times, memory = workflow.prediction_errors(compared)
    check.targets = [Target("quickstart: profile predicts the step, off by", times[0], workflow.STEP_ERROR),
                     Target("quickstart: memory, off by", memory[0], workflow.MEMORY_ERROR)]


def elastic_run(programs, check):
    summary, compared = trained(programs, check, "job-elastic", "pipetransformer")
    judge_phases(check, compared, "quickstart, elastic")
    unfrozen_speed = programs.read("job-unfrozen-run/summary.json")["samples_per_second"]
    check.targets.append(Target("quickstart, elastic: times as fast as unfrozen",
                                summary["samples_per_second"] / unfrozen_speed, least=TIMES_AS_FAST))


def judge_phases(check, compared, what):
    """Sets the targets for the predictions of every phase of a run that freezes layers and uses the cache."""
    times, memory = workflow.prediction_errors(compared)
    check.targets = [*(Target(f"{what}: iteration of phase {i}, off by", value, PHASE_ERROR)
                       for i, value in times.items()),
                     *(Target(f"{what}: memory of phase {i}, off by", value, workflow.MEMORY_ERROR)
                       for i, value in memory.items())]
    workflow.note_phases(check, compared)
    if not any(check.figures["cache hits"]):
        raise Failure("no forward pass was read from the cache")


def checks(programs):
    inputs.write_all(programs.folder, programs.jobs)
    for name, step in (("the quickstart's job on one rank, nothing frozen", unfrozen),
                       ("the quickstart's job on one rank, elastic, with the cache", elastic_run)):
        yield Check("job", name), lambda check, step=step: step(programs, check)
