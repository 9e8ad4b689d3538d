"""What the scripts of this folder share that run programs. Needs Python alone."""
import os

# Of torchrun, srun, mpirun and mpiexec.
OF_A_RANK = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
OF_A_JOB = ("SLURM_", "OMPI_", "PMI_", "MPI_LOCAL")  # what they begin with


class Trouble(Exception):
    """Why something cannot be done or measured; its text is the sentence to show."""


def environment_without_job():
    """This process's, without what makes frostpipe take itself for one rank of the job that the script is part of."""
    return {name: value for name, value in os.environ.items()
            if name not in OF_A_RANK and not name.startswith(OF_A_JOB)}


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


def sentence_of(stderr):
    """Why frostpipe failed: the last line that begins with its name, which advice may follow; else the last line."""
    sentences = [line for line in stderr.splitlines() if line.startswith("frostpipe: ")]
    return sentences[-1] if sentences else last_line(stderr)
