#include "executor/job/process_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <csignal>

#include "profiles/error.h"
#include "profiles/system_reason.h"

namespace frostpipe {
namespace {

// Measured on Linux with LibTorch's CPU build: a rank that trains has 32 descriptors open with one other rank and 47
// with three, twice the connections while it changes its layout, and maps 1.1 GiB (2 ranks) to 1.3 GiB (4) beside its
// tensors; below that some thread or connection cannot be made.
constexpr std::int64_t kOwnDescriptors = 64, kDescriptorsPerPeer = 8;
constexpr Bytes kOwnAddressSpace = Bytes{3} << 29;

}  // namespace

void make_most_of_limits() {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // where it is refused, require_within says whether the old one is enough
}

ProcessLimits process_limits() {
  return {.descriptors = process_limit(RLIMIT_NOFILE),
          .address_space = process_limit(RLIMIT_AS),
          .file_bytes = process_limit(RLIMIT_FSIZE)};
}

void require_within(const ProcessLimits& limits, const ProcessNeeds& needs) {
  const std::int64_t descriptors = kOwnDescriptors + kDescriptorsPerPeer * (needs.num_ranks - 1);
  if (limits.descriptors && *limits.descriptors < descriptors) {
    throw InvalidInput("limit of open files (ulimit -n)",
                       fmt::format("must be at least {} for each of {} rank{}", descriptors, needs.num_ranks,
                                   needs.num_ranks == 1 ? "" : "s"),
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
