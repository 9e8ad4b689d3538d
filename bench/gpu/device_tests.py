"""The tests of the executor that run on a device: forward, backward and update against the CPU, bfloat16, frozen
layers, limits and errors of memory, a group of one rank, several ranks on one device with every schedule that trains,
live change, cache, checkpoint and resume."""
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor, wait

from programs import Failure, NotDone
from results import Check
from running import last_line

SECONDS = 180
ALONE = ("On/Devices.*", "On/ModelsOnDevices.*")
RANKS = "RanksOnDevice.*"
MOST_SECONDS = 300  # of a test
CORES_OF_A_TEST, MOST_AT_ONCE = 4, 4


def names(programs, pattern):
    """Returns the names of the tests, each with its suite. Raises Failure if the program does not list them or has
    none."""
    done = programs.run([programs.options.tests, "--gtest_list_tests", f"--gtest_filter={pattern}"],
                        **programs.libraries)
    if done.returncode != 0:
        raise Failure(f"{programs.options.tests} --gtest_list_tests ended with {done.returncode}: "
                      f"{last_line(done.stderr)}")
    found, suite = [], ""
    for line in done.stdout.splitlines():
        if re.match(r"\S+\.$", line):
            suite = line
        elif line.startswith("  "):
            found.append(suite + line.split()[0])
    if not found:
        raise Failure(f"{programs.options.tests} has no tests {pattern}; is it the program frostpipe_executor_tests?")
    return found


def tests_of(report):
    """Reads the file of --gtest_output=json."""
    return [test for suite in json.loads(report.read_text())["testsuites"] for test in suite["testsuite"]]


def run_test(programs, name, **more):
    """Runs the test in a separate process, with more variables, and returns its seconds."""
    log = programs.next_log()
    report = log.with_suffix(".json")
    done = programs.run([programs.options.tests, f"--gtest_filter={name}", f"--gtest_output=json:{report}"],
                        most_seconds=MOST_SECONDS, log=log, FROSTPIPE_TEST_DEVICE=programs.device, **programs.libraries,
                        **more)
    if not report.exists():
        raise Failure(f"the test program ended with {done.returncode}: {last_line(done.stderr)}")
    tests = tests_of(report)
    failures = [failure["failure"] for test in tests for failure in test.get("failures", [])]
    if failures or done.returncode != 0:
        # A rank's error message is on stderr, before the launcher's.
        of_ranks = [line for line in done.stderr.splitlines() if line.startswith("rank ")]
        raise Failure(" / ".join([*of_ranks[:1], *failures[:1]]).replace("\n", " ") or
                      f"exit code {done.returncode}: {last_line(done.stderr)}")
    if not tests:
        raise Failure(f"the test program has no test {name}")
    if all(test["result"] == "SKIPPED" for test in tests):
        # The device exists, or nothing would be checked, so it cannot be used.
        reasons = [line.strip() for line in done.stdout.splitlines() if line.startswith("device ")]
        raise Failure(reasons[0] if reasons else "the test program skipped it")
    return done.seconds


def run_named(programs, name):
    """Runs the named test on the device. Raises NotDone if the test program is not there."""
    if not programs.options.tests:
        not_there()
    return run_test(programs, f"{name}/{programs.device}")


def checks(programs):
    if programs.options.tests:
        alone, with_ranks = wanted_names(programs)
        for name in alone:  # one after another, since some of them compare times
            yield Check("tests", name), lambda _, name=name: run_test(programs, name)
        yield from checks_at_once(programs, with_ranks)
    else:
        yield Check("tests", "all"), lambda _: not_there()


def checks_at_once(programs, wanted):
    """Runs several tests at once if there are enough cores, since their ranks spend most of the time starting."""

    def take(check, running):
        while not running.done():
            wait([running], timeout=0.1)  # a signal just before a wait is only handled when the wait is over
        check.seconds = running.result()

    cores = len(os.sched_getaffinity(0))
    pool = ThreadPoolExecutor(max(1, min(MOST_AT_ONCE, cores // CORES_OF_A_TEST)))
    try:
        running = [pool.submit(run_test, programs, name) for name in wanted]
        for name, one in zip(wanted, running):
            yield Check("tests", name), lambda check, one=one: take(check, one)
    finally:
        pool.shutdown(cancel_futures=True)


def wanted_names(programs):
    """Returns the names of the wanted tests that use the device alone, and of those with several ranks. Raises Failure
    if there is none."""
    alone = [name for pattern in ALONE for name in names(programs, f"{pattern}/{programs.device}")]
    with_ranks = names(programs, RANKS)
    wanted = [[name for name in some if re.search(programs.options.only_tests or "", name)]
              for some in (alone, with_ranks)]
    if not any(wanted):
        raise Failure(f"--only-tests {programs.options.only_tests}: matches none of {len(alone + with_ranks)} tests, "
                      f"such as {(alone + with_ranks)[0]}")
    return wanted


def not_there():
    raise NotDone("frostpipe_executor_tests is not beside the tool; name it with --tests")
