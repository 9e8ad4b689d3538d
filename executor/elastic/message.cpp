#include "executor/elastic/message.h"

#include <fmt/format.h>

#include <stdexcept>

#include "executor/elastic/peer.h"

namespace frostpipe {

void Message::wait(std::chrono::milliseconds limit) const {
  std::unique_lock lock(state_->monitor->mutex);
  const auto is_done = [this] { return state_->is_done; };
  if (limit.count() == 0) {
    state_->monitor->changed.wait(lock, is_done);
  } else if (!state_->monitor->changed.wait_for(lock, limit, is_done)) {
    throw std::runtime_error(fmt::format("not done after {} ms", limit.count()));
  }
  if (!state_->error.empty()) throw std::runtime_error(state_->error);
}

bool Message::is_done() const {
  const std::lock_guard lock(state_->monitor->mutex);
  return state_->is_done;
}

}  // namespace frostpipe
