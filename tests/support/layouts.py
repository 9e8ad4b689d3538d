"""Phases of the tiny model in given layouts, and clusters of nodes."""


def in_layout(phase, stages, replicas, tensor_ranks, splits_tokens=False):
    """The phase with these numbers of stages, replicas and tensor ranks, with stages of equal length and two
    micro-batches; its bytes are not predicted."""
    num_layers = phase["partition"][-1]["end"]
    bounds = [stage * num_layers // stages for stage in range(stages + 1)]
    return {**phase, "partition": [{"begin": begin, "end": end} for begin, end in zip(bounds, bounds[1:])],
            "num_micro_batches": 2, "schedule": "1F1B",
            "layout": {"pipeline_parallel_size": stages, "data_parallel_size": replicas,
                       "tensor_parallel_size": tensor_ranks, "placement": [], "sequence_parallel": splits_tokens},
            "predicted": {**phase["predicted"], "peak_memory_bytes": []}}


def two_by_two(phase):
    """A phase for two hosts with two ranks each: two stages with two replicas, so that both hosts have all layers."""
    made = in_layout(phase, 2, 2, 1)
    made["layout"]["placement"] = [0, 2, 1, 3]
    return made


def on_nodes(cluster, nodes):
    """The cluster with a device like its first one on each of these nodes, in that order."""
    return {**cluster, "devices": [{**cluster["devices"][0], "node": node} for node in nodes]}
