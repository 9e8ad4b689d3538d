"""The installed folder is moved and run without the build's environment."""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import FROSTPIPE, HANG_SECONDS, EndToEndTest

MOST_ARCHIVE_BYTES = 40_000_000

# Libraries that every Linux has: glibc, the loader and the kernel's page.
OF_THE_SYSTEM = re.compile(r"(ld-linux[^/]*|linux-vdso|lib(c|m|mvec|dl|rt|pthread|util|resolv))\.so\S*$")


class InstalledTest(EndToEndTest):
    """Oracle: the program of the build folder, ldd, and that nothing else can be found."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.build = Path(FROSTPIPE).parent
        if not shutil.which("cmake") or not (cls.build / "cmake_install.cmake").exists():
            raise unittest.SkipTest("this is no build folder")

    def setUp(self):
        super().setUp()
        subprocess.run(["cmake", "--install", self.build, "--prefix", self.folder / "first"], check=True,
                       stdout=subprocess.DEVNULL, timeout=HANG_SECONDS)
        self.prefix = (self.folder / "first").rename(self.folder / "moved").resolve()
        build_doctor = subprocess.run([FROSTPIPE, "doctor", "--format", "json"], stdout=subprocess.PIPE, text=True,
                                      timeout=HANG_SECONDS)
        self.torch = json.loads(build_doctor.stdout)["libtorch"]["folder"]

    def run_installed(self, *arguments, code=0, **variables):
        """Runs with only these environment variables: there is no PATH, so no python3."""
        done = subprocess.run([self.prefix / "bin/frostpipe", *map(str, arguments)], cwd=self.folder, text=True,
                              env={"PATH": "/nowhere", **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=HANG_SECONDS)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def libraries_of(self, program, **variables):
        """{name: file} of the libraries that the loader loads."""
        ldd = subprocess.run(["ldd", program], env={"PATH": os.environ["PATH"], **variables}, stdout=subprocess.PIPE,
                             text=True, check=True, timeout=HANG_SECONDS).stdout
        return dict(re.findall(r"^\s*(\S+) => (.*?)(?: \(0x[0-9a-f]+\))?$", ldd, re.MULTILINE))

    def test_it_trains_as_the_build_does_wherever_it_lies(self):
        expected = self.train("static.json", "by-the-build", "--epochs", 2)
        arguments = self.train_arguments("static.json", "installed", "--epochs", 2)
        self.run_installed(*arguments, TORCH_ROOT=self.torch)
        run = self.read("installed/summary.json")
        self.assertEqual(self.losses(run), self.losses(expected), "to the bit")

    def test_doctor_finds_libtorch_by_each_of_its_places(self):
        found = json.loads(self.run_installed("doctor", "--format", "json", TORCH_ROOT=self.torch).stdout)
        self.assertEqual((found["libtorch"]["named_by"], found["problems"]), ("TORCH_ROOT", []))
        self.assertEqual(found["libtorch"]["version"], found["built_with_libtorch"])
        self.assertEqual(found["executor"]["folder"], self.torch, "it is the one that is loaded")

        problem, = json.loads(self.run_installed("doctor", "--format", "json", code=1).stdout)["problems"]
        self.assertIn("TORCH_ROOT is not set; python3 cannot be started; ", problem["missing"])
        refused = self.run_installed("train", "static.json", "--data", "data.tsv", "-o", "run", code=1)
        self.assertRegex(refused.stderr, r"^frostpipe: LibTorch 2\.\d+\.\* was not found: TORCH_ROOT is not set; .*\n$")

        (self.prefix / "lib/torch").symlink_to(self.torch)
        found = json.loads(self.run_installed("doctor", "--format", "json").stdout)
        self.assertEqual((found["libtorch"]["named_by"], found["problems"]), (f"{self.prefix}/lib", []))

        packages = os.path.dirname(self.torch)
        found = json.loads(self.run_installed("doctor", "--format", "json", PATH=os.path.dirname(sys.executable),
                                              PYTHONPATH=packages).stdout)
        self.assertEqual((found["libtorch"]["named_by"], found["problems"]), ("python3", []))

    def test_loaded_libraries_are_bundled_or_on_every_linux(self):
        libraries = self.prefix / "lib/frostpipe"
        gcc = libraries / "gcc"
        own = (f"{self.prefix}/", os.path.dirname(self.torch) + "/")
        with_torch = f"{self.torch}/lib:{gcc}"
        for program, path in [*((file, "") for file in (self.prefix / "bin").glob("frostpipe*")),
                              *((file, with_torch) for file in libraries.glob("frostpipe-*executor")),
                              (libraries / "frostpipe_executor_tests", with_torch)]:
            for name, file in self.libraries_of(program, LD_LIBRARY_PATH=path).items():
                file = os.path.realpath(file)
                with self.subTest(program=program.name, library=name):
                    self.assertTrue(file.startswith(own) or OF_THE_SYSTEM.search(name) or (gcc / name).exists(), file)

    def test_licences_come_along(self):
        documents = self.prefix / "share/doc/frostpipe"
        self.assertIn("Apache License", (documents / "LICENSE").read_text())
        self.assertTrue((documents / "docs/installing.md").exists())
        if shutil.which("dpkg-query"):
            for name in ("clp", "cbc", "cgl", "osi", "fmt", "icu", "jpeg", "png", "stdc++", "json", "xxhash", "boost",
                         "cli11"):
                self.assertTrue([file for file in (documents / "licences").iterdir() if name in file.name], name)

    def test_the_archive_is_small(self):
        subprocess.run(["cpack", "--config", self.build / "CPackConfig.cmake", "-G", "TGZ", "-B", self.folder / "pack"],
                       check=True, stdout=subprocess.DEVNULL, timeout=HANG_SECONDS)
        archive, = (self.folder / "pack").glob("frostpipe-*.tar.gz")
        self.assertLess(archive.stat().st_size, MOST_ARCHIVE_BYTES)
        subprocess.run(["tar", "xf", archive, "-C", self.folder], check=True, timeout=HANG_SECONDS)
        self.prefix = self.folder / archive.name.removesuffix(".tar.gz")
        self.run_installed("doctor", TORCH_ROOT=self.torch)


if __name__ == "__main__":
    unittest.main()
