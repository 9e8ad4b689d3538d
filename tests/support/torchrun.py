"""torchrun, installed by scripts/setup-peers."""

from pathlib import Path

PYTHON_WITH_TORCHRUN = Path(__file__).resolve().parent.parent.parent / ".deps/peers/bin/python"


def programs_missing_for_torchrun():
    return [] if PYTHON_WITH_TORCHRUN.exists() else [f"{PYTHON_WITH_TORCHRUN} (scripts/setup-peers)"]


def torchruns_agent(*options):
    """The words before the command line of the ranks that it starts."""
    return [str(word) for word in (PYTHON_WITH_TORCHRUN, "-m", "torch.distributed.run", "--no-python", *options)]
