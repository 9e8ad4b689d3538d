#include "base/process/process_limits.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "base/error.h"
#include "base/system_reason.h"

namespace frostpipe {
namespace {

// Measured on Linux with LibTorch's CPU build: among four ranks, a rank that trains, changes its layout and writes
// checkpoints has at most 12 descriptors open, one of them for each other rank, and maps 0.9 GiB beside its tensors.
constexpr std::int64_t kOwnDescriptors = 32;
constexpr Bytes kOwnAddressSpace = Bytes{5} << 28;

constexpr Bytes kUsualStack = Bytes{8} << 20;  // Linux's default
constexpr Bytes kLeastStack = Bytes{1} << 20;  // the core's tests pass with an eighth of this

/// Returns the descriptors that suffice for a rank, and for the launcher, which has both ends of every connection until
/// the ranks have received them.
std::int64_t descriptors_for(std::int64_t num_ranks) { return kOwnDescriptors + num_ranks * (num_ranks - 1); }

/// Raises the stack to the usual size. RLIMIT_STACK is also the default stack of a thread, but glibc reads it before
/// main, so that default is set too.
void raise_stack() {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kUsualStack) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, kUsualStack);
  if (setrlimit(RLIMIT_STACK, &limit) != 0) return;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, limit.rlim_cur) == 0) pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

}  // namespace

void make_most_of_limits() {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
  raise_stack();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // if this is refused, require_within checks the old limit
}

ProcessLimits process_limits() {
  return {.descriptors = process_limit(RLIMIT_NOFILE),
          .address_space = process_limit(RLIMIT_AS),
          .file_bytes = process_limit(RLIMIT_FSIZE),
          .stack = process_limit(RLIMIT_STACK)};
}

void require_stack(const ProcessLimits& limits) {
  if (!limits.stack || *limits.stack >= kLeastStack) return;
  throw InvalidInput(
      "limit of the stack (ulimit -s)",
      fmt::format("must be at least {} KiB (the usual limit is {} KiB)", kLeastStack / 1024, kUsualStack / 1024),
      format_bytes(*limits.stack));
}

void require_within(const ProcessLimits& limits, const ProcessNeeds& needs) {
  const std::int64_t descriptors = descriptors_for(needs.num_ranks);
  if (limits.descriptors && *limits.descriptors < descriptors) {
    throw InvalidInput(
        "limit of open files (ulimit -n)",
        fmt::format("must be at least {} for {} rank{}", descriptors, needs.num_ranks, needs.num_ranks == 1 ? "" : "s"),
        std::to_string(*limits.descriptors));
  }
  const Bytes address_space = kOwnAddressSpace + needs.memory_bytes;
  if (limits.address_space && *limits.address_space < address_space) {
    throw InvalidInput("limit of memory that a process may map (ulimit -v)",
                       fmt::format("must be at least {} KiB ({}: LibTorch and its threads {}, weights and tensors {})",
                                   (address_space + 1023) / 1024, format_bytes(address_space),
                                   format_bytes(kOwnAddressSpace), format_bytes(needs.memory_bytes)),
                       format_bytes(*limits.address_space));
  }
  if (limits.file_bytes && *limits.file_bytes < needs.file_bytes) {
    throw InvalidInput(
        "limit of a file's size (ulimit -f)",
        fmt::format("must be at least {} KiB, which {} takes", (needs.file_bytes + 1023) / 1024, needs.file),
        format_bytes(*limits.file_bytes));
  }
}

}  // namespace frostpipe
