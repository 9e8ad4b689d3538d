"""The first check: forward, backward and update of a model in MiniLM's shape are compared with the CPU."""
import device_tests
from results import Check

SECONDS = 40
TEST = "On/ModelsOnDevices.MinilmTrainsAsOnTheCpu"


def checks(programs):
    yield Check("first", "MiniLM trains as on the CPU"), lambda _: device_tests.run_named(programs, TEST)
