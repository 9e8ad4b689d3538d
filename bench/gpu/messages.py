"""Measures how much of a pipeline's message time overlaps with compute, from the traces of `frostpipe train` and
`simulate`."""
import statistics

MADE_BY = {"RECV_F": ("F", -1), "RECV_B": ("B", 1)}  # receive: (action that computes its tensor, distance in stages)


def spans_by_step(trace):
    """Returns {step: {name, such as 0F0: (begin, end)}} in microseconds."""
    steps = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and "stage" in event.get("args", {}):
            own = steps.setdefault(event["args"]["step"], {})
            own[event["name"]] = (event["ts"], event["ts"] + event["dur"])
    return steps


def exposed(spans):
    """Returns {receive: time for which its rank waits although the tensor has been computed}, which is the exposed part
    of a message."""
    times = {}
    for name, (begin, end) in spans.items():
        for receive, (kind, neighbour) in MADE_BY.items():
            stage, found, micro_batch = name.partition(receive)
            if found:
                computed = spans[f"{int(stage) + neighbour}{kind}{micro_batch}"][1]
                times[name] = max(0.0, end - max(begin, computed))
    return times


def median_exposed(trace, warm_up_steps):
    """Returns {receive: its median exposed time in microseconds} over the trace's steps from `warm_up_steps` on."""
    steps = [exposed(spans) for step, spans in sorted(spans_by_step(trace).items()) if step >= warm_up_steps]
    return {name: statistics.median(times[name] for times in steps) for name in steps[0]}


def hidden_share(message, simulated, measured):
    """Returns the fraction of the message time hidden in the simulator that is also hidden in the run, and the time
    hidden in the simulator. A message takes `message`; `simulated` and `measured` are {receive: exposed time}."""
    can_hide = {name: max(0.0, message - time) for name, time in simulated.items()}
    hidden = sum(min(most, max(0.0, message - measured[name])) for name, most in can_hide.items())
    total = sum(can_hide.values())
    return hidden / total if total else float("nan"), total
