import json
import os
import re
import resource
import shutil
import subprocess
import unittest
import xml.etree.ElementTree
from pathlib import Path

from support import FROSTPIPE, HANG_SECONDS, NO_EXECUTOR, CliTest, has_executor

COMMANDS = ["profile", "plan", "simulate", "train", "evaluate", "compare", "report", "schedule", "bench",
            "doctor"]


def libraries_of(program):
    """The libraries that the loader loads for a program."""
    return subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True, timeout=HANG_SECONDS).stdout


class UsageTest(CliTest):
    def test_every_command_explains_itself_with_an_example(self):
        for command in COMMANDS:
            with self.subTest(command):
                done = self.run_tool(command, "--help")
                self.assertEqual(done.stderr, "")
                self.assertIn("--format", done.stdout)
                self.assertIn(f"Example:\n  frostpipe {command} ", done.stdout)

    def test_help_lists_every_command(self):
        text = self.run_tool("--help").stdout
        for command in [*COMMANDS, "launch"]:
            self.assertIn(command, text)

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

    def test_what_was_meant_is_suggested(self):
        for arguments, says in [
            (["tran"], "there is no command 'tran'; did you mean 'train'?"),
            (["eval"], "there is no command 'eval'; did you mean 'evaluate'?"),
            (["schedule", "1F1B", "--fromat", "text"], "did you mean '--format'?"),
            (["schedule", "1F1B", "--fromat=text"], "did you mean '--format'?"),
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
        self.assertNotIn("libtorch", libraries)
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

    def test_wrong_use_is_exit_code_2_with_a_hint(self):
        for arguments, says in [
            ([], "subcommand is required"),
            (["fly"], "there is no command 'fly'"),
            (["plan"], "--cluster is required"),
            (["simulate"], "PLAN is required"),
            (["simulate", "a.json", "--fast"], "--fast"),
            (["schedule", "Zigzag"], "Zigzag"),
            (["schedule", "1F1B", "--pp", "0"], "--pp"),
            (["schedule", "1F1B", "--pp", "two"], "two"),
            (["schedule", "1F1B", "--pp", "2", "--first-trainable-stage", "3"],
             "first trainable stage: must be >= 0 and < 2"),
            (["schedule", "DualPipeV", "--pp", "4", "--micro-batches", "7"], "must be >= 2 p"),
            (["simulate", "--schedule", "ZB-H9"], "ZB-H9"),
            (["simulate", "plan.json", "--schedule", "ZB-H1"], "--schedule NAME instead of it"),
            (["schedule"], "--check FILE"),
            (["schedule", "1F1B", "--token-slices", "2"], "token slices: must be 1"),
            (["schedule", "1F1B", "--max-in-flight", "2"], "AutoZeroBubble only"),
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
              "--freeze-alpha", "1"], "must be a number > 0 and < 1, is 1"),
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

    def test_what_is_written_replaces_a_link_and_leaves_its_target(self):
        self.write("secret", "somebody's")
        (self.folder / "plan.json").symlink_to("secret")
        self.plan("plan.json", "static")
        self.assertEqual((self.folder / "secret").read_text(), "somebody's")
        self.assertFalse((self.folder / "plan.json").is_symlink())


