"""Functions to run programs, shared by the scripts of this folder and by tests. It needs only Python."""
import os

# The variables of torchrun, srun, mpirun, mpiexec and our launcher; leave_job in scripts/steps has the same.
OF_A_RANK = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
             "FROSTPIPE_LAUNCHER", "FROSTPIPE_CONTROL", "FROSTPIPE_MAY_RENDEZVOUS_AGAIN")
OF_A_JOB = ("TORCHELASTIC_", "SLURM_", "OMPI_", "PMI_", "PMIX_", "MPI_LOCAL")  # their prefixes


class Failure(Exception):
    """An error: something cannot be done or measured. Its text is the message to show."""


def environment_without_job():
    """Returns this process's environment without the variables by which frostpipe would take itself for a rank of the
    script's own job."""
    return {name: value for name, value in os.environ.items()
            if name not in OF_A_RANK and not name.startswith(OF_A_JOB)}


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


def sentence_of(stderr):
    """Returns the reason why frostpipe failed: the last line that begins with its name (advice may follow it), else the
    last line."""
    sentences = [line for line in stderr.splitlines() if line.startswith("frostpipe: ")]
    return sentences[-1] if sentences else last_line(stderr)
