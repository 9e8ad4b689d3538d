#pragma once
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "executor/communication/group.h"

namespace frostpipe {

/// Messages of completely frozen stages that are in progress. No message comes back to show that they have arrived, so
/// a stage waits for its oldest one before it has more than `most` in progress. If `most` is the number of a stage's
/// messages per iteration, the stage is at most one iteration ahead of its receiver.
class SendsAhead {
 public:
  explicit SendsAhead(std::size_t most) : max_(most) {}

  /// Must be called before the stage sends another message.
  void make_room(int stage) {
    for (std::deque<Sent>& sent = of_stage_[stage]; sent.size() >= max_; sent.pop_front()) sent.front().wait();
  }
  /// `asked` is the receiver's request for this message.
  void add(int stage, Transfer send, std::optional<Transfer> asked) {
    of_stage_[stage].push_back({std::move(send), std::move(asked)});
  }
  /// Waits until all messages have arrived.
  void finish() {
    for (auto& [stage, sent] : of_stage_)
      for (; !sent.empty(); sent.pop_front()) sent.front().wait();
  }

 private:
  struct Sent {
    Transfer transfer;
    std::optional<Transfer> asked;
    void wait() {
      transfer.wait();
      if (asked) asked->wait();
    }
  };

  std::size_t max_;
  std::map<int, std::deque<Sent>> of_stage_;  // oldest first
};

}  // namespace frostpipe
