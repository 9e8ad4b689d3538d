"""Too little memory, disk space, descriptors or shared memory: the run ends in time and says why, or does without."""

import json
import os
import resource
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import HANG_SECONDS, limit_file_size, processes_naming, rank_of_process
from faults import LONG, FaultTest


class TooSmallTest(FaultTest):
    def test_a_memory_limit_that_the_run_does_not_keep(self):
        """The planner was given 64 MiB; the rank, which has half of the memory it needs, reports where it ran out, and
        by how much."""
        peaks = self.train("static.json", "free", "--epochs", 1)["phases"][0]["measured_peak_memory_bytes"]
        for victim in (0, 1):
            with self.subTest(victim=victim):
                limit = peaks[victim] // 2
                self.edit("cluster.json",
                          lambda cluster: [device.update(memory_limit_bytes=64 << 20) for device in cluster["devices"]])
                self.edit("cluster.json", lambda cluster: cluster["devices"][victim].update(memory_limit_bytes=limit))
                arguments = self.train_arguments("static.json", f"run-{victim}", "--cluster", "cluster.json")
                done = self.run_tool(*arguments, code=1)
                self.assertEqual(done.stdout, "")
                lines = [line for line in done.stderr.splitlines() if "out of memory" in line]
                self.assertEqual(len(lines), 1, done.stderr)
                self.assertRegex(lines[0], rf"^frostpipe: rank {victim}: out of memory in .+: \d+ more bytes .* limit "
                                           rf"of {limit}\b.*memory_limit_bytes")
                self.assertNotIn("run on rank", done.stderr)
                self.assertRegex(done.stderr, rf"frostpipe: rank {victim} \(process \d+\) ended with exit code 1")
                self.assertFalse((self.folder / f"run-{victim}/summary.json").exists())
                self.assert_no_process_within(2)

    def test_a_limit_that_holds_is_kept(self):
        run = self.train("static.json", "run", "--epochs", 1)
        self.assertTrue(all(0 < peak < 64 << 20 for peak in run["phases"][0]["measured_peak_memory_bytes"]))

    def assert_disk_error(self, done, folder):
        self.assertEqual(done.stdout, "")
        lines = [line for line in done.stderr.splitlines() if "cannot be written" in line]
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("frostpipe: "), done.stderr)
        self.assertIn(str(folder), lines[0])
        self.assertRegex(lines[0], "No space left on device|File too large")
        self.assert_no_process_within(2)

    def test_files_that_cannot_grow(self):
        """Emulates a full disk, without root. The size of the weights (180 kB) is known before; that of their file's
        header is not."""
        for limit in (20_000, 120_000):
            with self.subTest(limit=limit):
                self.assert_refused(*self.train_arguments("static.json", f"run-{limit}", *LONG),
                                    prepare=limit_file_size(limit),
                                    says=["limit of a file's size (ulimit -f): must be at least",
                                          f"run-{limit}/model/model.safetensors", "is "])
        self.train("static.json", "free", "--epochs", 1)
        limit = (self.folder / "free/model/model.safetensors").stat().st_size - 1000
        done = self.run_tool(*self.train_arguments("static.json", "run", "--epochs", 1), code=1,
                             prepare=limit_file_size(limit))
        self.assert_disk_error(done, self.folder / "run/model/model.safetensors")
        self.assertRegex(done.stderr, r"File too large \(a file may have \d+ KiB: ulimit -f\)")
        self.assertFalse((self.folder / "run/model/model.safetensors").exists(), "half a model looks like a model")

    def test_a_full_disk(self):
        mount = self.folder / "tiny"
        mount.mkdir()
        for size in (40_960, 204_800):  # too small for the weights; too small for the files after them
            with self.subTest(size=size):
                made = None
                if os.geteuid() == 0 and shutil.which("mount"):
                    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(mount)],
                                          capture_output=True, text=True)
                if made is None or made.returncode != 0:
                    print("\nSKIPPED LOUDLY: a full disk needs a tmpfs, and so "
                          f"root: {made.stderr.strip() if made else 'not root'}", file=sys.stderr)
                    self.skipTest("cannot mount a tmpfs")
                try:
                    done = self.run_tool(*self.train_arguments("static.json", "tiny/run", "--epochs", 2), code=1)
                    self.assert_disk_error(done, mount)
                    self.assertFalse((mount / "run/summary.json").exists(), "a summary says that the run is complete")
                finally:
                    subprocess.run(["umount", str(mount)], check=True)

    def test_a_folder_that_cannot_be_made_is_found_before_training(self):
        """The error comes before training, not after hours of it."""
        self.write("occupied", "a file")
        done = self.run_tool(*self.train_arguments("static.json", "occupied/run", *LONG), code=1)
        self.assertNotIn("train ", done.stderr)
        self.assertRegex(done.stderr, r"frostpipe: .*occupied/run.*(Not a directory|cannot be)")
        self.assertEqual((self.folder / "occupied").read_text(), "a file")


