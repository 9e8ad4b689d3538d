// Oracle: folders in place of /proc and /sys, written by the tests; for this process, the limits that the test sets.
#include "executor/installation/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using testing::Contains;
using testing::Field;

class MachineTest : public test::ScratchFolderTest {
 protected:
  MachineTest() { file("proc/meminfo", "MemTotal:        8000000 kB\nMemFree: 1 kB\nMemAvailable:    5000000 kB\n"); }
};

TEST_F(MachineTest, ReadsProcessorAndMemory) {
  file("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9R14\nmodel name\t: other\n");
  const Machine machine = this_machine(folder_);
  EXPECT_EQ(machine.processor, "AMD EPYC 9R14");
  EXPECT_EQ(machine.memory, Bytes{8'000'000} << 10);
  EXPECT_EQ(machine.available_memory, Bytes{5'000'000} << 10);
  EXPECT_EQ(machine.memory_limit, std::nullopt);
}

TEST_F(MachineTest, FactsThatTheSystemDoesNotStateAreUnknown) {
  const Machine machine = this_machine(folder_ / "nothing");
  EXPECT_EQ(machine.processor, "unknown processor");
  EXPECT_EQ(machine.memory, 0);
  EXPECT_EQ(machine.shared_memory, std::nullopt);
}

TEST_F(MachineTest, TheTightestControlGroupLimitsMemory) {
  file("proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  file("sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
  EXPECT_EQ(this_machine(folder_).memory_limit, std::nullopt);
  file("sys/fs/cgroup/slurm/job_7/memory.max", "4000000000\n");
  file("sys/fs/cgroup/slurm/memory.max", "6000000000\n");
  EXPECT_EQ(this_machine(folder_).memory_limit, 4'000'000'000);
  file("sys/fs/cgroup/memory.max", "3000000000\n");
  EXPECT_EQ(this_machine(folder_).memory_limit, 3'000'000'000) << "a container sees its own group as the root";
}

TEST_F(MachineTest, VersionOneSaysNoLimitAsANumberBeyondTheMemory) {
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(this_machine(folder_).memory_limit, std::nullopt);
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000000\n");
  EXPECT_EQ(this_machine(folder_).memory_limit, 2'000'000'000);
}

TEST_F(MachineTest, CountsTheCoresThatThisProcessMayUse) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(this_machine().usable_cores, 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(this_machine().usable_cores, CPU_COUNT(&before));
}

TEST_F(MachineTest, KnowsTheLoopbackAndItsAddress) {
  EXPECT_THAT(this_machine().interfaces, Contains(Field(&NetworkInterface::addresses, Contains("127.0.0.1"))));
  file("sys/class/net/lo/speed", "25000\n");
  for (const NetworkInterface& interface : this_machine(folder_).interfaces) {
    if (interface.name == "lo") {
      EXPECT_EQ(interface.megabits_per_second, 25'000);
    }
  }
}

}  // namespace
}  // namespace frostpipe
