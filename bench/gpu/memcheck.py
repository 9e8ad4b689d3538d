"""Runs some of the tests of one rank under the memory checker of compute-sanitizer, if it is installed."""
import device_tests
from programs import Failure, NotDone, NoTime, TookTooLong
from results import Check
from running import last_line

SECONDS = 200


def sanitizer(programs, check):
    if programs.device != "cuda":
        raise NotDone("compute-sanitizer checks CUDA alone")
    if not programs.sanitizer:
        raise NotDone("compute-sanitizer is not installed")
    if not programs.options.tests:
        device_tests.not_there()
    log = programs.next_log()
    report = log.with_suffix(".json")
    # Failing calls are not memory errors: libraries make them to find out what the driver supports.
    command = [programs.sanitizer, "--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", 9,
               programs.options.tests,
               "--gtest_filter=On/Devices.*Limit*/cuda:On/Devices.*Group*/cuda:On/ModelsOnDevices.*/cuda",
               f"--gtest_output=json:{report}"]
    try:
        done = programs.run(command, log=log, **programs.libraries)
    except TookTooLong as killed:
        raise NoTime(f"not finished: {killed}") from None
    summary = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR SUMMARY" in line]
    if done.returncode != 0 or not summary:
        raise Failure(f"exit code {done.returncode}: {summary[-1] if summary else last_line(done.stderr)}")
    ran = [test for test in device_tests.tests_of(report) if test["result"] != "SKIPPED"] if report.exists() else []
    if not ran:
        raise Failure("no test ran under compute-sanitizer: the test program has none of these, or skipped them all")
    check.figures |= {"said": summary[-1].strip("= "), "tests": len(ran)}


def checks(programs):
    yield Check("memcheck", "compute-sanitizer memcheck"), lambda check: sanitizer(programs, check)