def limited(resource_kind, soft, hard):
    return lambda: resource.setrlimit(resource_kind, (soft, hard))


class LimitsTest(FaultTest):
    """The system's limits for a process (ulimit): if they can be checked, the error comes before anything starts, else
    from the rank that hit the limit. There is no restart, since it would end the same way."""

    def test_too_few_descriptors_for_the_ranks(self):
        self.assert_refused(*self.train_arguments("static.json", "run", *LONG),
                            prepare=limited(resource.RLIMIT_NOFILE, 33, 33),
                            says=["limit of open files (ulimit -n): must be at least 34 for 2 ranks, is 33"])

    def test_descriptors_that_the_shell_keeps_back_are_taken(self):
        self.train("static.json", "run", "--epochs", 1, prepare=limited(resource.RLIMIT_NOFILE, 20, 1000))

    def end_with_limit(self, resource_kind, value, says):
        """Rank 0 hits the limit during the run; the run is short enough to end."""
        launcher = self.start(*self.train_arguments("static.json", "run", "--epochs", 60, "--max-restarts", 3),
                              name="launcher")
        self.wait_until(lambda: self.is_training(launcher), HANG_SECONDS, lambda: launcher.stderr)
        ranks = {rank_of_process(pid): pid for pid in processes_naming(self.folder)}
        resource.prlimit(ranks[0], resource_kind, (value, value))
        self.assertEqual(launcher.ended_within(HANG_SECONDS), 1, launcher.stderr)
        self.assert_said(launcher, says)
        self.assertRegex(launcher.stderr,
                         r"frostpipe: rank 0 \(process \d+\) ended with exit code 1; ended the other ranks")
        self.assertNotIn("restart", launcher.stderr)
        self.assert_no_process_within(2)

    def test_no_descriptor_is_left_at_the_end(self):
        self.end_with_limit(resource.RLIMIT_NOFILE, 3, r"frostpipe: .*/run/.*: Too many open files \(this process may "
                                                       r"have 3: ulimit -n\)")

    def test_files_may_not_grow_at_the_end(self):
        self.end_with_limit(resource.RLIMIT_FSIZE, 4096, r"frostpipe: .*/run/.*: cannot be written: File too large \(a "
                                                         r"file may have 4.00 KiB: ulimit -f\); the trained model is "
                                                         r"lost: the run has written no checkpoint ")

    def test_a_model_that_cannot_be_written_leaves_the_last_checkpoint(self):
        """Oracle: a run that was never disturbed, which has the same losses."""
        free = self.train("static.json", "free", "--epochs", 2)
        self.write("run/model", "a file where the folder should be")
        command = self.train_arguments("static.json", "run", "--epochs", 2, "--checkpoint-every", 7)
        done = self.run_tool(*command, code=1)
        self.assertRegex(done.stderr, r"frostpipe: .*/run/model.*; the trained model is not saved, but .*/checkpoints/"
                                      r"step-0*14 is kept: make room, and the same command goes on from there")
        (self.folder / "run/model").unlink()
        self.run_tool(*command)
        self.assertEqual(self.losses(self.read("run/summary.json")), self.losses(free))

    def test_a_disk_that_becomes_read_only(self):
        """Mounts another disk over the run's folder, since the lock keeps the run's own disk busy."""
        launcher = self.start(*self.train_arguments("static.json", "run", "--epochs", 60), name="launcher")
        self.wait_until(lambda: self.is_training(launcher), HANG_SECONDS, lambda: launcher.stderr)
        mount = self.folder / "run"
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(mount)], capture_output=True,
                              text=True) if os.geteuid() == 0 and shutil.which("mount") else None
        if made is None or made.returncode != 0:
            print("\nSKIPPED LOUDLY: a disk of its own needs a tmpfs, and so "
                  f"root: {made.stderr.strip() if made else 'not root'}", file=sys.stderr)
            self.skipTest("cannot mount a tmpfs")
        self.addCleanup(subprocess.run, ["umount", "--lazy", str(mount)], check=True)
        self.assertEqual(launcher.ended_within(HANG_SECONDS), 1, launcher.stderr)
        self.assert_said(launcher, r"frostpipe: .*/run/model.*: Read-only file system")
        self.assertNotIn("restart", launcher.stderr)

    def test_a_model_folder_that_cannot_be_made_is_no_bug(self):
        self.write("run/model", "a file where the folder should be")
        done = self.run_tool(*self.train_arguments("static.json", "run", "--epochs", 1), code=1)
        self.assertRegex(done.stderr, r"frostpipe: .*/run/model.*: (Not a directory|File exists)")


