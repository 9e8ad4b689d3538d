"""A foreign process on the host connects to every port of a running job. Oracle: the undisturbed run.

Ranks that `train` starts itself communicate over inherited sockets, so there is no port. Ranks under another launcher
(RANK, MASTER_ADDR, ...) meet at a port, which is open only to this host if they are told to meet there; foreign data at
this port may end the run with one message, but do nothing worse."""

import collections
import contextlib
import os
import random
import resource
import signal
import socket
import struct
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from end_to_end import GLOBAL_BATCH, HANG_SECONDS, NOT_FOR_USERS, processes_naming, rank_of_process
from faults import FaultTest
from hosts import hosts_for, rank_variables
from listening_sockets import listening_sockets

NUM_ATTEMPTS = int(os.environ.get("FROSTPIPE_ATTEMPTS", 1000))
SEED = int(os.environ.get("FROSTPIPE_SEED", 1))
HELD_AT_ONCE = 3000
LIMIT_SECONDS = 60  # from the foreign connections to the end of the run
SOME_STEPS = 200
MANY_STEPS = 1000  # longer than the foreign process needs

# As in many logins, the limit of open files is lower than the number of connections that a foreign process can open.
USUAL_LIMITS = ("sh", "-c", 'ulimit -Sn 1024; exec "$@"', "sh")

STORE_MAGIC = struct.pack("<BI", 0, 0x3C85F7CE)  # the query VALIDATE of a c10d store and what it expects
NUM_STORE_QUERIES = 18
NUMBER_OF_KEYS = 7  # a query without a key, which is answered


