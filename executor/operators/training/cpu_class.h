#pragma once
#include <optional>
#include <string_view>

#include "profiles/units.h"

namespace frostpipe {

/// A class of devices that are CPUs of this machine: "cpu", "cpu x 2" (threads of a rank), "cpu / 3" (a CPU that takes
/// three times as long), "cpu x 2 / 1.5".
struct CpuClass {
  int threads = 1;
  double slowdown = 1;  // at least 1
};

/// Of a device class, or none if it is another one.
std::optional<CpuClass> parse_cpu_class(std::string_view text);

/// Makes a CPU as slow as its class says: sleeps after each piece of work. What it sleeps too long, because the system
/// wakes it late, it sleeps less the next time.
class SlowCpu {
 public:
  explicit SlowCpu(double slowdown);
  /// After work that began at `begin_ns` (steady_now_ns) and ends now.
  void slow_down(Nanoseconds begin_ns);

 private:
  double slowdown_;
  Nanoseconds overslept_ns_ = 0;
};

}  // namespace frostpipe
