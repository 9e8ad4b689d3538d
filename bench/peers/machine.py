"""The state of the machine on which figures depend: the processor, its cores, and other running processes."""
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
    """Returns the number of runnable threads besides this one: the smallest of three counts, so that short peaks do not
    matter."""
    counts = []
    for _ in range(3):
        time.sleep(0.1)
        running = pathlib.Path("/proc/loadavg").read_text().split()[3]
        counts.append(int(running.partition("/")[0]) - 1)
    return max(0, min(counts))


def use_cores(count):
    """Restricts every run from now on to `count` cores, so that all have the same resources."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
