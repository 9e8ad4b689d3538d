"""Ranks under another launcher, started as by torchrun."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS, processes_naming
from faults import LIMIT_SECONDS, FaultTest, free_port
from listening_sockets import listening_sockets


class TorchrunTest(FaultTest):
    """Ranks under another launcher."""

    def test_trains_to_the_end(self):
        ranks = self.start_ranks("pipetransformer.json", "--epochs", 6)
        for rank in ranks:
            self.assertEqual(rank.ended_within(HANG_SECONDS), 0, rank.stderr)
        self.assertEqual(self.read("run/summary.json")["num_steps"], 60)
        self.assertIn("accuracy", ranks[0].stdout)
        self.assertEqual(ranks[1].stdout, "")
        self.assertEqual(ranks[1].stderr, "")

    def kill_rank(self, plan, victim):
        ranks = self.start_ranks(plan)
        survivor = ranks[1 - victim]
        os.kill(ranks[victim].pid, signal.SIGKILL)
        ranks[victim].process.wait()
        self.assertEqual(survivor.ended_within(LIMIT_SECONDS), 1, survivor.stderr)
        self.assert_said(survivor, rf"rank {1 - victim}\b.*rank {victim}\b")
        self.assert_no_process_within(1)

    def test_kill_rank_1_of_a_pipeline(self):
        self.kill_rank("static.json", 1)

    def test_kill_rank_0_of_a_pipeline(self):
        self.kill_rank("static.json", 0)

    def test_kill_a_replica(self):
        self.kill_rank("data-parallel.json", 1)

    def test_kill_the_first_replica(self):
        self.kill_rank("data-parallel.json", 0)

    def test_a_world_of_another_size(self):
        arguments = self.train_arguments("static.json", "run")
        port = free_port()
        ranks = [self.start(*arguments, name=f"rank{rank}", RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=3,
                            LOCAL_WORLD_SIZE=3, MASTER_ADDR="127.0.0.1", MASTER_PORT=port) for rank in range(3)]
        for rank in ranks:
            self.assertEqual(rank.ended_within(HANG_SECONDS), 1, rank.stderr)
            self.assertEqual(rank.stderr, "frostpipe: static.json: world_size: must equal the number of ranks started "
                                          "(3), is 2\n")

    def test_variables_that_are_no_numbers_or_missing(self):
        good = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29500}
        for name, value in [("RANK", "first"), ("WORLD_SIZE", "-2"), ("MASTER_PORT", ""), ("MASTER_PORT", "70000"),
                            ("LOCAL_RANK", None),
                            ("WORLD_SIZE", None), ("RANK", "2")]:
            with self.subTest(name=name, value=value):
                variables = {**good, name: value}
                environment = self.environment(**{key: v for key, v in variables.items() if v is not None})
                done = self.run_tool(*self.train_arguments("static.json", "run"), environment=environment, code=1)
                self.assertIn(name, done.stderr)
                self.assertIn("not set" if value is None else value, done.stderr)


class OtherLaunchersTest(FaultTest):
    """Two ranks with the variables of srun and of mpirun. Oracle: the losses of ranks that `train` starts itself."""

    STEPS = 20

    def variables(self, launcher, rank, job):
        return {"srun": {"SLURM_PROCID": rank, "SLURM_STEP_NUM_TASKS": 2, "SLURM_LOCALID": rank, "SLURM_STEP_ID": 0,
                         "SLURM_STEP_NUM_NODES": 1, "SLURM_STEP_NODELIST": "n1", "SLURM_JOB_ID": job},
                "mpirun": {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": 2,
                           "OMPI_COMM_WORLD_LOCAL_RANK": rank, "OMPI_COMM_WORLD_LOCAL_SIZE": 2,
                           "PMIX_NAMESPACE": job},
                "mpiexec": {"PMI_RANK": rank, "PMI_SIZE": 2, "MPI_LOCALRANKID": rank, "MPI_LOCALNRANKS": 2,
                            "MASTER_PORT": job}}[launcher]

    def test_trains_as_under_our_launcher(self):
        self.of_length("static.json", self.STEPS)
        ours = self.train("static.json", "ours")
        for launcher, more in (("srun", {}), ("srun", {"GLOO_SOCKET_IFNAME": "127.0.0.3"}), ("mpirun", {}),
                               ("mpiexec", {})):
            with self.subTest(launcher=launcher, more=more):
                job = free_port()  # so that no two runs meet
                run = "-".join([launcher, *more])
                ranks = [self.start(*self.train_arguments("static.json", run), name=f"{run}{rank}",
                                    **self.variables(launcher, rank, job), **more) for rank in (0, 1)]
                for rank in ranks:
                    self.assertEqual(rank.ended_within(HANG_SECONDS), 0, rank.stderr)
                    self.assert_clean(rank)
                self.assertEqual(self.losses(self.read(f"{run}/summary.json")), self.losses(ours))
                self.assertIn("accuracy", ranks[0].stdout)
                self.assertEqual(ranks[1].stdout, "")

    def test_one_task_of_srun_starts_ranks_of_its_own(self):
        self.of_length("static.json", self.STEPS)
        task = {**self.variables("srun", 0, job=1), "SLURM_STEP_NUM_TASKS": 1}
        done = self.run_tool(*self.train_arguments("static.json", "run"), environment=self.environment(**task))
        self.assertIn("accuracy", done.stdout)
        self.assertEqual(self.read("run/summary.json")["num_steps"], self.STEPS)


class LoopbackHostsTest(FaultTest):
    """Loopback addresses emulate hosts. Oracle: our launcher with the same number of virtual nodes."""

    def train_at(self, plan, master_address, options_of_ranks):
        """The run's losses; checks that its ports were open only at the expected addresses."""
        port = free_port()
        ranks = [self.start(*self.train_arguments(plan, "run", *options), name=f"rank{rank}", RANK=rank, LOCAL_RANK=0,
                            WORLD_SIZE=2, MASTER_ADDR=master_address, MASTER_PORT=port)
                 for rank, options in enumerate(options_of_ranks)]
        listeners = set()
        for rank in ranks:
            while rank.ended_within(0.05) is None:
                listeners |= {listener.address[0] for listener in listening_sockets(processes_naming(self.folder))}
            self.assertEqual(rank.ended_within(0), 0, rank.stderr)
            self.assert_clean(rank)
        self.assertEqual(listeners, {master_address, *(options[-1] for options in options_of_ranks if options)})
        return self.losses(self.read("run/summary.json"))

    def test_replicas_on_two(self):
        self.of_length("data-parallel.json", 20)
        ours = self.train("data-parallel.json", "ours", "--nodes", 2)
        losses = self.train_at("data-parallel.json", "127.0.0.2", [("--interface", "127.0.0.2"),
                                                                   ("--interface", "127.0.0.3")])
        self.assertEqual(losses, self.losses(ours))

    def test_ipv6(self):
        interfaces = Path("/proc/net/if_inet6")
        if not interfaces.exists() or not interfaces.read_text():
            self.skipTest("there is no IPv6 here")
        self.of_length("static.json", 20)
        ours = self.train("static.json", "ours")
        self.assertEqual(self.train_at("static.json", "::1", [(), ()]), self.losses(ours))


