"""Phases of the tiny model in layouts that a test names."""


def in_layout(phase, stages, replicas, tensor_ranks, splits_tokens=False):
    """The phase with as many of each, stages of equal length and two micro-batches; its bytes are not predicted."""
    num_layers = phase["partition"][-1]["end"]
    bounds = [stage * num_layers // stages for stage in range(stages + 1)]
    return {**phase, "partition": [{"begin": begin, "end": end} for begin, end in zip(bounds, bounds[1:])],
            "num_micro_batches": 2, "schedule": "1F1B",
            "layout": {"pipeline_parallel_size": stages, "data_parallel_size": replicas,
                       "tensor_parallel_size": tensor_ranks, "placement": [], "sequence_parallel": splits_tokens},
            "predicted": {**phase["predicted"], "peak_memory_bytes": []}}
