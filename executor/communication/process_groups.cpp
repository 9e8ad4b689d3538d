#include "executor/communication/process_groups.h"

#include <c10/util/Exception.h>

#include <exception>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>

namespace frostpipe {

ProcessGroups::ProcessGroups() = default;
ProcessGroups::~ProcessGroups() { wait(); }

void ProcessGroups::add(const c10::intrusive_ptr<c10d::Backend>& backend) {
  const std::lock_guard lock(mutex_);
  std::erase_if(backends_, [](const auto& known) { return known.expired(); });
  backends_.emplace_back(backend);
  if (are_aborted_) start_abort(backend);
}

void ProcessGroups::begin_abort() {
  const std::lock_guard lock(mutex_);
  if (are_aborted_.exchange(true)) return;  // set first, since an abort lets work continue without its message
  for (const auto& known : backends_)
    if (const auto backend = known.lock()) start_abort(backend);
}

void ProcessGroups::abort() {
  begin_abort();
  wait();
}

void ProcessGroups::wait() {
  std::vector<std::thread> aborting;
  {
    const std::lock_guard lock(mutex_);
    aborting.swap(aborting_);
  }
  for (std::thread& one : aborting) one.join();
}

/// A rank that waits for a group that cannot be aborted is ended by the launcher.
void ProcessGroups::start_abort(c10::intrusive_ptr<c10d::Backend> backend) {
  aborting_.emplace_back([backend = std::move(backend)] {
    try {
      backend->abort();
    } catch (const std::exception& error) {
      TORCH_WARN("aborting a process group: ", error.what());
    }
  });
}

}  // namespace frostpipe
