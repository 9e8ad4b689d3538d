#pragma once
#include <optional>
#include <string>

#include "base/units.h"

namespace frostpipe {

/// What a process that computes takes of what the system allows one process (ulimit).
struct ProcessNeeds {
  int num_ranks = 1;       // of the job: their connections take descriptors
  Bytes memory_bytes = 0;  // weights and tensors, beside LibTorch and what it starts
  Bytes file_bytes = 0;    // of the largest file that is written
  std::string file;        // its name
};

/// What the system allows; none: as much as there is.
struct ProcessLimits {
  std::optional<std::int64_t> descriptors;
  std::optional<Bytes> address_space;
  std::optional<Bytes> file_bytes;
  std::optional<Bytes> stack;
};

/// For the start of a process: as many descriptors as the system lets it have, a stack of the usual size for this
/// thread and for those that it starts, and a file that grows beyond its limit is an error of the write (EFBIG), not
/// the end of the process (SIGXFSZ). Processes that it starts inherit all three.
void make_most_of_limits();

/// Those of this process.
ProcessLimits process_limits();

/// Throws InvalidInput where a stack is too small for what any command does: a stack that overflows cannot say so.
void require_stack(const ProcessLimits& limits);

/// Throws InvalidInput that names the limit, what is needed and what there is. So that it is said before anything is
/// started: found later, each of them looks like something else (a connection that breaks, a rank that is killed).
void require_within(const ProcessLimits& limits, const ProcessNeeds& needs);

}  // namespace frostpipe
