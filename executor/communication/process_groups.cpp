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
  if (have_ended_) start_to_end(backend);
}

void ProcessGroups::begin_to_end() {
  const std::lock_guard lock(mutex_);
  if (have_ended_.exchange(true)) return;  // set before any abort lets work continue without its message
  for (const auto& known : backends_)
    if (const auto backend = known.lock()) start_to_end(backend);
}

void ProcessGroups::end() {
  begin_to_end();
  wait();
}

void ProcessGroups::wait() {
  std::vector<std::thread> ending;
  {
    const std::lock_guard lock(mutex_);
    ending.swap(ending_);
  }
  for (std::thread& one : ending) one.join();
}

/// A rank that waits for a group that cannot be aborted is ended by the launcher.
void ProcessGroups::start_to_end(c10::intrusive_ptr<c10d::Backend> backend) {
  ending_.emplace_back([backend = std::move(backend)] {
    try {
      backend->abort();
    } catch (const std::exception& error) {
      TORCH_WARN("ending a group: ", error.what());
    }
  });
}

}  // namespace frostpipe
