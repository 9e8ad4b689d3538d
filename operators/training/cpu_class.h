#pragma once
#include <optional>
#include <string_view>

#include "base/units.h"

namespace frostpipe {

/// A class of devices that are CPUs of this machine: "cpu", "cpu x 2" (threads of a rank), "cpu / 3" (a CPU that takes
/// three times as long), "cpu x 2 / 1.5".
struct CpuClass {
  int threads = 1;
  double slowdown = 1;  // at least 1
};

/// Parses a device class; none if it is not one of CPUs.
std::optional<CpuClass> parse_cpu_class(std::string_view text);

/// Makes a CPU as slow as its class says: sleeps after each piece of work, by the processor time that this thread took
/// for it; that others held it up does not count twice. What it sleeps too long, because the system wakes it late, it
/// sleeps less the next time.
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
