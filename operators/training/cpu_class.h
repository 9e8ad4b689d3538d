#pragma once
#include <optional>
#include <string_view>

#include "base/units.h"

namespace frostpipe {

/// A class of devices that are CPUs of this machine: "cpu", "cpu x 2" (two threads per rank), "cpu / 3" (a CPU that is
/// made to take three times as long), "cpu x 2 / 1.5".
struct CpuClass {
  int threads = 1;
  double slowdown = 1;  // 1 to 1000
};

/// Parses a device class. Returns nothing if it is not one of CPUs.
std::optional<CpuClass> parse_cpu_class(std::string_view text);

/// Makes a CPU as slow as its class says: after each piece of work, between begin_work() and end_work(), this thread
/// sleeps for slowdown - 1 times the processor time that it spent on the work. Time in which other processes delayed
/// the thread is therefore not multiplied. If the system wakes the thread late, it sleeps less the next time. For use
/// by the thread that made it.
class SlowCpu {
 public:
  explicit SlowCpu(double slowdown);
  void begin_work();
  void end_work();

 private:
  double slowdown_;
  Nanoseconds work_began_ns_ = 0;
  Nanoseconds overslept_ns_ = 0;
};

}  // namespace frostpipe
