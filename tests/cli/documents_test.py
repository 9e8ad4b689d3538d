"""The examples of the documents run unchanged; for those that would train, the test checks that their options exist."""

import re
import shlex
import subprocess
import unittest
from pathlib import Path

from support import (FROSTPIPE, HANG_SECONDS, CliTest, measure_slices, synthetic_cluster, synthetic_profile,
                     synthetic_run, synthetic_serving_plan)

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
UNKNOWN = "--no-such-option"

GPT2 = {"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16, "n_positions": 1024, "vocab_size": 50257}
BERT = {"model_type": "bert", "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 128, "type_vocab_size": 2}


def code_blocks(page):
    """Blocks that are indented by four columns, without the indentation."""
    blocks, block, fenced = [], [], False
    for line in [*page.read_text().splitlines(), ""]:
        fenced ^= line.startswith("```")
        if line.startswith("    ") and not fenced:
            block.append(line[4:])
        elif block:
            blocks.append("\n".join(block))
            block = []
    return blocks


def examples(page):
    """The arguments of every command of the tool in the page's code blocks."""
    text = "\n".join(code_blocks(page)).replace("\\\n", " ")
    lines = (re.match(r"\s*build(?:-core)?/frostpipe (.*)", line) for line in text.splitlines())
    return [shlex.split(line.group(1), comments=True) for line in lines if line]


def would_compute(arguments):
    """Tells whether a command trains, measures on ranks, needs data that tests do not have, or serves without an
    end."""
    command = arguments[0]
    return (command in ("train", "evaluate", "bench", "inspect", "doctor")
            or (command == "profile" and "--like" not in arguments)
            or (arguments[:2] == ["serving", "run"] and "--seconds" not in arguments))


class DocumentsTest(CliTest):
    def prepare(self):
        """The files that the pages assume: a profile, a cluster, plans, runs that followed them, a configuration."""
        self.write("my/profile.json", synthetic_profile())
        self.write("my/cluster.json", synthetic_cluster())
        self.write("my/four.json", synthetic_cluster(4))
        causal = synthetic_profile()
        measure_slices(causal)
        causal["model"]["layers"][0]["parameter_count"] //= 2  # an equal split fits
        self.write("my/gpt2.json", causal)
        self.write("config.json", BERT)
        self.write("gpt24.json", GPT2)
        self.write("my/serving.json", synthetic_serving_plan())
        self.write("my/arrivals.csv", "TIMESTAMP,tokens\n2023-11-16 18:17:03.98,8\n2023-11-16 18:17:04.03,9\n")
        for method, plan, run in (("static", "my/static.json", "runs/static"),
                                  ("pipetransformer", "my/elastic.json", "runs/mine")):
            for output in (plan, f"{run}/executed_plan.json"):
                self.run_tool("plan", "--profile", "my/profile.json", "--cluster", "my/cluster.json",
                              "--global-batch", 64, "--method", method, "-o", output)
            self.write("simulated.json", self.run_tool("simulate", plan, "--format", "json").stdout)
            self.write(f"{run}/summary.json", synthetic_run(self.read(plan), self.read("simulated.json")))
        self.write("gpt4.json", {**GPT2, "n_embd": 128, "n_layer": 4, "n_head": 4, "n_positions": 128})
        self.run_tool("profile", "--like", "gpt4.json", "--tensor-parallel", "1,2", "--nproc-per-node", 2,
                      "--cluster", "pair.json", "-o", "gpt2.json")
        self.run_tool("profile", "--like", "gpt4.json", "--tensor-parallel", "1,2,4", "--sequence-parallel",
                      "--nproc-per-node", 4, "--cluster", "four.json", "-o", "wide.json")
        two_hosts = synthetic_cluster(4)
        for rank, device in enumerate(two_hosts["devices"]):
            device["node"] = rank // 2
        self.write("my/two_hosts_cluster.json", two_hosts)
        self.run_tool("plan", "--profile", "my/profile.json", "--cluster", "my/two_hosts_cluster.json",
                      "--global-batch", 64, "--method", "static", "-o", "my/two_hosts.json")
        self.run_tool("profile", "--like", "config.json", "--hardware", "A100", "--nproc-per-node", 8,
                      "--cluster", "cluster.json", "-o", "profile.json")
        self.run_tool("plan", "--profile", "profile.json", "--cluster", "cluster.json", "--global-batch", 64,
                      "-o", "plan.json")
        self.write("mixed.json", next(block for block in code_blocks(ROOT / "docs/serving.md")
                                      if '"format": "frostpipe.cluster"' in block))

    def make_up_run(self, arguments):
        """A run that followed its plan, in place of `train`, for the following commands of the page."""
        plan, folder = arguments[1], arguments[arguments.index("-o") + 1] if "-o" in arguments else ""
        if not folder or not (self.folder / plan).exists() or (self.folder / folder / "summary.json").exists():
            return
        self.write("simulated.json", self.run_tool("simulate", plan, "--format", "json").stdout)
        self.write(f"{folder}/summary.json", synthetic_run(self.read(plan), self.read("simulated.json")))
        self.write(f"{folder}/executed_plan.json", self.read(plan))

    def check_usage(self, arguments):
        """The command has every option: with an unknown one added, it complains only about that one."""
        done = subprocess.run([FROSTPIPE, *arguments, UNKNOWN], cwd=self.folder, text=True, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=HANG_SECONDS)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"The following argument was not expected: {UNKNOWN}\n", done.stderr)

    def test_every_example_of_the_pages_works(self):
        self.prepare()
        found = 0
        for page in PAGES:
            for arguments in examples(page):
                with self.subTest(page=str(page.relative_to(ROOT)), command=" ".join(arguments)):
                    found += 1
                    if would_compute(arguments):
                        self.check_usage(arguments)
                        if arguments[0] == "train":
                            self.make_up_run(arguments)
                    elif ">" in arguments:
                        cut = arguments.index(">")
                        self.write(arguments[cut + 1], self.run_tool(*arguments[:cut]).stdout)
                    else:
                        self.run_tool(*arguments)
        self.assertGreater(found, 40)

    def test_the_schedule_is_printed_as_the_page_shows_it(self):
        shown = [block for block in code_blocks(ROOT / "docs/schedules.md") if block.startswith("1F1B: 4 stages")]
        printed = self.run_tool("schedule", "1F1B", "--pp", 4, "--micro-batches", 8).stdout
        self.assertEqual([line.rstrip() for line in printed.splitlines()], shown[0].splitlines())

    def test_the_csv_of_a_schedule_is_the_one_of_the_page(self):
        csv = self.run_tool("schedule", "1F1B", "--pp", 2, "--micro-batches", 3, "--format", "csv").stdout
        self.assertIn(csv.rstrip(), code_blocks(ROOT / "docs/file_formats.md"))

    def test_launch_prints_the_commands_of_the_page(self):
        self.prepare()
        page = ROOT / "docs/several_hosts.md"
        shown = [block.replace("\\\n  ", "") for block in code_blocks(page)]
        for launcher in ("slurm", "torchrun", "--min-hosts", "mpirun", "by-hand"):
            arguments = next(one for one in examples(page) if launcher in one)
            printed = self.run_tool(*arguments[:arguments.index(">") if ">" in arguments else None]).stdout
            self.assertIn(printed.rstrip(), shown)

    def example_file(self, format_name):
        return next(block for block in code_blocks(ROOT / "docs/file_formats.md")
                    if f'"format": "frostpipe.{format_name}"' in block)

    def test_example_files_are_read(self):
        self.write("example.json", self.example_file("cluster"))
        self.run_tool("plan", "--profile", "profile.json", "--cluster", "example.json", "--global-batch", 64,
                      "-o", "plan.json")
        self.write("hardware.json", self.example_file("hardware"))
        self.run_tool("profile", "--like", "vit-b16", "--hardware", "hardware.json", "-o", "vit.json")


if __name__ == "__main__":
    unittest.main()
