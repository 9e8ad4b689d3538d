"""bench/running.py, the scripts' use of it to report why frostpipe failed, and bench/byte_alphabet.py."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/gpu"), str(ROOT / "tests/support")]
import byte_alphabet
import programs
import rehearsal
import running
from fake_tool import FakeToolTest

SENTENCE = "frostpipe: no static plan fits: stage 0 needs 41.2 GiB, rank 0 has 39.2 GiB"
ADVICE = "try more stages, or --recompute layers"

# The variables from which the tool derives its rank, except those that a user sets; each is 1 here.
JOB = {name: "1" for source in (ROOT / "executor/elastic").iterdir()
       for name in re.findall(r'"([A-Z]+(?:_[A-Z]+)*)"', source.read_text()) if name != "GLOO_SOCKET_IFNAME"}


class RunningTest(FakeToolTest):
    def test_the_variables_of_every_launcher_are_looked_at(self):
        """Without this check the tests below might find no variables because they look in the wrong place."""
        self.assertGreater(set(JOB), {"RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "SLURM_PROCID", "PMI_RANK",
                                      "OMPI_COMM_WORLD_RANK", "PMIX_NAMESPACE", "FROSTPIPE_CONTROL"})

    def programs(self):
        (self.folder / "logs").mkdir()
        return programs.Programs(types.SimpleNamespace(frostpipe=self.tool), self.folder, "cpu",
                                 time.monotonic() + 60)

    def test_the_sentence_is_returned_without_the_advice_after_it(self):
        self.assertEqual(running.sentence_of(f"frostpipe: a note\n{SENTENCE}\n{ADVICE}\n"), SENTENCE)
        self.assertEqual(running.sentence_of("Killed\n\n"), "Killed")
        self.assertEqual(running.sentence_of("\n"), "it said nothing")
        self.tool_does(f"printf '%s\\n' '{SENTENCE}' '{ADVICE}' >&2; exit 1")
        for run in (lambda: rehearsal.frostpipe(self.tool, "plan"), lambda: self.programs().frostpipe("plan")):
            with self.assertRaises(running.Failure) as raised:
                run()
            self.assertIn(SENTENCE, str(raised.exception))
            self.assertNotIn(ADVICE, str(raised.exception))

    def test_no_program_takes_itself_for_a_rank_of_the_job_around_it(self):
        self.tool_does("env")
        with mock.patch.dict(os.environ, {**JOB, "FROSTPIPE_LEFT_ALONE": "1"}):
            for said in (rehearsal.frostpipe(self.tool), self.programs().frostpipe("train").stdout):
                names = {line.partition("=")[0] for line in said.splitlines()}
                self.assertEqual(names & set(JOB), set())
                self.assertIn("FROSTPIPE_LEFT_ALONE", names)

    def test_nor_does_the_quickstart(self):
        """Runs a script alone in a copy of the tree, up to its first call of the tool."""
        for folder in ("scripts", "build"):
            (self.folder / folder).mkdir()
        for name in ("quickstart", "steps"):
            shutil.copy(ROOT / "scripts" / name, self.folder / "scripts")
        self.tool_does(f"env >{self.folder}/seen; exit 1")
        self.tool.rename(self.folder / "build/frostpipe")
        for name, script in (("scripts/setup", '. "${BASH_SOURCE%/*}/steps"; set_up() { cd "$root"; }'),
                             ("scripts/debian-sections", "#!/bin/sh"), ("apt-cache", "#!/bin/sh\necho lists")):
            (self.folder / name).write_text(f"{script}\n")
            (self.folder / name).chmod(0o755)
        done = subprocess.run([self.folder / "scripts/quickstart"], capture_output=True, text=True, check=False,
                              env={**os.environ, **JOB, "PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.assertIn("frostpipe profile failed with status 1", done.stderr)
        names = {line.partition("=")[0] for line in (self.folder / "seen").read_text().splitlines()}
        self.assertEqual(names & set(JOB), set())
        self.assertIn("PATH", names)


class ByteAlphabetTest(unittest.TestCase):
    def test_it_is_that_of_gpt2(self):
        """Oracle: the published vocabulary's characters for a blank, a line end, a letter and the last byte."""
        symbols = byte_alphabet.symbols_of_bytes()
        self.assertEqual(len(set(symbols)), 256)
        self.assertEqual([symbols[byte] for byte in (0x20, 0x0A, 0x41, 0xAD, 0xFF)], ["Ġ", "Ċ", "A", "Ń", "ÿ"])


if __name__ == "__main__":
    unittest.main()
