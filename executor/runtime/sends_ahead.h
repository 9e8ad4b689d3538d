#pragma once
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "executor/communication/group.h"

namespace frostpipe {

/// The messages of wholly frozen stages that are under way. Nothing comes back that says that they have arrived, so a
/// stage waits for its oldest one before it has more than `most` under way: with as many as an iteration has, it is a
/// whole iteration ahead of its receiver at most.
class SendsAhead {
 public:
  explicit SendsAhead(std::size_t most) : most_(most) {}

  /// Before the stage sends another one.
  void make_room(int stage) {
    for (std::deque<Sent>& sent = of_stage_[stage]; sent.size() >= most_; sent.pop_front()) sent.front().wait();
  }
  /// `asked`: a message by which the receiver says that it has asked for this one.
  void add(int stage, Transfer send, std::optional<Transfer> asked) {
    of_stage_[stage].push_back({std::move(send), std::move(asked)});
  }
  /// Waits until all have arrived.
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

  std::size_t most_;
  std::map<int, std::deque<Sent>> of_stage_;  // oldest first
};

}  // namespace frostpipe
