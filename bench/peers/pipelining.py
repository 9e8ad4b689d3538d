"""Trains the job of texts in two processes by torch.distributed.pipelining: each has a part of BERT's layers."""
import multiprocessing
import multiprocessing.connection
import socket
import sys

import job
import torch
import torch.distributed as dist
import workloads
from torch.distributed import pipelining

SCHEDULES = {"1F1B": pipelining.Schedule1F1B, "GPipe": pipelining.ScheduleGPipe,
             "Interleaved1F1B": pipelining.ScheduleInterleaved1F1B,
             "InterleavedZeroBubble": pipelining.ScheduleInterleavedZeroBubble,
             "ZBVZeroBubble": pipelining.ScheduleZBVZeroBubble}
ONE_STAGE = ("1F1B", "GPipe")
V_SHAPED = ("ZBVZeroBubble",)  # in the other schedules of several stages, the last rank sends to the first
RANKS = 2


class Part(torch.nn.Module):
    """The layers `first` ... `end` - 1 as a module."""

    def __init__(self, bert, first, end):
        super().__init__()
        self.bert, self.first, self.end = bert, first, end  # a plain object: its modules are not registered here
        self.held = torch.nn.ModuleList(module for modules in bert.modules[first:end] for module in modules)

    def forward(self, hidden, mask):
        return self.bert.run(self.first, self.end, hidden, mask)


def rank_of(stage, num_stages, schedule):
    if schedule in V_SHAPED:
        return min(stage, num_stages - 1 - stage)
    return stage % RANKS


