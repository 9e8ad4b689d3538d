"""The jobs of the comparison, and the rows of each. To add a row, add an entry here.

A peer's row names a program of this folder and its arguments. With `like`, it follows that plan of frostpipe: a single
process freezes as the plan does, a pipeline has its stages and its number of micro-batches. A row of frostpipe holds
the arguments of plan and train; `profile` names one of PROFILES.
"""
from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    name: str
    program: str
    arguments: tuple = ()
    like: str = ""


@dataclass(frozen=True)
class Ours:
    name: str
    profile: str
    plan: tuple
    train: tuple = ()
    against: str = ""  # the row that it is compared with, in place of the job's reference
    freezes_like: str = ""  # a plan of frostpipe whose freezes this run must repeat


@dataclass(frozen=True)
class Job:
    name: str
    title: str
    kind: str  # a workload of workloads.py
    model: str  # folders and files that prepare.py and scripts/bench-peers write
    data: str
    batch: int
    rows: tuple
    reference: str = ""  # the row that the others are compared with
    profile: tuple = ()  # arguments of `frostpipe profile` for these data
    profiled_as: str = ""  # another job whose profiles this one uses
    whole_run: bool = False  # trains for epochs and is tested; otherwise a few steps are timed
    same_losses: bool = False  # all rows must have the same losses


# Arguments of `frostpipe profile` for the ranks that measure.
PROFILES = {
    "two_ranks": ("--nproc-per-node", "2", "--memory-limit", "384MiB"),
    "two_ranks_bfloat16": ("--nproc-per-node", "2", "--memory-limit", "384MiB", "--dtype", "bfloat16"),
}

TRAIN = ("--seed", "1", "--learning-rate", "2e-4")
NO_LIMIT = "--ignore-memory-limit"

PLAIN = Peer("plain", "single_process.py")
PIPELINES = tuple(Peer(f"pytorch-{schedule}", "pipelining.py", ("--schedule", schedule), like="static_pipeline")
                  for schedule in ("1F1B", "GPipe"))
CACHED = ("--cache",)

ONE_PROCESS = Ours("one_process", "two_ranks", ("--method", "data-parallel", "--threads-per-rank", "2", NO_LIMIT))
DATA_PARALLEL = Ours("data_parallel", "two_ranks", ("--method", "data-parallel", NO_LIMIT))
STATIC = ("--method", "static", "--fix", "v=1")  # a stage per rank: PyTorch's 1F1B and GPipe have the same stages
STEP_ROWS = (ONE_PROCESS, DATA_PARALLEL, Ours("static_pipeline", "two_ranks", (*STATIC, NO_LIMIT)))


GROUPED = Peer("plain-grouped", "single_process.py", ("--group-by-length", "8"))
AUTOCAST = Peer("plain-autocast", "single_process.py", ("--autocast",))
# `plan` chooses the fastest layout.
AUTO = Ours("auto", "two_ranks", ("--method", "auto", NO_LIMIT))
BFLOAT16 = Ours("one_process_bfloat16", "two_ranks_bfloat16",
                ("--method", "data-parallel", "--threads-per-rank", "2", NO_LIMIT), against="plain-autocast")


def schedule_rows(name, stages_per_rank):
    """A row of frostpipe and one of PyTorch, with the same stages and four micro-batches."""
    plan = ("--method", "static", "--schedule", name, "--fix", "m=4", "--fix", f"v={stages_per_rank}", NO_LIMIT)
    return (Peer(f"pytorch-{name}", "pipelining.py", ("--schedule", name), like=name),
            Ours(name, "two_ranks", plan, against=f"pytorch-{name}"))


SCHEDULES = (*schedule_rows("GPipe", 1), *schedule_rows("1F1B", 1), *schedule_rows("Interleaved1F1B", 2),
             *schedule_rows("InterleavedZeroBubble", 2), *schedule_rows("ZBVZeroBubble", 2))


def schedules_job(hidden):
    return Job(f"hidden-{hidden}", f"Schedules: BERT (4 blocks, hidden {hidden}) on texts of 128 tokens", "texts",
               f"bert-{hidden}", "pieces.tsv", 8, rows=SCHEDULES, profile=("--micro-batch-sizes", "2"),
               same_losses=True)


JOBS = (
    Job("main", "The main job: MiniLM on package descriptions", "texts", "minilm", "sections.tsv", 64,
        rows=(
            PLAIN,
            Peer("plain-frozen", "single_process.py", like="elastic"),
            Peer("plain-frozen-cached", "single_process.py", CACHED, like="elastic"),
            Peer("plain-frozen-cached-grouped", "single_process.py", (*CACHED, "--group-by-length", "8"),
                 like="elastic"),
            *PIPELINES,
            ONE_PROCESS,
            DATA_PARALLEL,
            Ours("static_pipeline", "two_ranks", STATIC),
            Ours("elastic", "two_ranks", ("--method", "pipetransformer"), ("--freeze", "cap"), freezes_like="elastic"),
            Ours("elastic_two_ranks", "two_ranks", ("--method", "pipetransformer", "--threads-per-rank", "1"),
                 ("--freeze", "cap"), freezes_like="elastic"),
        ), reference="elastic", whole_run=True),
    Job("sections", "A step, nothing frozen: MiniLM on package descriptions", "texts", "minilm", "sections.tsv", 64,
        rows=(PLAIN, *PIPELINES, *STEP_ROWS), reference="plain", profiled_as="main"),
    Job("long-texts", "A step, nothing frozen: MiniLM on texts of 128 tokens", "texts", "minilm", "long-texts.tsv", 64,
        rows=(PLAIN, *PIPELINES, *STEP_ROWS), reference="plain"),
    Job("pictures", "A step: ViT (6 blocks, hidden 192, patches of 4) on pictures of 32 x 32", "pictures", "vit",
        "pictures.bin", 64, rows=(PLAIN, *STEP_ROWS), reference="plain"),
    Job("plain-text", "A step: GPT-2 (4 blocks, hidden 128, 50,257 tokens) on blocks of 64 tokens", "plain-text",
        "gpt2", "plain-text.txt", 32, rows=(PLAIN, *STEP_ROWS), reference="plain",
        profile=("--max-tokens", "64")),
    Job("chats", "A step, nothing frozen: SmolLM2-135M on chats of mixed lengths", "chats", "smollm2", "chats.jsonl",
        16, rows=(PLAIN, GROUPED, AUTOCAST, ONE_PROCESS, DATA_PARALLEL, BFLOAT16, AUTO), reference="plain"),
    Job("chat-blocks", "A step, nothing frozen: SmolLM2-135M on blocks of 128 tokens", "plain-text", "smollm2",
        "chat-blocks.txt", 8, rows=(Peer("plain", "single_process.py", ("--block-tokens", "128")), ONE_PROCESS,
                                    DATA_PARALLEL, AUTO), reference="plain", profile=("--max-tokens", "128")),
    Job("roberta", "A step, nothing frozen: RoBERTa (6 blocks, hidden 384) on package descriptions", "texts", "roberta",
        "sections.tsv", 64, rows=(PLAIN, GROUPED, ONE_PROCESS, DATA_PARALLEL), reference="plain"),
    Job("modernbert", "A step, nothing frozen: ModernBERT (6 blocks, hidden 384) on package descriptions", "texts",
        "modernbert", "sections.tsv", 64, rows=(PLAIN, GROUPED, ONE_PROCESS, DATA_PARALLEL), reference="plain"),
    schedules_job(256),
    schedules_job(768),
)


def job_called(name):
    return next(job for job in JOBS if job.name == name)
