// Oracle: expected classes for their names.
#include "operators/training/cpu_class.h"

#include <gtest/gtest.h>

#include "base/steady_clock.h"
#include "operators/training/processor_time.h"

namespace frostpipe::test {
namespace {

TEST(CpuClass, IsReadFromItsName) {
  const auto plain = parse_cpu_class("cpu"), threads = parse_cpu_class("cpu x 4"), slow = parse_cpu_class("cpu / 2.5"),
             both = parse_cpu_class("cpu x 2 / 3");
  ASSERT_TRUE(plain && threads && slow && both);
  EXPECT_EQ(std::pair(plain->threads, plain->slowdown), std::pair(1, 1.0));
  EXPECT_EQ(std::pair(threads->threads, threads->slowdown), std::pair(4, 1.0));
  EXPECT_EQ(std::pair(slow->threads, slow->slowdown), std::pair(1, 2.5));
  EXPECT_EQ(std::pair(both->threads, both->slowdown), std::pair(2, 3.0));
}

TEST(CpuClass, OtherNamesAreNotRead) {
  for (const char* text : {"", "gpu", "cpu x 0", "cpu x", "cpu / 0.5", "cpu / 2 x 2", "cpu/2", "cpu / 2 ", "cpu / 1e9"})
    EXPECT_FALSE(parse_cpu_class(text)) << text;
}

TEST(SlowCpu, SleepsByTheProcessorTimeOfTheWork) {
  SlowCpu third(3);
  const Nanoseconds begin_ns = steady_now_ns();
  third.begin_work();
  const Nanoseconds work_began_ns = processor_time_ns(CLOCK_THREAD_CPUTIME_ID);
  volatile double sum = 0;
  for (int i = 0; i < 2'000'000; ++i) sum = sum + 1.0 / (i + 1);
  const Nanoseconds work_ns = processor_time_ns(CLOCK_THREAD_CPUTIME_ID) - work_began_ns;
  third.end_work();
  EXPECT_GE(steady_now_ns() - begin_ns, 3 * work_ns);
}

}  // namespace
}  // namespace frostpipe::test