class Pipeline:
    """Schedules of this process's stages, one for each shape of a micro-batch, since PyTorch fixes the shape at the
    start. `parts` are this process's layers by stage."""

    def __init__(self, parts, options, num_stages, sizes):
        self.parts, self.num_stages, self.num = parts, num_stages, options.micro_batches
        self.schedule = options.schedule
        self.hidden_size, self.num_labels = sizes
        self.made = {}

    def stage(self, number, rows, tokens):
        ids = torch.empty(rows, tokens, dtype=torch.long, device="meta")
        hidden = torch.empty(rows, tokens, self.hidden_size, device="meta")
        logits = torch.empty(rows, self.num_labels, device="meta")
        taken = ids if number == 0 else hidden
        given = logits if number == self.num_stages - 1 else hidden
        stage = pipelining.PipelineStage(self.parts[number], number, self.num_stages, torch.device("cpu"),
                                         input_args=(taken,), output_args=(given,))
        # Before the first iteration PyTorch exchanges a message with the ranks of neighbouring stages. At the turn of
        # the V that is the rank itself, which Gloo refuses. Only NCCL needs these messages.
        stage._get_init_p2p_neighbors_ops = list
        return stage

    def of(self, rows, tokens):
        if (rows, tokens) not in self.made:
            stages = [self.stage(number, rows, tokens) for number in self.parts]
            self.made[rows, tokens] = SCHEDULES[self.schedule](stages[0] if self.schedule in ONE_STAGE else stages,
                                                               self.num, loss_fn=self.loss, scale_grads=False)
        return self.made[rows, tokens]

    def loss(self, logits, labels):
        return torch.nn.functional.cross_entropy(logits, labels, ignore_index=workloads.IGNORED,
                                                 reduction="sum") / self.num_samples

    def step(self, batch):
        """Forward and backward of a mini-batch; returns its loss on the process with the last stage. If the number of
        micro-batches does not divide the mini-batch, it is padded with rows that do not count."""
        self.num_samples = len(batch["labels"])
        missing = -self.num_samples % self.num
        pad = torch.nn.functional.pad
        ids = pad(batch["input_ids"], (0, 0, 0, missing))
        mask = pad(batch["attention_mask"], (0, 0, 0, missing), value=1)
        labels = pad(batch["labels"], (0, missing), value=workloads.IGNORED)
        schedule = self.of(len(ids) // self.num, ids.shape[1])
        inputs = (ids,) if 0 in self.parts else ()
        if self.num_stages - 1 not in self.parts:
            schedule.step(*inputs, mask=mask)
            return 0.0
        losses = []
        schedule.step(*inputs, target=labels, losses=losses, mask=mask, return_outputs=False)
        return sum(loss.item() for loss in losses)


def clip(parameters):
    """Clips gradients to the norm over both processes."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    square = torch.stack(torch._foreach_norm(gradients)).square().sum()
    dist.all_reduce(square)
    norm = float(square.sqrt())
    if norm > job.MAX_GRADIENT_NORM:
        torch._foreach_mul_(gradients, job.MAX_GRADIENT_NORM / norm)


def evaluated(parts, ranks, rank, workload, hidden_size):
    """Returns the numbers of correct and of all answers on the process with the last stage; `ranks` are those of the
    stages."""
    correct = total = 0
    for batch in workloads.test_batches(workload):
        hidden, mask = batch["input_ids"], batch["attention_mask"]
        for stage, owner in enumerate(ranks):
            before = ranks[max(0, stage - 1)]
            if rank == before != owner:
                dist.send(hidden, owner)
            elif rank == owner != before:
                hidden = torch.empty(*batch["input_ids"].shape, hidden_size)
                dist.recv(hidden, before)
            if rank == owner:
                hidden = parts[stage].eval()(hidden, mask)
        if rank == ranks[-1]:
            right, count = workload.correct(hidden, batch)
            correct, total = correct + right, total + count
    return correct, total


def train(options, rank):
    torch.set_num_threads(options.threads)
    workload = workloads.Texts(options.model, options.data, options.seed)
    model = workload.model().train()
    bert = job.Bert(model)
    bounds = [0, *options.cuts, len(bert.modules)]
    num_stages = len(bounds) - 1
    ranks = [rank_of(stage, num_stages, options.schedule) for stage in range(num_stages)]
    parts = {stage: Part(bert, bounds[stage], bounds[stage + 1]) for stage in range(num_stages) if ranks[stage] == rank}
    parameters = [p for stage in parts for p in bert.parameters(bounds[stage], bounds[stage + 1])]
    optimizer = job.optimizer_of(parameters)
    config = model.config
    pipeline = Pipeline(parts, options, num_stages, (config.hidden_size, config.num_labels))
    steps = job.mini_batches(workload, options)
    dist.barrier()
    clock = job.Clock()
    for step, samples in enumerate(steps):
        for group in optimizer.param_groups:
            group["lr"] = job.learning_rate(step, options)
        optimizer.zero_grad()
        loss = pipeline.step(workload.batch(samples))
        clip(parameters)
        optimizer.step()
        clock.step_done(loss)
    dist.barrier()
    correct = None
    if not options.no_evaluation:
        with torch.no_grad():
            correct = evaluated(parts, ranks, rank, workload, config.hidden_size)
    if rank == ranks[-1]:
        clock.report(sum(map(len, steps)), workload.test, correct)


def run_rank(rank, port, options):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=RANKS)
    train(options, rank)
    dist.destroy_process_group()


def run_both(options):
    """Starts copies of this process, since importing PyTorch takes seconds; if one fails, ends the other."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("fork")
    ranks = [context.Process(target=run_rank, args=(rank, port, options), daemon=True) for rank in range(RANKS)]
    for rank in ranks:
        rank.start()
    while (working := [rank for rank in ranks if rank.exitcode is None]) and not any(rank.exitcode for rank in ranks):
        multiprocessing.connection.wait([rank.sentinel for rank in working])
    for rank in ranks:
        rank.kill() if rank.exitcode is None else None
        rank.join()
    sys.exit(max(abs(rank.exitcode) for rank in ranks))


def check_cuts(parser, options):
    """The number of cuts must be one less than the schedule's stages on these processes."""
    stages, schedule = len(options.cuts) + 1, options.schedule
    if schedule in ONE_STAGE:
        fits, wanted = stages == RANKS, f"{RANKS - 1}"
    elif schedule in V_SHAPED:
        fits, wanted = stages == 2 * RANKS, f"{2 * RANKS - 1}"
    else:
        fits, wanted = stages > RANKS and stages % RANKS == 0, f"{2 * RANKS - 1}, {3 * RANKS - 1}, ..."
    if not fits:
        parser.error(f"--cuts: must be {wanted} for {schedule} on {RANKS} processes, are {stages - 1}")


def layers(text):
    return [int(layer) for layer in text.split(",")]


def main():
    parser = job.parser(__doc__)
    parser.add_argument("--schedule", choices=SCHEDULES, default="1F1B")
    parser.add_argument("--micro-batches", type=int, default=8)
    parser.add_argument("--cuts", type=layers, required=True, metavar="LAYER,...",
                        help="first layer of each stage but the first")
    parser.add_argument("--no-evaluation", action="store_true")
    options = parser.parse_args()
    if options.kind != "texts":
        parser.error("--kind: must be texts")
    check_cuts(parser, options)
    run_both(options)


main()
