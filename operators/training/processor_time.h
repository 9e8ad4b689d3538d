#pragma once
#include <ctime>

#include "base/units.h"

namespace frostpipe {

/// Returns the processor time of this thread (CLOCK_THREAD_CPUTIME_ID) or of all threads of this process
/// (CLOCK_PROCESS_CPUTIME_ID).
inline Nanoseconds processor_time_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * Nanoseconds{1'000'000'000} + time.tv_nsec;
}

}  // namespace frostpipe
