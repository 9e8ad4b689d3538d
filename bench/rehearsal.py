"""Rehearsals on emulated ranks, as scripts/bench-schedules and scripts/bench-zero-bubble run them."""
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

COMPUTE = {"forward", "backward", "input gradient", "weight gradient"}


class Span(NamedTuple):
    """Of one action of compute."""

    step: int
    rank: int
    begin_ns: float
    end_ns: float


def frostpipe(program, *words):
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)


def rehearse(program, plan, run, *options):
    """The run's summary, with the cluster's links in virtual time. Ends the script where it fails."""
    words = ("train", plan, "--device", "emulated", "--emulated-links", *options, "-o", run)
    done = frostpipe(program, *words, "--overwrite")
    if done.returncode != 0:
        sys.exit(f"{Path(sys.argv[0]).name}: the rehearsal of {plan} failed: {done.stderr.strip()}\n"
                 f"to see it alone: {program} {' '.join(map(str, words))}")
    return json.loads((run / "summary.json").read_text())


def compute_spans(run, skipped_steps):
    """Of the traced steps behind the first few, or of all where there are no others."""
    events = json.loads((run / "trace.json").read_text())["traceEvents"]
    spans = [Span(event["args"]["step"], event["pid"], 1e3 * event["ts"], 1e3 * (event["ts"] + event["dur"]))
             for event in events if event["ph"] == "X" and event["cat"].replace("_", " ") in COMPUTE]
    return [span for span in spans if span.step >= skipped_steps] or spans
