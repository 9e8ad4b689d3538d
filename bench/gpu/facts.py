"""Facts of the machine, asked of the driver itself, so that no other software is needed."""
import ctypes
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys

MULTIPROCESSORS, MAJOR, MINOR = 16, 75, 76  # CUdevice_attribute


def gpus():
    """Returns the GPUs, and the reason if there are none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return [], "NVIDIA's driver (libcuda.so.1) is not installed"
    if (error := driver.cuInit(0)) != 0:
        return [], f"NVIDIA's driver finds no GPU (cuInit: error {error})"
    count, version = ctypes.c_int(), ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    driver.cuDriverGetVersion(ctypes.byref(version))
    found = []
    for number in range(count.value):
        device, name, size = ctypes.c_int(), ctypes.create_string_buffer(128), ctypes.c_size_t()
        driver.cuDeviceGet(ctypes.byref(device), number)
        driver.cuDeviceGetName(name, len(name), device)
        driver.cuDeviceTotalMem_v2(ctypes.byref(size), device)

        def attribute(which, of=device):
            value = ctypes.c_int()
            driver.cuDeviceGetAttribute(ctypes.byref(value), which, of)
            return value.value

        found.append({"name": name.value.decode(), "memory_bytes": size.value,
                      "capability": f"{attribute(MAJOR)}.{attribute(MINOR)}",
                      "multiprocessors": attribute(MULTIPROCESSORS),
                      "cuda_of_driver": f"{version.value // 1000}.{version.value % 1000 // 10}"})
    return found, "" if found else "NVIDIA's driver finds no GPU"


def said_by(*command, seconds=60, codes=(0,)):
    """Returns the program's output; empty if the program cannot run, or if its exit code is not one of `codes`."""
    if not shutil.which(command[0]):
        return ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode in codes else ""


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def memory_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def torch_of(python):
    """Returns the version and library folder of the torch that this Python imports, or the reason why it has none. A
    first import may take minutes."""
    code = ("import json, os, torch; print(json.dumps({'version': torch.__version__, 'cuda': torch.version.cuda,"
            "'sees_gpu': torch.cuda.is_available(), 'folder': os.path.dirname(torch.__file__)}))")
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or ["it cannot be imported"])[-1]
    return json.loads(done.stdout.splitlines()[-1]), ""


def diagnosis(frostpipe):
    """Returns the findings of `frostpipe doctor`, or its error message. The command may take minutes, since it is the
    first that loads LibTorch on this machine."""
    said = said_by(frostpipe, "doctor", "--format", "json", seconds=300, codes=(0, 1))  # 1: something is missing
    try:
        return json.loads(said)
    except json.JSONDecodeError:
        return said or "frostpipe doctor failed, or did not end within 300 s"


def all_facts(frostpipe, python, torch):
    return {"gpus": gpus()[0], "processor": processor(), "cores": len(os.sched_getaffinity(0)),
            "memory_bytes": memory_bytes(), "system": platform.platform(), "python": sys.version.split()[0],
            "torch_of_python": torch[0] or f"none in {python}: {torch[1]}",
            "frostpipe": said_by(frostpipe, "--version").splitlines(),
            "nvidia-smi": said_by("nvidia-smi", "--query-gpu=name,driver_version,pstate,clocks.sm,clocks.max.sm,"
                                  "power.limit,mig.mode.current,ecc.mode.current", "--format=csv,noheader"),
            "compute-sanitizer": said_by("compute-sanitizer", "--version").splitlines()[-1:],
            "doctor": diagnosis(frostpipe)}
