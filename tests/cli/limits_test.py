"""A stack that is too small (ulimit -s) gives an error message and exit code 1, not a segmentation fault."""

import resource
import subprocess
import unittest

from support import FROSTPIPE, HANG_SECONDS

KIB = 1 << 10
COMMANDS = [["--version"], ["--help"], ["schedule", "1F1B", "--pp", "4", "--micro-batches", "8"],
            ["train", "plan.json", "--data", "data.tsv", "-o", "run"], ["plan", "--profile", "profile.json"]]


def run_with_stack(soft, hard, command):
    return subprocess.run([FROSTPIPE, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=HANG_SECONDS,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (soft, hard)))


class StackTest(unittest.TestCase):
    def test_a_small_stack_is_a_sentence(self):
        for size in (48 * KIB, 64 * KIB, 512 * KIB):
            for command in COMMANDS:
                with self.subTest(size=size, command=command):
                    done = run_with_stack(size, size, command)
                    self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                    self.assertRegex(done.stderr, r"^frostpipe: limit of the stack \(ulimit -s\): must be at least "
                                                  rf"1024 KiB \(the usual limit is 8192 KiB\), is {size // KIB}(\.0)? "
                                                  r"KiB\n$")

    def test_a_stack_that_the_shell_keeps_back_is_taken(self):
        command = COMMANDS[2]
        expected = run_with_stack(8192 * KIB, resource.RLIM_INFINITY, command)
        done = run_with_stack(64 * KIB, resource.RLIM_INFINITY, command)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, expected.stdout, ""))


if __name__ == "__main__":
    unittest.main()
