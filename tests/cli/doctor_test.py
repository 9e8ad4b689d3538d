import json
import os
import re
import resource
import shutil
import socket
import subprocess
import unittest
from pathlib import Path

from support import FROSTPIPE, HANG_SECONDS, CliTest, has_executor

FACTS = {"folder": "/opt/torch", "cpu_instructions": "AVX512", "prefers_onednn": True,
         "onednn": "/usr/lib/libdnnl.so.2", "has_cuda_module": True, "cuda_fault": "device cuda: no GPU",
         "cuda_version": 13000, "nccl_version": 22809, "num_gpus": 0}


def built_with():
    """The version of LibTorch, without the suffix for its build."""
    version = subprocess.run([FROSTPIPE, "--version"], stdout=subprocess.PIPE, text=True, check=True,
                             timeout=HANG_SECONDS).stdout
    found = re.search(r"^LibTorch (\d+\.\d+\.\d+)", version, re.MULTILINE)
    return found.group(1) if found else "2.11.0"


class DoctorTest(CliTest):
    """Oracle: Python's facts of the system."""

    def test_it_says_what_the_machine_has(self):
        done = subprocess.run([FROSTPIPE, "doctor", "--format", "json"], stdout=subprocess.PIPE, text=True,
                              timeout=HANG_SECONDS)
        found = json.loads(done.stdout)
        self.assertEqual((found["format"], found["version"]), ("frostpipe.diagnosis", 1))
        self.assertEqual(done.returncode, 1 if found["problems"] else 0)
        machine = found["machine"]
        self.assertEqual(machine["usable_cores"], len(os.sched_getaffinity(0)))
        self.assertEqual(machine["memory_bytes"], os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        self.assertEqual(machine["c_library"], os.confstr("CS_GNU_LIBC_VERSION"))
        self.assertLessEqual({interface["name"] for interface in machine["interfaces"]},
                             {name for _, name in socket.if_nameindex()})
        self.assertIn("127.0.0.1", sum((one["addresses"] for one in machine["interfaces"]), []))
        if has_executor():
            self.assertTrue((Path(found["libtorch"]["folder"]) / "lib/libtorch_cpu.so").exists())
            self.assertEqual(found["libtorch"]["version"], found["built_with_libtorch"])
            self.assertEqual(found["executor"]["folder"], found["libtorch"]["folder"])

    def test_text_and_json_say_the_same(self):
        text = subprocess.run([FROSTPIPE, "doctor"], stdout=subprocess.PIPE, text=True, timeout=HANG_SECONDS).stdout
        found = json.loads(subprocess.run([FROSTPIPE, "doctor", "--format", "json"], stdout=subprocess.PIPE, text=True,
                                          timeout=HANG_SECONDS).stdout)
        self.assertIn(found["machine"]["processor"], text)
        self.assertEqual(text.count("\nMISSING  "), len(found["problems"]))
        self.assertEqual(text.count("\nTO DO    "), len(found["problems"]))
        self.assertEqual("\nNothing is missing" in text, not found["problems"])

    def test_a_tool_without_its_executor_says_how_to_get_one(self):
        alone = shutil.copy(FROSTPIPE, self.folder / "alone")
        done = subprocess.run([alone, "doctor"], stdout=subprocess.PIPE, text=True, timeout=HANG_SECONDS)
        self.assertEqual(done.returncode, 1)
        self.assertIn("MISSING  the LibTorch executor, frostpipe-executor, is not here", done.stdout)
        self.assertIn("TO DO    build the preset 'default' (scripts/setup)", done.stdout)

    def test_a_limit_that_is_too_low_is_something_missing(self):
        done = subprocess.run([FROSTPIPE, "doctor"], stdout=subprocess.PIPE, text=True, timeout=HANG_SECONDS,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"MISSING  limit of open files \(ulimit -n\): must be at least \d+ .*, is 20\n")


class InstalledDoctorTest(CliTest):
    """An installed folder whose executor is a script. Oracle: the script's output, and the folder of LibTorch."""

    def setUp(self):
        super().setUp()
        (self.folder / "bin").mkdir()
        shutil.copy(FROSTPIPE, self.folder / "bin/frostpipe")
        self.write("torch/version.py", f"__version__ = '{built_with()}+cu130'\n")
        self.write("torch/lib/libtorch_cpu.so", "")

    def put_executor(self, script):
        executor = self.write("lib/frostpipe/frostpipe-executor", f"#!/bin/sh\n{script}\n")
        (self.folder / "lib/frostpipe/frostpipe-executor").chmod(0o755)
        return executor

    def doctor(self, code, **variables):
        """Runs with only these environment variables."""
        done = subprocess.run([self.folder / "bin/frostpipe", "doctor", "--format", "json"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=HANG_SECONDS, env=variables)
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        return json.loads(done.stdout)

    def test_libtorch_is_found_and_asked(self):
        self.put_executor(f"echo \"$LD_LIBRARY_PATH\" > {self.folder}/called\necho noise\necho '{json.dumps(FACTS)}'")
        found = self.doctor(0, TORCH_ROOT=str(self.folder / "torch"))
        self.assertEqual(found["libtorch"], {"version": f"{built_with()}+cu130", "named_by": "TORCH_ROOT",
                                             "folder": str((self.folder / "torch").resolve())})
        self.assertEqual(found["executor"], FACTS)
        self.assertEqual((self.folder / "called").read_text().split(":")[0].strip(),
                         str((self.folder / "torch/lib").resolve()))

    def test_the_searched_places_are_listed(self):
        self.put_executor("exit 1")
        problem, = self.doctor(1, PATH="/nowhere")["problems"]
        lib = self.folder.resolve() / "lib"
        self.assertIn("TORCH_ROOT is not set; python3 cannot be started; "
                      f"{lib} has neither torch/lib/libtorch_cpu.so nor libtorch_cpu.so", problem["missing"])
        self.assertIn(f"or unpack it with its dependencies into {lib}", problem["to_do"])

    def test_the_loaders_words_are_passed_on(self):
        words = "frostpipe-executor: error while loading shared libraries: libcupti.so.13: cannot open it"
        self.put_executor(f"echo first >&2; echo '{words}' >&2; exit 127")
        problem, = self.doctor(1, TORCH_ROOT=str(self.folder / "torch"))["problems"]
        self.assertEqual(problem["missing"], words)
        self.assertIn("with all its dependencies", problem["to_do"])

    def test_an_executor_that_a_signal_ends_is_named(self):
        self.put_executor("kill -ILL $$")
        problem, = self.doctor(1, TORCH_ROOT=str(self.folder / "torch"))["problems"]
        self.assertEqual(problem["missing"],
                         f"{self.folder.resolve()}/lib/frostpipe/frostpipe-executor was ended by signal 4")


if __name__ == "__main__":
    unittest.main()