def reset(connection):
    """Resets the connection."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class Stranger:
    """Connects to the ports; connections that are open at the end are closed."""

    def __init__(self, seed):
        self.numbers = random.Random(seed)
        self.held = []
        self.kinds = [self.random_bytes, self.a_store_with_wrong_lengths, self.questions_without_waiting,
                      self.half_a_number, self.says_nothing]

    def random_bytes(self, connection):
        connection.sendall(self.numbers.randbytes(self.numbers.choice((1, 3, 64, 4096, 20_000))))
        self.numbers.choice((reset, socket.socket.close))(connection)

    def a_store_with_wrong_lengths(self, connection):
        length = self.numbers.choice((0, 1, 20_000, 2**31 - 1, 2**32, 2**40, 2**63 - 1, 2**64 - 1))
        query = struct.pack("<BQ", self.numbers.randrange(NUM_STORE_QUERIES + 2), length)
        connection.sendall(STORE_MAGIC + query + self.numbers.randbytes(20_000))
        reset(connection)

    def questions_without_waiting(self, connection):
        """Closes before the answer, which gives SIGPIPE to a program that does not handle it."""
        connection.sendall(STORE_MAGIC + bytes([NUMBER_OF_KEYS]) * 20_000)
        reset(connection)

    def half_a_number(self, connection):
        connection.sendall(STORE_MAGIC + struct.pack("<BI", 1, 7))
        self.held.append(connection)

    def says_nothing(self, connection):
        self.held.append(connection)

    def connect_to(self, listener):
        """Sends one kind of foreign data to the listener. Returns the kind, and why it failed if it did."""
        kind = self.numbers.choice(self.kinds)
        try:
            kind(listener.connect(seconds=1))
        except OSError as error:
            return f"{kind.__name__}: {error.strerror or error}"
        return kind.__name__

    def hold_many(self, listeners, count):
        """Opens `count` connections at once, to all ports in turn."""
        for i in range(count):
            with contextlib.suppress(OSError):
                self.held.append(listeners[i % len(listeners)].connect(seconds=0.05))

    def leave(self):
        while self.held:
            self.held.pop().close()


class ListenerTest(FaultTest):
    def listeners(self):
        return listening_sockets(processes_naming(self.folder))

    def wait_for_training(self, started):
        self.wait_until(lambda: self.is_training(started) or started.ended_within(0) is not None, HANG_SECONDS,
                        lambda: started.stderr)

    def listeners_until_the_end(self, started):
        """All ports that were ever seen."""
        seen = set()
        until = time.monotonic() + HANG_SECONDS
        while started.ended_within(0.02) is None:
            self.assertLess(time.monotonic(), until, started.stderr)
            seen.update(self.listeners())
        self.assertEqual(started.ended_within(0), 0, started.stderr)
        return seen


class NothingListensTest(ListenerTest):
    def test_every_listening_process_is_found(self):
        """Without this check the other tests might find no ports because they look in the wrong place."""
        places = [(socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET6, ("::", 0)),
                  (socket.AF_UNIX, f"{self.folder}/listener"), (socket.AF_UNIX, b"\0" + os.fsencode(self.folder.name))]
        with contextlib.ExitStack() as stack:
            opened = [stack.enter_context(socket.socket(family)) for family, _ in places]
            for listener, (_, address) in zip(opened, places):
                listener.bind(address)
            self.assertEqual(listening_sockets([os.getpid()]), [])  # no socket listens yet
            for listener in opened:
                listener.listen()
            found = listening_sockets([os.getpid()])
            names = (listener.getsockname() for listener in opened)
            expected = {name[:2] if isinstance(name, tuple) else name for name in names}
            self.assertEqual({listener.address for listener in found}, expected)
            self.assertEqual([listener.address[0] for listener in found if not listener.is_on_this_host_only()], ["::"])
            for listener in found:
                listener.connect().close()

    def test_nothing_of_a_job_listens(self):
        """Two ranks, a spare, changes of layout."""
        started = self.start(*self.train_arguments("pipetransformer.json", "run", "--spares", 1))
        self.assertEqual(self.listeners_until_the_end(started), set())


class LongNothingListensTest(ListenerTest):
    def test_nothing_of_a_job_that_forms_anew_listens(self):
        self.of_length("pipetransformer.json", SOME_STEPS)
        for spares in (0, 1):
            with self.subTest(spares=spares):
                started = self.start(*self.train_arguments("pipetransformer.json", f"run-{spares}", "--spares", spares))
                self.wait_for_training(started)
                os.kill(next(pid for pid in processes_naming(self.folder) if rank_of_process(pid) == 0), signal.SIGKILL)
                self.assertEqual(self.listeners_until_the_end(started), set())
                self.assertEqual(len(self.read(f"run-{spares}/summary.json")["recoveries"]), 1, started.stderr)

    def test_nothing_of_a_measurement_listens(self):
        started = self.start("profile", "--model", "model", "--data", "data.tsv", "--global-batch", GLOBAL_BATCH,
                             "--micro-batch-sizes", "4,16", "--memory-limit", "64MiB",
                             "--cluster", self.folder / "measured-cluster.json", "-o", self.folder / "measured.json")
        self.assertEqual(self.listeners_until_the_end(started), set())


class StrangerTest(ListenerTest):
    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.at_once = min(HELD_AT_ONCE, hard - 200)
        self.stranger = Stranger(SEED)
        self.addCleanup(self.stranger.leave)

    def disturb(self, host=None):
        """Makes 1,000 attempts at all ports, then as many open connections as a foreign process can have; from that
        host, else from this machine."""
        with host.network() if host else contextlib.nullcontext():
            return self.knock_at_all()

    def knock_at_all(self):
        done = collections.Counter()
        places = set()
        for attempt in range(NUM_ATTEMPTS):
            if attempt % 50 == 0:
                listeners = self.listeners()  # a change of layout opens other ports
                places.update(listeners)
            if not listeners:
                break
            done[self.stranger.connect_to(listeners[attempt % len(listeners)])] += 1
        if listeners:
            self.stranger.leave()
            self.stranger.hold_many(listeners, self.at_once)
            done["held at once"] = len(self.stranger.held)
            time.sleep(1)
            self.stranger.leave()
        print(f"\nseed {SEED}, {len(places)} listeners: {dict(done)}", file=sys.stderr)
        return places

    def assert_clean(self, started):
        """A foreign process can cause many messages."""
        found = NOT_FOR_USERS.search(started.stderr)
        self.assertIsNone(found, found and started.stderr[max(0, found.start() - 500) : found.start() + 1000])
        super().assert_clean(started)

    def test_a_job_that_train_has_started(self):
        self.of_length("pipetransformer.json", MANY_STEPS)
        undisturbed = self.train("pipetransformer.json", "undisturbed")
        started = self.start(*self.train_arguments("pipetransformer.json", "run", "--spares", 1), wrapper=USUAL_LIMITS)
        self.wait_for_training(started)
        places = self.disturb()
        self.assertEqual(started.ended_within(LIMIT_SECONDS), 0, started.stderr[-1000:])
        self.assert_clean(started)
        run = self.read("run/summary.json")
        self.assertNotIn("recoveries", run)
        self.assertEqual(self.losses(run), self.losses(undisturbed))
        self.assertEqual(places, set())

    def test_ranks_that_another_launcher_has_started(self):
        self.of_length("static.json", MANY_STEPS)
        undisturbed = self.train("static.json", "undisturbed")
        ranks = self.start_ranks("static.json", "--max-restarts", 0)
        self.wait_for_training(ranks[0])
        places = self.disturb()
        codes = [rank.ended_within(LIMIT_SECONDS) for rank in ranks]
        print(f"they ended with {codes}: {[rank.stderr[-500:] for rank in ranks]}", file=sys.stderr)
        for rank, code in zip(ranks, codes):
            self.assertIn(code, (0, 1), rank.stderr[-1000:])  # it ended, and not by a signal
            self.assert_clean(rank)
        if codes == [0, 0]:
            self.assertEqual(self.losses(self.read("run/summary.json")), self.losses(undisturbed))
        self.assertEqual([place for place in places if not place.is_on_this_host_only()], [])

    def test_ranks_on_two_hosts(self):
        """A third host connects. This neither ends nor changes the run."""
        self.of_length("static.json", MANY_STEPS)
        undisturbed = self.train("static.json", "undisturbed", "--nodes", 2)
        arguments = self.train_arguments("static.json", "run")
        *hosts, third = hosts_for(self, 3)
        ranks = [self.start(*arguments, name=f"rank{rank}", wrapper=host.wrapper, **rank_variables(hosts, rank))
                 for rank, host in enumerate(hosts)]
        self.wait_for_training(ranks[0])
        places = self.disturb(third)
        for rank in ranks:
            self.assertEqual(rank.ended_within(HANG_SECONDS), 0, rank.stderr[-1000:])
            self.assert_clean(rank)
        self.assertEqual(self.losses(self.read(hosts[0].path("run/summary.json"))), self.losses(undisturbed))
        self.assertGreaterEqual({place.address[0] for place in places}, {host.address for host in hosts})


if __name__ == "__main__":
    unittest.main()
