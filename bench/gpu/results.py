"""The checks and their results, written as JSON and as text after each check."""
import json
import math
from dataclasses import asdict, dataclass, field

PASSED, FAILED, SKIPPED, LEFT_OUT = "passed", "failed", "skipped", "left out"


@dataclass
class Target:
    """A target: `value` must be at most `most`, or at least `least`."""

    what: str
    value: float
    most: float = None
    least: float = None

    @property
    def is_met(self):
        return math.isfinite(self.value) and (self.most is None or self.value <= self.most) and (
            self.least is None or self.value >= self.least)

    @property
    def wanted(self):
        return f"at most {self.most:g}" if self.least is None else f"at least {self.least:g}"


@dataclass
class Check:
    section: str
    name: str
    status: str = PASSED
    seconds: float = 0.0
    note: str = ""  # why it failed, was skipped or was left out
    figures: dict = field(default_factory=dict)
    targets: list = field(default_factory=list)


class Results:
    def __init__(self, folder, about, judges):
        """`judges`: whether targets count; they are meant for GPUs."""
        self.folder, self.about, self.judges, self.checks = folder, about, judges, []
        self.write()

    def add(self, check):
        self.checks.append(check)
        self.write()

    def write(self):
        """Writes both files, so that no result is lost if the script is killed."""
        (self.folder / "gpu-check.json").write_text(json.dumps(self.as_json(), indent=1) + "\n", encoding="utf-8")
        (self.folder / "gpu-check.txt").write_text(self.text(), encoding="utf-8")

    def count(self, status):
        return sum(check.status == status for check in self.checks)

    def missed(self):
        return [target for check in self.checks for target in check.targets if not target.is_met]

    def is_good(self):
        """A check that was left out might have failed, so it counts as not passed; one that this machine cannot do is
        skipped."""
        return self.count(FAILED) == self.count(LEFT_OUT) == 0 and not (self.judges and self.missed())

    def as_json(self):
        checks = []
        for check in self.checks:
            value = asdict(check)
            for target, own in zip(value["targets"], check.targets):
                target["is_met"] = own.is_met
            checks.append(value)
        return {"format": "frostpipe.gpu_check", "version": 1, **self.about, "judges_targets": self.judges,
                "checks": checks}

    def text(self):
        lines = ["frostpipe gpu-check", ""]
        for key, value in self.about.items():
            lines += [f"{name:18} {shown(one)}" for name, one in (value if key == "facts" else {key: value}).items()]
        section = None
        for check in self.checks:
            if check.section != section:
                section = check.section
                lines += ["", section, "-" * len(section)]
            lines.append(f"{check.status:9} {check.seconds:7.1f} s  {check.name}" + (f": {check.note}"
                                                                                     if check.note else ""))
            lines += [f"{'':21}{name}: {shown(value)}" for name, value in check.figures.items()]
        targets = [target for check in self.checks for target in check.targets]
        if targets:
            lines += ["", "Targets" if self.judges else "Targets (of a GPU, not judged here)", "-------"]
            lines += [f"{'met' if target.is_met else 'missed':9} {target.what}: {target.value:.4g} "
                      f"({target.wanted})" for target in targets]
        return "\n".join([*lines, "", self.verdict()]) + "\n"

    def verdict(self):
        counts = ", ".join(f"{self.count(status)} {status}" for status in (PASSED, FAILED, SKIPPED, LEFT_OUT)
                           if self.count(status))
        missed = f"; {len(self.missed())} targets missed" if self.judges and self.missed() else ""
        return f"{counts or 'nothing was checked'}{missed}"


def shown(value):
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, list):
        return ", ".join(map(shown, value)) or "none"
    if isinstance(value, dict):
        return "; ".join(f"{name} {shown(one)}" for name, one in value.items())
    return str(value)
