"""What figures depend on besides the programs: the processor, its cores, and what else is at work."""
import os
import pathlib
import platform
import time


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def processes_at_work():
    """Threads that run or could run, this one left out: the smallest of three counts, so that moments do not show."""
    counts = []
    for _ in range(3):
        time.sleep(0.1)
        running = pathlib.Path("/proc/loadavg").read_text().split()[3]
        counts.append(int(running.partition("/")[0]) - 1)
    return max(0, min(counts))


def use_cores(count):
    """Every run from now on has these cores and no others, so that all compete with the same means."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
