"""The output of `launch` starts the ranks on two hosts. Oracle: the same plan on one host."""

import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from faults import free_port
from hosts import hosts_for, introduce
from launched import LaunchedBase, TwoByTwoBase
from slurm import SlurmCluster, programs_missing_for_slurm
from torchrun import programs_missing_for_torchrun

SOME_STEPS = 20
MPICH = "mpiexec.mpich"  # Debian's name beside Open MPI's


class LaunchedByHandTest(LaunchedBase):
    def test_on_loopback_addresses(self):
        """Loopback addresses emulate hosts."""
        hosts = ("127.0.0.2", "127.0.0.3")
        self.write_plan(SOME_STEPS)
        lines = self.launched("by-hand", *hosts).replace("29500", str(free_port())).splitlines()[1::2]
        ranks = [self.start_line(line, f"host{host}", GLOO_SOCKET_IFNAME=host) for host, line in zip(hosts, lines)]
        self.assert_ended_well(*ranks)
        self.assertEqual(self.losses(self.read("run/summary.json")), self.losses_on_one_host())


class EveryLauncherTest(TwoByTwoBase):
    def by_hand(self):
        self.start_on_each("by-hand")

    def torchrun(self):
        self.start_on_each("torchrun")

    def start_on_each(self, launcher):
        lines = self.launched(launcher, "a", "b").splitlines()[1::2]
        self.assert_ended_well(*(self.start_line(line, f"{launcher}-{host.name}", host.wrapper)
                                 for host, line in zip(self.hosts, lines)))

    def mpirun(self):
        self.start_on_first(self.launched("mpirun", "a", "b"), OMPI_MCA_plm_rsh_agent=self.write_agent(),
                            OMPI_ALLOW_RUN_AS_ROOT=1, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)

    def mpiexec(self):
        """The command of docs/several_hosts.md, with the options of mpirun's command."""
        words = self.launched("mpirun", "a", "b").partition("frostpipe train")[2]
        self.start_on_first(f"{MPICH} -hosts a,b -ppn 2 -genv MASTER_ADDR a -genv MASTER_PORT 29500 frostpipe train"
                            f"{words}", HYDRA_LAUNCHER="rsh", HYDRA_LAUNCHER_EXEC=self.write_agent())

    def start_on_first(self, line, **variables):
        self.assert_ended_well(self.start_line(line, "mpi", self.hosts[0].wrapper, **variables))

    def write_agent(self):
        """A command that replaces ssh: AGENT HOST WORDS."""
        for host in self.hosts:
            agent = host.path("enter")
            agent.write_text("#!/bin/sh\ncase $1 in\n" + "".join(
                f"{other.name}) shift; exec {' '.join(other.wrapper)} sh -c \"$*\";;\n" for other in self.hosts)
                + "esac\n")
            agent.chmod(0o755)
        return self.folder / "enter"

    def srun(self):
        """Submits the unchanged script by sbatch."""
        self.hosts[0].path("job.sh").write_text(self.launched("slurm"))
        slurm = SlurmCluster(self, self.hosts, PATH=self.path_of_tool())
        said = slurm.said_by("sbatch", "--wait", "job.sh")
        job, = self.hosts[0].path(".").glob("slurm-*.out")
        self.assertRegex(said, r"^Submitted batch job \d+\n$", job.read_text())
        self.assertEqual(slurm.job(said.split()[-1])["JobState"], "COMPLETED", job.read_text())

    def missing(self, launcher):
        """The names of missing programs."""
        return {"torchrun": programs_missing_for_torchrun(),
                "mpirun": [] if shutil.which("mpirun.openmpi") else ["mpirun (apt-get install openmpi-bin)"],
                "mpiexec": [] if shutil.which(MPICH) else [f"{MPICH} (apt-get install mpich)"],
                "srun": programs_missing_for_slurm()}.get(launcher, [])

    def test_gives_the_losses_of_our_own(self):
        self.write_plan(SOME_STEPS)
        self.hosts = hosts_for(self, 2)
        introduce(self.hosts)
        ours = self.losses_on_one_host()
        self.assertEqual(len(ours), SOME_STEPS)
        for launcher in ("by_hand", "torchrun", "mpirun", "mpiexec", "srun"):
            with self.subTest(launcher):
                if missing := self.missing(launcher):
                    print(f"\nSKIPPED LOUDLY: {launcher}: there is no {', '.join(missing)}", file=sys.stderr)
                    self.skipTest(launcher)
                for host in self.hosts:
                    shutil.rmtree(host.path("run"), ignore_errors=True)
                getattr(self, launcher)()
                self.assertEqual(self.losses(self.read(self.hosts[0].path("run/summary.json"))), ours)


if __name__ == "__main__":
    unittest.main()
