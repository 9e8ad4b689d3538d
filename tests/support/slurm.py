"""Debian's Slurm on hosts emulated by namespaces: slurmctld on the first, slurmd and munged on each. This needs root.

There are no cgroups and no accounting; processes are found in /proc. The daemons write into the test's folder, of which
each host has its own."""

import os
import shutil
import subprocess

CORES_PER_HOST = 4  # independent of this machine's cores
SILENCE_SECONDS = 30  # of a slurmd, after which its node is down; Slurm's own default is 300


def programs_missing_for_slurm():
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch", "srun") if not shutil.which(name)]
    return [*missing, "(apt-get install slurmctld slurmd slurm-client munge)"] if missing else []


class SlurmCluster:
    """A cluster of hosts that know each other by name; its nodes have the same names. Jobs get `variables` too."""

    def __init__(self, test, hosts, **variables):
        self.test, self.hosts, self.folder = test, hosts, f"{test.folder}/slurm"
        self.variables = {**variables, "SLURM_CONF": f"{self.folder}/slurm.conf"}
        key = os.urandom(64)
        for host in hosts:
            folder = host.path("slurm")
            for made in (folder, folder / "spool", folder / "state"):
                made.mkdir(mode=0o755)
            (folder / "key").write_bytes(key)
            (folder / "key").chmod(0o400)
            (folder / "slurm.conf").write_text(self.configuration())
        for host in hosts:
            self.start_munge(host)
        self.start_daemon(hosts[0], "slurmctld", "-D")
        for host in hosts:
            self.start_daemon(host, "slurmd", "-D", "-N", host.name)
        self.test.wait_until(lambda: self.states() == {"idle"}, 60, lambda: self.said_by("sinfo", "--Node", "--long"))

    def configuration(self):
        first = self.hosts[0]
        nodes = "".join(f"NodeName={host.name} NodeAddr={host.address} CPUs={CORES_PER_HOST}\n" for host in self.hosts)
        return f"""ClusterName=test
SlurmctldHost={first.name}({first.address})
SlurmUser=root
AuthInfo=socket={self.folder}/munge
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
SlurmdTimeout={SILENCE_SECONDS}
ReturnToService=2
{nodes}PartitionName=all Nodes=ALL Default=YES
"""

    def start_daemon(self, host, *command):
        """Starts a daemon, whose output is in the test's folder."""
        with open(self.test.folder / f"{command[0]}-{host.name}.log", "ab") as log:
            process = subprocess.Popen([*host.wrapper, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env=self.test.environment(**self.variables))
        self.test.addCleanup(process.wait)
        self.test.addCleanup(process.kill)

    def start_munge(self, host):
        self.start_daemon(host, "munged", "--foreground", "--force", f"--key-file={self.folder}/key",
                          f"--socket={self.folder}/munge", f"--pid-file={self.folder}/munged.pid",
                          f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/seed")
        self.test.wait_until(host.path("slurm/munge").exists, 30, f"munged on {host.name}")

    def start_again(self, host):
        """Starts a host's daemons again after it has lost power."""
        host.path("slurm/munge").unlink(missing_ok=True)
        self.start_munge(host)
        self.start_daemon(host, "slurmd", "-D", "-N", host.name)

    def states(self):
        """The states of the nodes."""
        return set(self.said_by("sinfo", "--noheader", "--Node", "--format=%T").split())

    def said_by(self, *command):
        """The output of one of Slurm's programs on the first host, including its errors."""
        done = subprocess.run([*self.hosts[0].wrapper, *map(str, command)], stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, env=self.test.environment(**self.variables), check=False)
        return done.stdout

    def job(self, number):
        """Slurm's facts about a job, by name."""
        words = self.said_by("scontrol", "--oneliner", "show", "job", number).split()
        return dict(word.split("=", 1) for word in words if "=" in word)
