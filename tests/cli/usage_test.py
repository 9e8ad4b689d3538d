import json
import os
import re
import resource
import shutil
import subprocess
import unittest
from pathlib import Path

from support import FROSTPIPE, HANG_SECONDS, NO_EXECUTOR, CliTest, has_executor

COMMANDS = ["profile", "plan", "simulate", "train", "evaluate", "compare", "report", "schedule", "inspect", "bench",
            "doctor", "serving plan", "serving simulate", "serving run", "serving inspect", "nets profile", "nets plan",
            "nets simulate", "nets train", "nets rehearse", "nets evaluate"]
BUILD = Path(FROSTPIPE).resolve().parent


def libraries_of(program):
    """The libraries that the loader loads for a program."""
    return subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True, timeout=HANG_SECONDS).stdout


class UsageTest(CliTest):
    def test_every_command_explains_itself_with_an_example(self):
        for command in COMMANDS:
            with self.subTest(command):
                done = self.run_tool(*command.split(), "--help")
                self.assertEqual(done.stderr, "")
                self.assertIn("--format", done.stdout)
                self.assertRegex(done.stdout, f"Examples?:\n  frostpipe {command} ")
                self.assertNotIn("\n\n\n", done.stdout)
                if command != "bench":
                    lines = done.stdout.splitlines()
                    self.assertLessEqual(len(lines), 45)
                    self.assertLessEqual(max(len(line) for line in lines if not line.startswith("  frostpipe ")), 120)

    def test_help_lists_every_command(self):
        text = self.run_tool("--help").stdout
        for command in [*COMMANDS, "launch", "serving", "nets"]:
            if " " not in command:
                self.assertRegex(text, rf"(?m)^  {command} ")
        for group in ("serving", "nets"):
            text = self.run_tool(group, "--help").stdout
            for command in COMMANDS:
                if command.startswith(group + " "):
                    self.assertRegex(text, rf"(?m)^  {command.split()[1]} ")

    def test_rare_options_are_shown_by_help_all(self):
        usual, all_of_them = (self.run_tool("train", option).stdout for option in ("--help", "--help-all"))
        self.assertIn("--data", usual)
        self.assertNotIn("--gradient-clip", usual)
        self.assertRegex(usual, r"\d+ more options: see --help-all")
        self.assertIn("Default: 1", all_of_them)
        self.assertIn("--gradient-clip", all_of_them)

    def test_an_option_that_has_moved_is_named_with_its_new_place(self):
        for arguments, says in [
            (["profile", "--operators", "--like", "resnet-18", "-o", "p"], "use 'frostpipe nets profile'"),
            (["simulate", "--schedule", "1F1B"], "use 'frostpipe schedule NAME --format times'"),
            (["plan", "--profile", "p", "--pp", 2], "use --fix pp=P"),
            (["train", "plan.json", "--lr", 1e-3], "use --learning-rate"),
            (["train", "plan.json", "--gradient_accumulation_steps=4"], "use plan --fix m=N"),
            (["profile", "--per_device_train_batch_size", 4], "use plan --global-batch N"),
            (["train", "plan.json", "--nproc-per-node", 2], "the plan says it"),
            (["train", "plan.json", "--checkpoint-steps", 2], "use --checkpoint-every N"),
        ]:
            with self.subTest(arguments):
                self.assert_refused(*arguments, code=2, says=f"; {says}")

    def test_version_says_what_was_built(self):
        """Oracle: git, and LibTorch's own version if there is one."""
        version, commit, libtorch, libraries, compiler = self.run_tool("--version").stdout.splitlines()
        self.assertRegex(version, r"^frostpipe \d+\.\d+\.\d+$")
        self.assertRegex(commit, r"^commit ([0-9a-f]{12}(\+dirty)?|unknown)$")
        self.assertRegex(libtorch, r"^LibTorch \d+\.\d+\.\d+\S* \(in frostpipe-executor\)$"
                         if has_executor() else "^without LibTorch$")
        self.assertRegex(libraries,
                         "^"
                         + ", ".join(rf"{name} [\d.]+" for name in ("fmt", "CLI11", "nlohmann_json", "Boost", "Clp",
                                                                    "Cbc", "cpp-httplib", "ICU")) + "$")
        self.assertRegex(compiler, r"^\w+ [\d.]+, \w+$")

    def test_the_commit_follows_the_checkout(self):
        """Oracle: git. For a folder that is not a git tree, or is inside another one, no commit is known."""
        script = Path(__file__).parents[2] / "cmake" / "Commit.cmake"
        header, git = self.folder / "commit.h", shutil.which("git")
        if not git:
            self.skipTest("no git here")
        def commit_of(source):
            subprocess.run(["cmake", f"-DGIT={git}", f"-DSOURCE={source}", f"-DHEADER={header}", "-P", script],
                           check=True)
            return header.read_text()
        def run_git(*arguments):
            identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
            return subprocess.run([git, "-C", self.folder, *identity, *arguments], check=True, stdout=subprocess.PIPE,
                                  text=True).stdout.strip()
        run_git("init", "-q")
        run_git("add", "profile.json")
        run_git("commit", "-q", "-m", "one")
        commit = run_git("rev-parse", "HEAD")[:12]
        self.assertEqual(commit_of(self.folder), f'#define FROSTPIPE_COMMIT "{commit}"\n')
        written = header.stat().st_mtime_ns
        commit_of(self.folder)
        self.assertEqual(header.stat().st_mtime_ns, written, "nothing is compiled again for the same commit")
        self.write("profile.json", "changed")
        self.assertEqual(commit_of(self.folder), f'#define FROSTPIPE_COMMIT "{commit}+dirty"\n')
        (self.folder / "unpacked").mkdir()
        self.assertEqual(commit_of(self.folder / "unpacked"), '#define FROSTPIPE_COMMIT "unknown"\n')

    def test_the_intended_word_is_suggested(self):
        for arguments, says in [
            (["tran"], "there is no command 'tran'; did you mean 'train'?"),
            (["eval"], "there is no command 'eval'; did you mean 'evaluate'?"),
            (["serving", "plann"], "there is no command 'plann'; did you mean 'plan'?"),
            (["schedule", "1F1B", "--fromat", "text"], "did you mean '--format'?"),
            (["schedule", "1F1B", "--fromat=text"], "did you mean '--format'?"),
            (["schedule", "1F1B", "--xyz", "8", "9"], "The following arguments were not expected: --xyz 8 9\n"),
            (["plan", "--profil", "p", "--cluster", "c", "--global-batch", "4"], "did you mean '--profile'?"),
        ]:
            with self.subTest(arguments):
                self.assert_refused(*arguments, code=2, says=[says, "--help'."])
        for arguments in (["fly"], ["schedule", "1F1B", "--colour", "blue"]):
            self.assertNotIn("did you mean", self.run_tool(*arguments, code=2).stderr)

    def assert_limit_is_said(self, kind, value, says):
        """The first, small program reports this; the other one could not even load its libraries."""
        for command in (["train", "plan.json", "--data", "d"], ["profile", "--model", "m", "-o", "p"],
                        ["evaluate", "--model", "m", "--data", "d"]):
            with self.subTest(command=command[0]):
                done = subprocess.run([FROSTPIPE, *command], cwd=self.folder, text=True, capture_output=True,
                                      timeout=HANG_SECONDS, preexec_fn=lambda: resource.setrlimit(kind, (value, value)))
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                self.assertRegex(done.stderr, "^frostpipe: " + says)
                self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_limit_of_open_files_that_is_too_low_is_said_before_anything_starts(self):
        self.assert_limit_is_said(resource.RLIMIT_NOFILE, 20,
                                  r"limit of open files \(ulimit -n\): must be at least \d+ .*, is 20$")

    def test_a_limit_of_memory_that_is_too_low_is_said_before_anything_starts(self):
        if "libasan" in libraries_of(FROSTPIPE):
            self.skipTest("the address sanitizer maps more memory than any limit allows")
        self.assert_limit_is_said(resource.RLIMIT_AS, 900 << 20,
                                  r"limit of memory that a process may map \(ulimit -v\): must be at least \d+ KiB .*, "
                                  "is 900 MiB$")

    def test_the_tool_without_its_executor_does_all_but_compute(self):
        """The tool runs alone, by a link, and without LibTorch."""
        alone = shutil.copy(FROSTPIPE, self.folder / "alone")
        (self.folder / "link").symlink_to(alone)
        libraries = libraries_of(alone)
        self.assertIn("libstdc++", libraries)
        for name in ("libtorch", "libCbc", "libssl", "libcrypto", "libcpp-httplib"):
            self.assertNotIn(name, libraries)
        done = subprocess.run([self.folder / "link", "schedule", "1F1B", "--format", "text"], stdout=subprocess.PIPE,
                              text=True, check=True,
                              timeout=HANG_SECONDS)
        self.assertEqual(done.stdout, self.run_tool("schedule", "1F1B", "--format", "text").stdout)
        refused = subprocess.run([alone, "evaluate", "--model", "m", "--data", "d"], stderr=subprocess.PIPE, text=True,
                                 timeout=HANG_SECONDS)
        self.assertEqual((refused.returncode, NO_EXECUTOR in refused.stderr), (1, True), refused.stderr)
        Path(f"{alone}-executor").write_text("no program")
        Path(f"{alone}-executor").chmod(0o755)
        refused = subprocess.run([alone, "evaluate", "--model", "m", "--data", "d"], stderr=subprocess.PIPE, text=True,
                                 timeout=HANG_SECONDS)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("alone-executor: cannot be started: Exec format error", refused.stderr)

    def test_a_command_whose_program_was_not_built_says_how_to_build_it(self):
        alone = shutil.copy(FROSTPIPE, self.folder / "alone")
        for name in ("serving", "nets", "bench"):
            done = subprocess.run([alone, name, "simulate"], stderr=subprocess.PIPE, text=True, timeout=HANG_SECONDS)
            self.assertEqual((done.returncode, done.stderr),
                             (1, f"frostpipe: frostpipe-{name} is not beside this program; build it: cmake --build "
                                 f"{self.folder.resolve()} --target frostpipe-{name}\n"))

    @unittest.skipUnless(shutil.which("ninja") and (BUILD / "build.ninja").exists(), "this is no build folder of ninja")
    def test_the_tool_is_built_without_serving_and_nets(self):
        """What scripts/quickstart builds. Oracle: ninja."""
        inputs = subprocess.run(["ninja", "-C", BUILD, "-t", "inputs", "frostpipe"], stdout=subprocess.PIPE, text=True,
                                check=True, timeout=HANG_SECONDS).stdout
        self.assertIn("planner", inputs)
        for part in ("serving", "operators/nets", "operators/executor", "operators/training", "operators/planner",
                     "papers"):
            self.assertNotIn(f"libfrostpipe_{part.replace('/', '_')}", inputs)

    def test_wrong_use_is_exit_code_2_with_a_hint(self):
        for arguments, says in [
            ([], "subcommand is required"),
            (["fly"], "there is no command 'fly'"),
            (["plan"], "needs --profile FILE and --cluster FILE, or --model NAME"),
            (["simulate"], "PLAN is required"),
            (["train", "--data", "d.tsv"], "; 'frostpipe plan' makes it, from what 'frostpipe profile' has measured"),
            (["serving", "run"], "; 'frostpipe serving plan' makes it, from what 'frostpipe profile' has measured"),
            (["simulate", "a.json", "--fast"], "--fast"),
            (["schedule", "Zigzag"], "Zigzag"),
            (["schedule", "1F1B", "--pp", "0"], "--pp"),
            (["schedule", "1F1B", "--pp", "two"], "two"),
            (["schedule", "1F1B", "--pp", "2", "--first-trainable-stage", "3"],
             "first trainable stage: must be >= 0 and < 2"),
            (["schedule", "DualPipeV", "--pp", "4", "--micro-batches", "7"], "must be >= 2 p"),
            (["schedule", "ZB-H9", "--format", "times"], "ZB-H9"),
            (["serving"], "subcommand is required"),
            (["schedule"], "--check FILE"),
            (["schedule", "1F1B", "--token-slices", "2"], "token slices: must be 1"),
            (["schedule", "1F1B", "--max-in-flight", "2"], "only AutoZeroBubble has it"),
            (["schedule", "1F1B", "--actions", "compute_comms", "--format", "svg"], "svg"),
            (["schedule", "1F1B", "--format", "xml"], "xml"),
            (["schedule", "1F1B", "--actions", "compute_comms"], "grid"),
            (["plan", "--profile", "p", "--cluster", "c", "--global-batch", "-4", "--method", "static", "-o", "x"],
             "-4"),
            (["plan", "--profile", "p", "--cluster", "c", "--global-batch", "4", "--method", "magic", "-o", "x"],
             "magic"),
            (["plan", "--profile", "p", "--cluster", "c", "--global-batch", "4", "--method", "static", "-o", "x",
              "--steps", "4", "--epochs", "2"], "--epochs"),
            (["plan", "--profile", "p", "--cluster", "c", "--global-batch", "4", "--method", "static", "-o", "x",
              "--freeze-set", "alpha=1"], "alpha must be a number > 0 and < 1, is 1"),
            (["profile", "--model", "m", "-o", "p.json", "--memory-limit", "much", "--cluster", "c"], "much"),
            (["compare", "plan.json"], "pairs of PLAN SUMMARY"),
        ]:
            with self.subTest(arguments):
                self.assert_refused(*arguments, code=2, says=[says, "--help'."])

    def test_a_missing_file_is_exit_code_1_and_named(self):
        self.assert_refused("simulate", "nowhere.json", says="nowhere.json: cannot be read: No such file or directory")
        self.assert_refused("report", "nowhere.json", "-o", "report.html", says="nowhere.json")

    def test_a_result_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([FROSTPIPE, "schedule", "1F1B"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=HANG_SECONDS)
        self.assertEqual(done.returncode, 1)
        self.assertIn("stdout", done.stderr)

    def test_closed_standard_streams_are_the_null_device(self):
        """Streams closed by `>&-`, `2>&-`, `<&-`. Files are written completely, and no other output gets into them."""
        expected = self.plan("expected.json", "static")
        for closed in ((1,), (2,), (0, 1, 2)):
            with self.subTest(closed):
                redirections = " ".join({0: "<&-", 1: ">&-", 2: "2>&-"}[stream] for stream in closed)
                done = subprocess.run(f'"{FROSTPIPE}" plan --profile profile.json --cluster cluster.json '
                                      f'--global-batch 64 --method static -o closed.json {redirections}',
                                      shell=True, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, timeout=HANG_SECONDS)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.read("closed.json"), self.read("expected.json"))
                self.assertEqual(done.stdout,
                                 "" if 1 in closed else expected.stdout.replace("expected.json", "closed.json"))

    def test_pipes_that_a_user_names_are_read_and_written(self):
        plan = (f'"{FROSTPIPE}" plan --profile profile.json --cluster cluster.json --global-batch 64 --method static '
                '--format json')

        def shell(command):
            return subprocess.run(["bash", "-c", command], cwd=self.folder, stdout=subprocess.PIPE, check=True,
                                  text=True, timeout=HANG_SECONDS).stdout
        self.plan("plan.json", "static")
        expected = self.run_tool("simulate", "plan.json").stdout
        simulate = f'"{FROSTPIPE}" simulate --profile profile.json --cluster cluster.json'
        self.assertEqual(shell(f"cat plan.json | {simulate} /dev/stdin").replace("/dev/stdin", "plan.json"), expected)
        self.assertEqual(shell(f"{simulate} <(cat plan.json)").partition("\n")[2], expected.partition("\n")[2])
        through = json.loads(shell(f"{plan} -o >(cat > through.json) > /dev/null; wait $!; cat through.json"))
        self.assertEqual(through["phases"], self.read("plan.json")["phases"])
        self.assertIn("frostpipe.plan", shell(f"{plan} -o /dev/stdout | head -3"))
        links = (f'timeout 20 "{FROSTPIPE}" profile --like vit-b16 --global-batch 64 --nproc-per-node 2 '
                 '-o into-a-pipe.json --cluster /dev/stdout')
        self.assertIn("frostpipe.cluster", shell(f"set -o pipefail; {links} | cat"))
        self.assertTrue(Path("/dev/stdout").is_symlink())

    def test_no_name_commands_the_terminal(self):
        """Control characters, of one byte and of two, and bytes that are not UTF-8 become U+FFFD; everything else is
        unchanged."""
        for name, shown in [("a\x1b]0;b\x07c", "a\ufffd]0;b\ufffdc"), ("a\x9b31mb\x7f", "a\ufffd31mb\ufffd"),
                            (b"a\xffb\xc3", "a\ufffdb\ufffd"),
                            ("gr\u00fc\u00dfe \u2192 \u754c \U0001f600", "gr\u00fc\u00dfe \u2192 \u754c \U0001f600")]:
            with self.subTest(shown):
                name = os.fsdecode(name)
                self.assertIn(f"frostpipe: {shown}: cannot be read", self.run_tool("simulate", name, code=1).stderr)
                self.assertIn(shown, self.plan(name, "static").stdout)

    def test_a_written_file_replaces_a_link_and_leaves_its_target(self):
        self.write("secret", "somebody's")
        (self.folder / "plan.json").symlink_to("secret")
        self.plan("plan.json", "static")
        self.assertEqual((self.folder / "secret").read_text(), "somebody's")
        self.assertFalse((self.folder / "plan.json").is_symlink())


if __name__ == "__main__":
    unittest.main()
