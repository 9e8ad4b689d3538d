#include "serving/server/wake_up.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/system_reason.h"

namespace frostpipe {

WakeUp::WakeUp() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_.is_open()) throw RuntimeFailure("waiting for requests: " + system_reason(errno));
}

void WakeUp::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written =
      write(event_.number(), &one, sizeof one);  // fails only if the counter is full, which wakes too
}

void WakeUp::clear() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(event_.number(), &count, sizeof count);
}

}  // namespace frostpipe
