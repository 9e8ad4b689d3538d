#pragma once
#include <optional>
#include <string>

#include "base/units.h"

namespace frostpipe {

/// The resources that a computing process needs and that the system limits per process (ulimit).
struct ProcessNeeds {
  int num_ranks = 1;       // ranks of the job; every connection takes descriptors
  Bytes memory_bytes = 0;  // weights and tensors, beside LibTorch and its threads
  Bytes file_bytes = 0;    // size of the largest file that is written
  std::string file;        // name of that file
};

/// The limits of a process: a number of descriptors, and sizes in bytes. None = unlimited.
struct ProcessLimits {
  std::optional<std::int64_t> descriptors;
  std::optional<Bytes> address_space;
  std::optional<Bytes> file_bytes;
  std::optional<Bytes> stack;
};

/// Call this at the start of a process. It raises the limit of open files as far as allowed, gives this thread and
/// those that it starts a stack of the usual size, and lets a write beyond the limit of a file's size fail (EFBIG)
/// instead of ending the process (SIGXFSZ). It also takes back that SIGCHLD is ignored, which some shells and
/// supervisors pass on, and with which the system does not say how a child ended. Child processes inherit all of this.
void make_most_of_limits();

/// Returns the limits of this process.
ProcessLimits process_limits();

/// Throws InvalidInput if the stack is too small for any command. A stack overflow could not report itself.
void require_stack(const ProcessLimits& limits);

/// Throws InvalidInput that names the limit, the need and the value. Call this before anything is started: later, a
/// limit that is too low looks like another fault (a broken connection, a killed rank).
void require_within(const ProcessLimits& limits, const ProcessNeeds& needs);

}  // namespace frostpipe
