"""Rehearsals on emulated ranks, as scripts/bench-schedules and scripts/bench-zero-bubble run them."""
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from running import Failure, environment_without_job, sentence_of

COMPUTE = {"forward", "backward", "input gradient", "weight gradient"}


class Span(NamedTuple):
    """One compute action of a trace."""

    step: int
    rank: int
    begin_ns: float
    end_ns: float


class Fields(dict):
    """A JSON object whose error names a missing field."""

    source = ""

    def __missing__(self, name):
        raise Failure(f"{self.source}: has no field {name}; is the program of the same version as this script?")


def parsed(text, source):
    """Parses JSON that frostpipe wrote. `source` names it in errors."""

    def fields(pairs):
        made = Fields(pairs)
        made.source = source
        return made

    try:
        return json.loads(text, object_pairs_hook=fields)
    except ValueError as error:
        raise Failure(f"{source}: is no JSON: {error}") from error


def read_json(path):
    try:
        return parsed(path.read_text(), path)
    except OSError as error:
        raise Failure(f"{path}: cannot be read: {error.strerror}") from error


def frostpipe(program, *words, wrapper=()):
    """Returns the command's output; `wrapper` is put before its words. Raises Failure with its message if it fails."""
    try:
        done = subprocess.run([*wrapper, program, *map(str, words)], capture_output=True, text=True, check=False,
                              env=environment_without_job())
    except OSError as error:
        raise Failure(f"--frostpipe: {program} cannot be run ({error.strerror}); give the path of a built frostpipe"
                      ) from error
    if done.returncode != 0:
        raise Failure(f"{sentence_of(done.stderr)} (status {done.returncode} of {program} {' '.join(map(str, words))})")
    return done.stdout


def simulate(program, plan):
    return parsed(frostpipe(program, "simulate", plan, "--format", "json"), f"simulate {plan}")


def rehearse(program, plan, run, *options):
    """Trains with the cluster's links in virtual time and returns the run's summary."""
    frostpipe(program, "train", plan, "--device", "emulated", "--emulated-links", *options, "-o", run, "--overwrite")
    return read_json(run / "summary.json")


def compute_spans(run, skipped_steps):
    """Returns the compute spans of the traced steps from `skipped_steps` on, or of all steps if there are no others."""
    events = read_json(run / "trace.json")["traceEvents"]
    spans = [Span(event["args"]["step"], event["pid"], 1e3 * event["ts"], 1e3 * (event["ts"] + event["dur"]))
             for event in events if event["ph"] == "X" and event["cat"].replace("_", " ") in COMPUTE]
    return [span for span in spans if span.step >= skipped_steps] or spans


class Cases:
    """Figures of the requested cases, and the names of those that have none."""

    def __init__(self, program):
        self.version = frostpipe(program, "--version").strip().splitlines()
        self.figures, self.missing = [], []

    def measure(self, name, function, *arguments):
        """Stores and returns the figures that the function returns; if it fails, prints the reason and returns None."""
        try:
            figures = function(*arguments)
        except Failure as failure:
            self.lack([name], failure)
            return None
        self.figures.append(figures)
        return figures

    def begin(self, names, function, *arguments):
        """Runs a preparation for these cases and returns whether it succeeded; if not, prints the reason, and the cases
        have no figures."""
        try:
            function(*arguments)
        except Failure as failure:
            self.lack(names, failure)
            return False
        return True

    def lack(self, names, failure):
        self.missing += names
        print(f"{', '.join(names)}: no figures: {failure}", flush=True)

    def write(self, path):
        """Writes the figures so far."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"frostpipe": self.version, "missing": self.missing, "cases": self.figures}
        path.write_text(json.dumps(content, indent=1) + "\n")

    def exit_code(self):
        """Returns 1, with a message on stderr, if a case is missing."""
        if not self.missing:
            return 0
        print(f"{Path(sys.argv[0]).name}: {len(self.missing)} of {len(self.missing) + len(self.figures)} cases have no "
              f"figures: {', '.join(self.missing)}", file=sys.stderr)
        return 1
