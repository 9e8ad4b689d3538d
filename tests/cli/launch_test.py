"""`launch` prints commands. Oracle: bash runs them with a script in place of the tool, which records the variables and
arguments of each rank. They must be the ranks of the plan, by the nodes of its cluster, with the given arguments."""

import os
import re
import signal
import subprocess
import time
import unittest
from pathlib import Path

from support import HANG_SECONDS, CliTest, synthetic_cluster

HOSTS = ("--hosts", "127.0.0.1,127.0.0.2")
DATA = ("--", "--data", "d")
WORDS = ("--data", "my data.tsv", "--name", "it's $HOME")

# Replaces the tool: records its rank and its arguments.
STAND_IN = """#!/bin/sh
{ echo "$RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT"; printf '%s\\n' "$@"; } > "$TOLD/$RANK"
"""


class LaunchTest(CliTest):
    def setUp(self):
        super().setUp()
        self.plan_for("plan.json", [0, 0, 1, 1])

    def plan_for(self, output, nodes, type_="cpu"):
        cluster = synthetic_cluster(len(nodes), memory_limit_mib=2000)
        for device, node in zip(cluster["devices"], nodes):
            device["node"] = node
        self.write("cluster.json", cluster)
        self.plan(output, "data-parallel", "--threads-per-rank", 1)
        if type_ != "cpu":
            for device in cluster["devices"]:
                device["type"] = type_
            self.write("cluster.json", cluster)
            self.edit(output, lambda plan: plan["provenance"].update(cluster_fingerprint=""))

    def launch(self, *options, words=WORDS):
        return self.run_tool("launch", *options, "--", *words).stdout

    def with_tool(self, script):
        """The environment in which `script` is the tool."""
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "frostpipe").write_text(script)
        (tools / "frostpipe").chmod(0o755)
        return {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}

    def run_lines(self, lines):
        """Runs each command in its own bash, and returns the records by rank."""
        told = self.folder / "told"
        told.mkdir()
        environment = {**self.with_tool(STAND_IN), "TOLD": str(told)}
        for line in lines:
            subprocess.run(["bash", "-c", line], cwd=self.folder, env=environment, check=True, timeout=HANG_SECONDS)
        return {int(file.name): file.read_text().splitlines() for file in told.iterdir()}

    def assert_read_by_bash(self, text):
        done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), text)

    def test_bash_reads_every_kind(self):
        for launcher, hosts in [("slurm", ()), ("torchrun", HOSTS), ("mpirun", HOSTS), ("by-hand", HOSTS)]:
            with self.subTest(launcher):
                text = self.launch(launcher, *hosts, "plan.json")
                self.assert_read_by_bash(text)
                self.assertIn("frostpipe train plan.json --data 'my data.tsv'", text)

    def test_by_hand_every_rank_gets_its_variables(self):
        lines = self.launch("by-hand", *HOSTS, "plan.json").splitlines()
        self.assertEqual(lines[::2], ["# on 127.0.0.1", "# on 127.0.0.2"])
        told = self.run_lines(lines[1::2])
        self.assertEqual(told, {rank: [f"{rank} {rank % 2} 4 127.0.0.1 29500", "train", "plan.json", *WORDS]
                                for rank in range(4)})

    def test_by_hand_with_other_numbers_of_ranks(self):
        self.plan_for("uneven.json", [0, 1, 1, 2])
        lines = self.launch("by-hand", "--hosts", "a,b,c", "uneven.json").splitlines()
        told = self.run_lines(lines[1::2])
        self.assertEqual({rank: words[0] for rank, words in told.items()},
                         {0: "0 0 4 a 29500", 1: "1 0 4 a 29500", 2: "2 1 4 a 29500", 3: "3 0 4 a 29500"})

    def test_by_hand_control_c_ends_the_ranks_of_a_host(self):
        line = self.launch("by-hand", *HOSTS, "plan.json").splitlines()[1]
        environment = self.with_tool("#!/bin/sh\necho $$ >> ranks\nexec sleep 60\n")
        host = subprocess.Popen(["bash", "-c", line], cwd=self.folder, env=environment, start_new_session=True)
        self.addCleanup(host.kill)
        ranks = self.folder / "ranks"
        while not ranks.exists() or ranks.read_text().count("\n") < 2:
            self.assertIsNone(host.poll())
        os.killpg(host.pid, signal.SIGINT)
        self.assertNotEqual(host.wait(30), 0)  # and not only after 60 s
        until = time.monotonic() + 30
        while any(Path(f"/proc/{rank}").exists() for rank in ranks.read_text().split()):
            self.assertLess(time.monotonic(), until)

    def test_slurms_script_asks_for_the_nodes_and_ranks_of_the_plan(self):
        script = self.launch("slurm", "plan.json")
        asked = dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)$", script, re.MULTILINE))
        self.assertEqual(asked, {"nodes": "2", "ntasks-per-node": "2", "cpus-per-task": "1", "open-mode": "append"})
        self.assertTrue(script.startswith("#!/bin/bash\n"))

    def test_ranks_that_outlive_any_host_but_the_first_are_left_alone(self):
        """Data-parallel ranks can outlive the second host. The second stage of pipeline.json is only on that one,
        and its first only on the first."""
        self.edit("plan.json", lambda plan: plan["phases"][0]["layout"].update(placement=[3, 1, 2, 0]))
        pipeline = self.read("plan.json")
        pipeline["phases"][0]["layout"].update(pipeline_parallel_size=2, data_parallel_size=2, placement=[])
        layers = pipeline["phases"][0]["partition"][0]["end"]
        pipeline["phases"][0]["partition"] = [{"begin": 0, "end": 1}, {"begin": 1, "end": layers}]
        pipeline["phases"][0]["predicted"]["peak_memory_bytes"] = []
        self.write("pipeline.json", pipeline)
        pipeline["phases"][0]["layout"]["placement"] = [0, 2, 1, 3]
        self.write("apart.json", pipeline)
        for plan, words, outlives in (("plan.json", WORDS, True), ("apart.json", WORDS, True),
                                      ("plan.json", (*WORDS, "--max-restarts", "0"), False),
                                      ("pipeline.json", WORDS, False)):
            with self.subTest(plan=plan, words=words):
                script = self.launch("slurm", plan, words=words)
                self.assertEqual("#SBATCH --no-kill\nsrun --no-kill --kill-on-bad-exit=0 " in script, outlives)
                self.assertEqual("srun --kill-on-bad-exit=1 " in script, not outlives)

    def test_slurm_gives_gpus_where_the_plan_is_for_gpus(self):
        self.plan_for("gpus.json", [0, 0, 1, 1], "cuda")
        self.assert_refused("launch", "slurm", "gpus.json", "--", "--data", "d",
                            says=["--device: must be cuda (after --): gpus.json is for cuda, is cpu"])
        self.assertIn("#SBATCH --gpus-per-node=2\n",
                      self.launch("slurm", "gpus.json", words=("--data", "d", "--device", "cuda")))

    def test_a_rehearsal_of_a_plan_for_gpus_needs_none(self):
        self.plan_for("gpus.json", [0, 0, 1, 1], "cuda")
        script = self.launch("slurm", "gpus.json", words=("--device", "emulated", "--emulated-links"))
        self.assertNotIn("gpus-per-node", script)
        self.assertIn("frostpipe train gpus.json --device emulated --emulated-links\n", script)

    def test_hosts_may_be_ipv6_addresses_where_they_can_be_told_apart(self):
        lines = self.launch("by-hand", "--hosts", "fd00::1,fd00::2", "plan.json").splitlines()
        told = self.run_lines(lines[1::2])
        self.assertEqual(told[2][0], "2 0 4 fd00::1 29500")
        self.assertIn("--master-addr fd00::1 ", self.launch("torchrun", "--hosts", "fd00::1,fd00::2", "plan.json"))
        self.assert_refused("launch", "mpirun", "--hosts", "fd00::1,fd00::2", "plan.json", "--", "--data", "d",
                            code=2, says=["--hosts: mpirun takes no IPv6 addresses; give names"])

    def test_another_cluster_says_which_ranks_share_a_node(self):
        self.write("other.json", synthetic_cluster(4))
        self.edit("other.json", lambda cluster: cluster["devices"][3].update(node=1))
        lines = self.launch("torchrun", *HOSTS, "plan.json", words=("--data", "d", "--cluster", "other.json"))
        self.assertEqual(re.findall(r"--nproc-per-node (\d)", lines), ["3", "1"])

    def test_a_plan_for_one_node_needs_no_launcher(self):
        self.plan_for("one.json", [0, 0])
        for launcher, hosts in [("slurm", ()), ("by-hand", ("--hosts", "a"))]:
            self.assert_refused("launch", launcher, *hosts, "one.json", "--", "--data", "d",
                                says=["one.json: its cluster is one node, on which `frostpipe train one.json` starts"])

    def test_slurm_takes_no_nodes_of_different_sizes(self):
        self.plan_for("uneven.json", [0, 1, 1])
        self.assert_refused("launch", "slurm", "uneven.json", "--", "--data", "d",
                            says=["uneven.json: ranks of its nodes: must be as many on every node for slurm; "
                                  "torchrun, mpirun and by-hand take any, is 1, 2"])

    def test_torchrun_with_hosts_that_may_be_lost_numbers_none_of_them(self):
        text = self.launch("torchrun", *HOSTS, "--min-hosts", 1, "plan.json")
        self.assert_read_by_bash(text)
        lines = text.splitlines()[1::2]
        self.assertEqual(lines[0], lines[1])
        self.assertRegex(lines[0], "--nnodes 1:2 --nproc-per-node 2 --max-restarts 3 --rdzv-backend c10d "
                                   "--rdzv-endpoint 127.0.0.1:29500 frostpipe train plan.json")

    def test_wrong_use(self):
        for arguments, says in [
            (["plan.json"], "LAUNCHER: plan.json not in {slurm,torchrun,mpirun,by-hand}"),
            (["mpirun", "plan.json", *DATA],
             "launch mpirun: needs --hosts with 2 names, one for each node of plan.json; there are 0"),
            (["mpirun", "--hosts", "a", "plan.json", *DATA], "there is 1"),
            (["mpirun", "--hosts", "a,;rm", "plan.json"], "';rm' is not the name of a host"),
            (["slurm", "--hosts", "a,b", "plan.json", *DATA], "--hosts: slurm takes none"),
            (["mpirun", "--hosts", "a,b", "--min-hosts", "1", "plan.json", *DATA],
             "--min-hosts: must be left out with mpirun; only torchrun goes on with fewer hosts"),
            (["torchrun", "--hosts", "a,b", "--min-hosts", "3", "plan.json", *DATA],
             "--min-hosts: must be at most 2, the number of hosts, is 3"),
            (["slurm", "plan.json", "--", "--dta", "d"], "options of train (after --): "),
            (["slurm", "plan.json", "--", "--help"], "options of train (after --): The following argument was not "
                                                       "expected: --help"),
            (["slurm", "plan.json"], "--data: is required"),
            (["slurm", "plan.json", *DATA, "--emulated-links"], "--emulated-links: need --device emulated"),
            (["slurm", "plan.json", *DATA, "--freeze", "papr"], "papr"),
        ]:
            with self.subTest(arguments):
                self.assert_refused("launch", *arguments, code=2, says=[says])


if __name__ == "__main__":
    unittest.main()
