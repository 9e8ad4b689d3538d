#include "executor/process/process_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <csignal>

#include "profiles/error.h"
#include "profiles/system_reason.h"

namespace frostpipe {
namespace {

// Measured on Linux with LibTorch's CPU build: a rank that trains, changes its layout and writes checkpoints has at
// most 12 descriptors open with three other ranks, one of them for each, and maps 0.9 GiB beside its tensors.
constexpr std::int64_t kOwnDescriptors = 32;
constexpr Bytes kOwnAddressSpace = Bytes{5} << 28;

/// Of a rank, or of the launcher: both ends of each connection count as its own until the ranks have fetched them.
std::int64_t descriptors_for(std::int64_t num_ranks) { return kOwnDescriptors + num_ranks * (num_ranks - 1); }

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