class LongTorchrunTest(FaultTest):
    def stop_rank(self, victim):
        ranks = self.start_ranks()
        survivor = ranks[1 - victim]
        os.kill(ranks[victim].pid, signal.SIGSTOP)
        self.assertEqual(survivor.ended_within(LIMIT_SECONDS), 1, survivor.stderr)
        self.assert_said(survivor, rf"rank {1 - victim}\b.*rank {victim}\b")

    def test_stop_rank_1(self):
        self.stop_rank(1)

    def test_stop_rank_0(self):
        self.stop_rank(0)


class NameServerTest(FaultTest):
    def test_a_name_server_that_does_not_answer(self):
        """As behind a firewall: ranks of one machine need no host names, and a job that waits for a name lookup seems
        to hang."""
        self.write("resolv.conf", "nameserver 127.0.0.2\n")
        inside = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", inside, str(self.folder / "resolv.conf")]
        if (os.geteuid() != 0 or not shutil.which("unshare")
                or subprocess.run([*command, "true"], capture_output=True).returncode != 0):
            print("\nSKIPPED LOUDLY: another /etc/resolv.conf needs unshare, and so root", file=sys.stderr)
            self.skipTest("cannot unshare")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.2", 53))
            started = self.start(*self.train_arguments("static.json", "run", "--epochs", 1), wrapper=command)
            code = started.ended_within(30)
            silent.setblocking(False)
            with self.assertRaises(BlockingIOError, msg="asked the name server"):
                silent.recv(512)
        self.assertEqual(code, 0, started.stderr)
        self.assert_clean(started)


if __name__ == "__main__":
    unittest.main()
