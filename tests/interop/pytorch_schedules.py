"""Schedules that PyTorch's pipelining makes, in its CSV; no rank is needed for that."""
import types

import torch
from torch.distributed.pipelining import ScheduleDualPipeV, ScheduleInterleavedZeroBubble
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

# By file name: class, ranks, micro-batches, and the kind of actions; every rank has two stages.
FILES = {"interleaved_zero_bubble.csv": (ScheduleInterleavedZeroBubble, 2, 8, "compute_only"),
         "interleaved_zero_bubble_comms.csv": (ScheduleInterleavedZeroBubble, 2, 8, "compute_comms"),
         "dual_pipe_v.csv": (ScheduleDualPipeV, 4, 10, "compute_only")}


def stage(ranks, index):
    """A stage of rank 0 with the attributes that a schedule reads while it is made."""
    return types.SimpleNamespace(group_size=ranks, group_rank=0, num_stages=2 * ranks, stage_index=index,
                                 is_first=index == 0, is_last=index == 2 * ranks - 1, has_backward=True, group=None,
                                 submod=torch.nn.Identity())


def write(path):
    """Writes the file of FILES with this name."""
    schedule_class, ranks, num_micro_batches, actions = FILES[path.name]
    second = 2 * ranks - 1 if schedule_class is ScheduleDualPipeV else ranks
    schedule = schedule_class([stage(ranks, 0), stage(ranks, second)], num_micro_batches)
    _PipelineScheduleRuntime._dump_csv(schedule, str(path), format=actions)
