"""An iteration of the small BERT by PyTorch's pipelining, whose loader reads the schedule and whose runtime runs it."""
import contextlib
import datetime
import multiprocessing
import os
import re
import time

import small_bert
import torch
import torch.distributed
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

HANG_SECONDS = 120


class Failed(Exception):
    pass


def stages_by_rank(schedule_file):
    """The numbers of the stages whose forwards are in each row."""
    return [sorted({int(stage) for stage in re.findall(r"(\d+)F\d", row)})
            for row in schedule_file.read_text().splitlines()]


def train(rank, schedule_file, actions, num_micro_batches, ours):
    """The gradients of this rank's stages by name, after one iteration on the weights and the batch of `ours`."""
    by_rank = stages_by_rank(schedule_file)
    numbers, num_stages = by_rank[rank], sum(map(len, by_rank))
    modules = [small_bert.stage_module(ours.weights, stage, num_stages) for stage in numbers]
    stages = [PipelineStage(module, stage, num_stages, torch.device("cpu"))
              for stage, module in zip(numbers, modules)]
    for stage in stages:
        # Before the first iteration PyTorch exchanges a message with the ranks of neighbouring stages. Where the V
        # turns, that is the rank itself, which Gloo refuses. Only NCCL needs these messages.
        stage._get_init_p2p_neighbors_ops = list
    schedule = _PipelineScheduleRuntime(stages, num_micro_batches, loss_fn=torch.nn.functional.cross_entropy)
    schedule._load_csv(str(schedule_file), format=actions)
    inputs = [ours.token_ids] if 0 in numbers else []
    schedule.step(*inputs, target=ours.labels if num_stages - 1 in numbers else None)
    found = {}
    for stage, module in zip(numbers, modules):
        found.update(small_bert.gradients_of_stage(module, ours.weights, stage, num_stages))
    return found


def run_rank(rank, num_ranks, folder, arguments):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=num_ranks,
                                         timeout=datetime.timedelta(seconds=HANG_SECONDS))
    torch.save(train(rank, *arguments), folder / f"{rank}.pt")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def gradients(num_ranks, folder, *arguments):
    """train() on all ranks: processes that begin as copies of this one, since importing PyTorch takes seconds. Raises
    Failed if a rank fails or does not end."""
    context = multiprocessing.get_context("fork")
    ranks = [context.Process(target=run_rank, args=(rank, num_ranks, folder, arguments)) for rank in range(num_ranks)]
    for process in ranks:
        process.start()
    deadline = time.monotonic() + HANG_SECONDS
    while any(process.exitcode is None for process in ranks) and not any(process.exitcode for process in ranks):
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    ended = [process.exitcode for process in ranks]
    for process in ranks:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.join()
    if any(ended):
        raise Failed(f"ranks of PyTorch ended with {ended}; their messages are above")
    if None in ended:
        raise Failed(f"after {HANG_SECONDS} s ranks of PyTorch still wait for each other: {ended}")
    found = {}
    for rank in range(num_ranks):
        found.update(torch.load(folder / f"{rank}.pt"))
    return found
