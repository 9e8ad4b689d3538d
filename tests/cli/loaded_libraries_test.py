"""The libraries that a program loads do not depend on the folder in which it is started.

Checks all programs and libraries of the build folder, and the installed ones. Oracle: readelf, and the loader."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import FROSTPIPE, HANG_SECONDS

BUILD = Path(FROSTPIPE).resolve().parent


def output_of(*command, folder=None):
    """(exit code, output) with only the loader's default folders, and without the number of the process, which
    sanitizers write."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    done = subprocess.run([*map(str, command)], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANG_SECONDS)
    return done.returncode, re.sub(r"==\d+==", "==", done.stdout)


def linked_files(folder):
    """Programs and libraries, without object files and CMake's compiler checks."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "CMakeFiles"]
        for file in (Path(parent) / name for name in names if not name.endswith((".o", ".a"))):
            if file.is_file() and not file.is_symlink():
                with open(file, "rb") as opened:
                    if opened.read(4) == b"\x7fELF":
                        yield file


def is_library(file):
    return ".so" in file.name


def start(file, folder):
    if is_library(file):
        return output_of(sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", file, folder=folder)
    return output_of(file, "--help", folder=folder)


@unittest.skipUnless(shutil.which("cmake") and (BUILD / "cmake_install.cmake").exists(), "this is no build folder")
class LoadedLibrariesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="frostpipe-")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = Path(cls.temporary.name).resolve()
        code, said = output_of("cmake", "--install", BUILD, "--prefix", cls.folder / "installed")
        if code != 0:
            raise AssertionError(said)
        cls.files = [*linked_files(BUILD), *linked_files(cls.folder / "installed")]

    def test_no_search_path_depends_on_the_current_folder(self):
        self.assertIn("frostpipe", [file.name for file in self.files])
        for file in self.files:
            _, said = output_of("readelf", "--dynamic", "--wide", file)
            for kind, path in re.findall(r"\((RPATH|RUNPATH)\).*\[(.*)\]", said):
                for entry in path.split(":"):
                    self.assertRegex(entry, r"^(/|\$ORIGIN(/|$))", f"{file}: {kind} {path}")

    def test_libraries_of_the_current_folder_are_not_loaded(self):
        for file in self.files:
            with self.subTest(file=file), tempfile.TemporaryDirectory(dir=self.folder) as folder:
                expected = start(file, folder)
                _, needed = output_of("ldd", file)
                for name in re.findall(r"^\s*([^/\s]+) =>", needed, re.MULTILINE):
                    Path(folder, name).write_bytes(b"no library: the loader ends a program that it is found by")
                self.assertEqual(start(file, folder), expected)
                if file.name in ("frostpipe", "frostpipe-serving", "frostpipe-nets"):
                    self.assertEqual(expected[0], 0, expected[1])


if __name__ == "__main__":
    unittest.main()