class NoCacheTest(FaultTest):
    """The disk for cached activations is full: the run continues without it, as with a cache that never finds an entry,
    and says so once."""

    def train_inside(self, mount, plan, output, *options):
        """Runs in a separate mount namespace, made by the shell command."""
        command = ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"]
        tried = subprocess.run([*command, "true"], cwd=self.folder, capture_output=True,
                               text=True) if os.geteuid() == 0 and shutil.which("unshare") else None
        if tried is None or tried.returncode != 0:
            print("\nSKIPPED LOUDLY: another /dev/shm or disk needs unshare and mount, and so "
                  f"root: {tried.stderr.strip() if tried else 'not root'}", file=sys.stderr)
            self.skipTest("cannot mount")
        started = self.start(*self.train_arguments(plan, output, "--epochs", 4, *options), name=output, wrapper=command)
        self.assertEqual(started.ended_within(HANG_SECONDS), 0, started.stderr)
        self.assert_clean(started)
        run = self.read(f"{output}/summary.json")
        notes = [line for line in started.stderr.splitlines() if "activation cache: " in line]
        self.assertEqual(len(notes), 1, started.stderr)
        self.assertIn(run["cache_note"], notes[0])
        self.assertEqual([phase["cache_hit_fraction"] + phase["cache_base_fraction"] for phase in run["phases"]
                          if phase["cache"]], [0] * (len(run["phases"]) - 1))
        self.assert_losses_equal(run, self.undisturbed, run["num_steps"], 1e-4)
        return run["cache_note"]

    def setUp(self):
        super().setUp()
        def fills_and_hits(plan):
            first, frozen = plan["phases"][0], 5
            first["cache"]["on"] = False
            cached = json.loads(json.dumps(first))
            cached.update(from_step=10, first_trainable_layer=frozen, cache={"on": True, "found": []})
            plan.update(phases=[first, cached], cache={"dtype": "float32", "memory_bytes": 1 << 20, "disk_bytes": 0})
        self.edit("data-parallel.json", fills_and_hits)
        self.undisturbed = self.train("data-parallel.json", "undisturbed", "--epochs", 4)
        self.assertEqual(self.undisturbed["cache_note"], "")
        self.assertGreater(self.undisturbed["phases"][-1]["cache_hit_fraction"], 0.5, "the cache is used")

    def test_shared_memory_that_is_read_only(self):
        note = self.train_inside("mount -t tmpfs -o ro tmpfs /dev/shm", "data-parallel.json", "run")
        self.assertRegex(note, r"^/dev/shm: 0 B of .* could be reserved: Read-only file system$")

    def test_shared_memory_that_is_full(self):
        fill = "mount -t tmpfs -o size=65536 tmpfs /dev/shm && head -c 65536 /dev/zero > /dev/shm/full"
        self.assertRegex(self.train_inside(fill, "data-parallel.json", "run"),
                         r"^/dev/shm: 0 B of .* could be reserved: No space left on device$")

    def test_a_disk_that_is_read_only_or_full(self):
        self.edit("data-parallel.json", lambda plan: plan["cache"].update(memory_bytes=0, disk_bytes=1 << 20))
        (self.folder / "disk").mkdir()
        for name, mount, says in [("ro", "mount -t tmpfs -o ro tmpfs disk", "Read-only file system"),
                                  ("full", "mount -t tmpfs -o size=65536 tmpfs disk && head -c 65536 /dev/zero > "
                                           "disk/full", "No space left on device")]:
            with self.subTest(name):
                note = self.train_inside(mount, "data-parallel.json", name, "--cache-dir", "disk")
                self.assertRegex(note, rf"^disk/frostpipe-.*: 0 B of .* could be reserved: {says}$")


if __name__ == "__main__":
    unittest.main()
