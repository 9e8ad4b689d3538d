"""The tests of the executor that run on a device: forward, backward and update against the CPU, bfloat16, frozen
layers, limits and errors of memory, a group of one rank, several ranks on one device with every schedule that trains,
live change, cache, checkpoint and resume."""
import json
import re

from programs import NotDone, Trouble
from results import Check
from running import last_line

ALONE = ("On/Devices.*", "On/ModelsOnDevices.*")
RANKS = "RanksOnDevice.*"


def names(programs, pattern):
    """Of the tests, each with its suite. Trouble where the program does not list them, or has none of them."""
    done = programs.run([programs.options.tests, "--gtest_list_tests", f"--gtest_filter={pattern}"],
                        **programs.libraries)
    if done.returncode != 0:
        raise Trouble(f"{programs.options.tests} --gtest_list_tests ended with {done.returncode}: "
                      f"{last_line(done.stderr)}")
    found, suite = [], ""
    for line in done.stdout.splitlines():
        if re.match(r"\S+\.$", line):
            suite = line
        elif line.startswith("  "):
            found.append(suite + line.split()[0])
    if not found:
        raise Trouble(f"{programs.options.tests} has no tests {pattern}; is it frostpipe_executor_tests?")
    return found


def tests_of(report):
    """Of --gtest_output=json."""
    return [test for suite in json.loads(report.read_text())["testsuites"] for test in suite["testsuite"]]


def run_test(programs, name):
    """Figures of one process of the test program."""
    report = programs.folder / "logs" / f"{programs.num_started + 1:03}.json"
    done = programs.run([programs.options.tests, f"--gtest_filter={name}", f"--gtest_output=json:{report}"],
                        most_seconds=300, FROSTPIPE_TEST_DEVICE=programs.device, **programs.libraries)
    if not report.exists():
        raise Trouble(f"the test program ended with {done.returncode}: {last_line(done.stderr)}")
    tests = tests_of(report)
    failures = [failure["failure"] for test in tests for failure in test.get("failures", [])]
    if failures or done.returncode != 0:
        # What a rank says of its failure stands on stderr, before what the launcher says.
        of_ranks = [line for line in done.stderr.splitlines() if line.startswith("rank ")]
        raise Trouble(" / ".join([*of_ranks[:1], *failures[:1]]).replace("\n", " ") or
                      f"exit code {done.returncode}: {last_line(done.stderr)}")
    if not tests:
        raise Trouble(f"the test program has no test {name}")
    if all(test["result"] == "SKIPPED" for test in tests):
        # The device is there, or nothing would be checked: it cannot be used.
        reasons = [line.strip() for line in done.stdout.splitlines() if line.startswith("device ")]
        raise Trouble(reasons[0] if reasons else "the test program skipped it")
    return {}, []


def checks(programs):
    if not programs.options.tests:
        yield Check("tests", "all"), not_there
        return
    patterns = [*(f"{pattern}/{programs.device}" for pattern in ALONE), RANKS]
    found = [name for pattern in patterns for name in names(programs, pattern)]
    wanted = [name for name in found if re.search(programs.options.only_tests or "", name)]
    if not wanted:
        raise Trouble(f"--only-tests {programs.options.only_tests}: matches none of {len(found)} tests, such as "
                      f"{found[0]}")
    for name in wanted:
        yield Check("tests", name), lambda name=name: run_test(programs, name)


def not_there():
    raise NotDone("frostpipe_executor_tests is not beside the tool; name it with --tests")
