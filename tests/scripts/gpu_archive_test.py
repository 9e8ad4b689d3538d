"""scripts/gpu-archive: the archive that was made here, if one was, is as new as the executor's code for devices."""
import json
import pathlib
import runpy
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FACTS = ROOT / "runs/gpu-archive/archive.json"
ARCHIVE = runpy.run_path(str(ROOT / "scripts/gpu-archive"))


class AgeTest(unittest.TestCase):
    def test_the_archive_is_as_new_as_what_it_is_made_of(self):
        if not FACTS.exists():
            print("SKIPPED: no archive for a GPU machine was made here; scripts/gpu-archive makes one", file=sys.stderr)
            self.skipTest("no archive was made")
        self.assertEqual(ARCHIVE["why_older"](json.loads(FACTS.read_text()), ROOT), "")


class DigestTest(unittest.TestCase):
    def test_it_is_older_once_a_source_has_another_name_or_content(self):
        with tempfile.TemporaryDirectory(prefix="frostpipe-gpu-archive-") as name:
            root = pathlib.Path(name)
            source = root / "executor/device/cuda/graphs.cpp"
            for folder in ("executor/device/cuda", "executor/runtime", "planner"):
                (root / folder).mkdir(parents=True)
            source.write_text("int one;")
            facts = {"commit": "1bf5366b33e1", "sources": ARCHIVE["digest_of"](root)}
            for path in (root / "planner/other.cpp", root / "executor/device/notes.md"):
                path.write_text("of no account")
            self.assertEqual(ARCHIVE["why_older"](facts, root), "")
            source.write_text("int two;")
            self.assertEqual(ARCHIVE["why_older"](facts, root),
                             "the archive of commit 1bf5366b33e1 is older than executor, bench/gpu, bench/peers: "
                             "make it again with scripts/gpu-archive")
            source.write_text("int one;")
            self.assertEqual(ARCHIVE["why_older"](facts, root), "")
            source.rename(root / "executor/runtime/graphs.cpp")
            self.assertNotEqual(ARCHIVE["why_older"](facts, root), "")

    def test_every_folder_of_the_sources_counts(self):
        with tempfile.TemporaryDirectory(prefix="frostpipe-gpu-archive-") as name:
            root = pathlib.Path(name)
            for folder in ARCHIVE["SOURCES"]:
                shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
            for folder in ARCHIVE["SOURCES"]:
                facts = {"commit": "1bf5366b33e1", "sources": ARCHIVE["digest_of"](root)}
                shutil.rmtree(root / folder)
                self.assertNotEqual(ARCHIVE["why_older"](facts, root), "", folder)


if __name__ == "__main__":
    unittest.main()