class ScheduleTest(CliTest):
    def test_1f1b_as_text(self):
        done = self.run_tool("schedule", "1F1B", "--pp", 2, "--micro-batches", 3, "--format", "text")
        self.assertEqual(done.stdout, "rank 0: 0F0 0F1 0B0 0F2 0B1 0B2\nrank 1: 1F0 1B0 1F1 1B1 1F2 1B2\n")
        self.assertEqual(done.stderr, "")

    def test_names_in_any_case(self):
        for name in ("gpipe", "GPipe"):
            done = self.run_tool("schedule", name, "--pp", 2, "--micro-batches", 2, "--format", "csv")
            self.assertEqual([line.split(",")[:3] for line in done.stdout.split()],
                             [["0F0", "0F1", "0B0"], ["1F0", "1F1", "1B0"]])

    def test_frozen_stages_run_forward_only(self):
        done = self.run_tool("schedule", "1F1B", "--pp", 2, "--micro-batches", 2, "--first-trainable-stage", 1,
                             "--format", "text", "--actions", "compute_comms")
        self.assertIn("rank 0: 0F0 0SEND_F0 0F1 0SEND_F1\n", done.stdout)

    def test_grid_is_the_default(self):
        self.assertIn("rank 1", self.run_tool("schedule", "GPipe", "--pp", 2).stdout)

    def test_schedule_check(self):
        made = self.run_tool("schedule", "ZBVZeroBubble", "--pp", 2, "--micro-batches", 3, "--actions", "compute_comms",
                             "--format", "csv").stdout
        (self.folder / "zbv.csv").write_text(made)
        self.assertIn("valid compute_comms with 2 ranks, 4 stages, 3 micro-batches",
                      self.run_tool("schedule", "--check", "zbv.csv").stdout)
        self.assertEqual(self.run_tool("schedule", "zbv.csv", "--format", "csv", "--actions", "compute_comms").stdout,
                         made)
        self.assert_refused("schedule", "zbv.csv", "--pp", 3, code=2, says="zbv.csv: says itself how many ranks")
        (self.folder / "stuck.csv").write_text("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n")
        self.assert_refused("schedule", "--check", "stuck.csv", code=1,
                            says=["wait for each other forever", "1RECV_F1", "waits for"])
        (self.folder / "twice.csv").write_text("0F0,0F1,,0F2,0F3,0F3\n1F0,1F1,1F2,1F3,1B0,1B1,1B2,1B3\n")
        self.assert_refused("schedule", "--check", "twice.csv", code=1,
                            says="pipeline rank 0, compute action 5: 0F3 stands twice (first: compute action 4)")
        self.assert_refused("schedule", "--check", "nowhere.csv", code=1, says="nowhere.csv")
        (self.folder / "one.csv").write_text("0F0,0B0\n")
        self.assertEqual(self.run_tool("schedule", "--check", "one.csv").stdout,
                         "one.csv: valid compute_only with 1 rank, 1 stage, 1 micro-batch\n")
        (self.folder / "frozen.csv").write_text("0F0\n1F0,1B0\n")
        self.assertIn(", the first stage frozen\n", self.run_tool("schedule", "--check", "frozen.csv").stdout)

    def test_what_a_check_would_not_look_at_is_wrong_use(self):
        (self.folder / "mine.csv").write_text("0F0,0B0\n")
        for shape in (["--pp", 3], ["--micro-batches", 2], ["--virtual-stages", 2], ["--max-in-flight", 3]):
            self.assert_refused("schedule", "--check", "mine.csv", *shape, code=2,
                                says="mine.csv: says itself how many ranks")
        for name in ("mine.csv", "1F1B"):
            for shown in (["--format", "grid"], ["--actions", "compute_only"]):
                self.assert_refused("schedule", "--check", name, *shown, code=2,
                                    says=f"{shown[0]}: is for a schedule that is shown, not for --check")
        for arguments in (["schedule", "--check", "1F1X"], ["schedule", "1F1X"], ["simulate", "--schedule", "1F1X"]):
            self.assert_refused(*arguments, code=2, says=["must be one of GPipe, 1F1B", "AutoZeroBubble", "\"1F1X\""])

    def test_a_check_compares_the_order_of_messages(self):
        # Rank 1 receives its second activation first. Matched by name each message finds its receive, by order none
        # does.
        (self.folder / "crossed.csv").write_text(
            "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
            "1RECV_F1,1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n")
        verdict = self.run_tool("schedule", "--check", "crossed.csv").stdout.splitlines()
        self.assertEqual(verdict[0], "crossed.csv: valid compute_comms with 2 ranks, 2 stages, 2 micro-batches")
        self.assertIn("PyTorch matches messages between two ranks by their order: number 1 of those from rank 0 to "
                      "rank 1 is 0SEND_F0, which 1RECV_F1 would take", verdict[1])
        mended = self.run_tool("schedule", "crossed.csv", "--actions", "compute_comms", "--format", "csv").stdout
        (self.folder / "mended.csv").write_text(mended)
        self.assertEqual(len(self.run_tool("schedule", "--check", "mended.csv").stdout.splitlines()), 1)
        messages = lambda text: re.findall(r"\d+(?:SEND|RECV)_[FB]\d+", text)
        shape = ["--pp", 2, "--micro-batches", 4, "--actions", "compute_comms"]
        for name in ("Interleaved1F1B", "ZBVZeroBubble", "DualPipeV", "LoopedBFS"):
            csv = self.run_tool("schedule", name, *shape, "--format", "csv").stdout
            (self.folder / "made.csv").write_text(csv)
            self.assertNotIn("PyTorch", self.run_tool("schedule", "--check", "made.csv").stdout)
            text = self.run_tool("schedule", name, *shape, "--format", "text").stdout
            self.assertEqual([messages(line) for line in text.splitlines()],
                             [messages(line) for line in csv.splitlines()])

    def test_blocking_sends_are_proven_or_their_cycle_is_shown(self):
        def verdict(*arguments):
            return self.run_tool("schedule", "--check", *arguments, "--blocking-sends").stdout.splitlines()[1]

        self.assertEqual(verdict("InterleavedZeroBubble", "--pp", 8, "--micro-batches", 32, "--virtual-stages", 4),
                         "InterleavedZeroBubble: blocking sends cannot deadlock; rank 0 posts up to 5 receives of "
                         "activations from rank 7 ahead, no rank more")
        self.assertIn("blocking sends cannot deadlock; rank 0 posts up to 2", verdict("autozerobubble"))
        self.assertIn("blocking sends cannot deadlock; rank 0 posts up to 2", verdict("PipeDream-2BW"))
        self.assertIn("there are none", verdict("GPipe", "--pp", 1))
        for name in ("1F1B", "PipeDream-2BW"):
            (self.folder / "made.csv").write_text(self.run_tool("schedule", name, "--actions", "compute_comms",
                                                                "--format", "csv").stdout)
            self.assertEqual(verdict("made.csv"),
                             "made.csv: blocking sends cannot deadlock; each receive is posted where it stands")
        (self.folder / "at_use.csv").write_text("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                                                "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n")
        self.assertIn("valid compute_comms", self.run_tool("schedule", "--check", "at_use.csv").stdout)
        self.assert_refused("schedule", "--check", "at_use.csv", "--blocking-sends", code=1,
                            says=["at_use.csv: blocking sends deadlock where the receives stand",
                                  "0SEND_F1 (pipeline rank 0, after compute action 2) waits for 1RECV_F1"])
        self.assert_refused("schedule", "1F1B", "--blocking-sends", code=2, says="needs --check")
        self.assert_refused("schedule", "--check", "ZB-H2", "--pp", 8, code=2, says="must be >= 2 p - 1")

    def test_schedule_as_a_picture(self):
        svg = self.run_tool("schedule", "Seq1F1B", "--pp", 2, "--micro-batches", 2, "--format", "svg").stdout
        root = xml.etree.ElementTree.fromstring(svg)  # well-formed
        boxes = list(root.iter("{http://www.w3.org/2000/svg}g"))
        self.assertEqual(len(boxes), 2 * 2 * 4 * 2)  # ranks x micro-batches x slices x (F, B)


if __name__ == "__main__":
    unittest.main()
