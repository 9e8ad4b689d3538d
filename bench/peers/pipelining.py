"""The job of texts in two processes by torch.distributed.pipelining: each has a part of BERT's layers."""
import os
import socket
import subprocess
import sys

import job
import torch
import torch.distributed as dist
import workloads
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

SCHEDULES = {"1F1B": Schedule1F1B, "GPipe": ScheduleGPipe}


class Part(torch.nn.Module):
    """Layers `first` ... `end` - 1."""

    def __init__(self, bert, first, end):
        super().__init__()
        self.bert, self.first, self.end = bert, first, end  # a plain object: its modules are not registered here
        self.held = torch.nn.ModuleList(module for modules in bert.modules[first:end] for module in modules)

    def forward(self, hidden, mask):
        return self.bert.run(self.first, self.end, hidden, mask)


class Pipeline:
    """Schedules of this process's stage, one for each shape of a micro-batch, which PyTorch fixes at the start."""

    def __init__(self, part, rank, schedule, num_micro_batches, sizes):
        self.part, self.rank, self.schedule, self.num = part, rank, SCHEDULES[schedule], num_micro_batches
        self.hidden_size, self.num_labels = sizes
        self.made = {}

    def of(self, rows, tokens):
        if (rows, tokens) not in self.made:
            ids = torch.empty(rows, tokens, dtype=torch.long, device="meta")
            hidden = torch.empty(rows, tokens, self.hidden_size, device="meta")
            logits = torch.empty(rows, self.num_labels, device="meta")
            taken, given = (ids, hidden) if self.rank == 0 else (hidden, logits)
            stage = PipelineStage(self.part, self.rank, 2, torch.device("cpu"), input_args=(taken,),
                                  output_args=(given,))
            self.made[rows, tokens] = self.schedule(stage, self.num, loss_fn=self.loss, scale_grads=False)
        return self.made[rows, tokens]

    def loss(self, logits, labels):
        return torch.nn.functional.cross_entropy(logits, labels, ignore_index=workloads.IGNORED,
                                                 reduction="sum") / self.num_samples

    def step(self, batch):
        """Forward and backward of a mini-batch; returns its loss on the last stage. A mini-batch that the number of
        micro-batches does not divide is filled up with rows that do not count."""
        self.num_samples = len(batch["labels"])
        missing = -self.num_samples % self.num
        pad = torch.nn.functional.pad
        ids = pad(batch["input_ids"], (0, 0, 0, missing))
        mask = pad(batch["attention_mask"], (0, 0, 0, missing), value=1)
        labels = pad(batch["labels"], (0, missing), value=workloads.IGNORED)
        schedule = self.of(len(ids) // self.num, ids.shape[1])
        if self.rank == 0:
            schedule.step(ids, mask=mask)
            return 0.0
        losses = []
        schedule.step(target=labels, losses=losses, mask=mask)
        return sum(loss.item() for loss in losses)


def clip(parameters):
    """To the norm over both stages."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    square = torch.stack(torch._foreach_norm(gradients)).square().sum()
    dist.all_reduce(square)
    norm = float(square.sqrt())
    if norm > job.MAX_GRADIENT_NORM:
        torch._foreach_mul_(gradients, job.MAX_GRADIENT_NORM / norm)


def evaluated(part, rank, workload, hidden_size):
    """(correct answers, all answers) on the last stage."""
    part.eval()
    correct = total = 0
    with torch.no_grad():
        for batch in workloads.test_batches(workload):
            if rank == 0:
                dist.send(part(batch["input_ids"], batch["attention_mask"]), 1)
            else:
                hidden = torch.empty(*batch["input_ids"].shape, hidden_size)
                dist.recv(hidden, 0)
                right, count = workload.correct(part(hidden, batch["attention_mask"]), batch)
                correct, total = correct + right, total + count
    return correct, total


def train(options, rank):
    torch.set_num_threads(options.threads)
    workload = workloads.Texts(options.model, options.data, options.seed)
    model = workload.model().train()
    bert = job.Bert(model)
    first, end = (0, options.cut) if rank == 0 else (options.cut, len(bert.modules))
    part = Part(bert, first, end)
    parameters = bert.parameters(first, end)
    optimizer = job.optimizer_of(parameters)
    config = model.config
    pipeline = Pipeline(part, rank, options.schedule, options.micro_batches, (config.hidden_size, config.num_labels))
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
    correct = None if options.no_evaluation else evaluated(part, rank, workload, config.hidden_size)
    if rank == 1:
        clock.report(sum(map(len, steps)), workload.test, correct)


def start_both():
    """Starts the two processes, waits for them, and ends the other where one fails."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env={**environment, "RANK": str(rank)}) for rank in range(2)]
    try:
        while any(rank.poll() is None for rank in ranks) and not any(rank.poll() for rank in ranks):
            try:
                ranks[0].wait(timeout=0.5)
                ranks[1].wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                pass
    finally:
        for rank in ranks:
            rank.kill() if rank.poll() is None else None
            rank.wait()
    sys.exit(max(abs(rank.returncode) for rank in ranks))


def main():
    parser = job.parser(__doc__)
    parser.add_argument("--schedule", choices=SCHEDULES, default="1F1B")
    parser.add_argument("--micro-batches", type=int, default=8)
    parser.add_argument("--cut", type=int, required=True, help="first layer of the second process")
    parser.add_argument("--no-evaluation", action="store_true")
    options = parser.parse_args()
    if options.kind != "texts":
        parser.error("--kind: must be texts")
    if "RANK" not in os.environ:
        start_both()
    dist.init_process_group("gloo")
    train(options, int(os.environ["RANK"]))
    dist.destroy_process_group()


main()
