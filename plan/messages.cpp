#include "plan/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace frostpipe {

namespace {

struct Position {
  int pipeline_rank = 0;
  int index = 0;
};

/// Finds the position of every SEND and RECV.
class MessagePositions {
 public:
  explicit MessagePositions(const Schedule& lowered) {
    for (int rank = 0; rank < num_pipeline_ranks(lowered); ++rank) {
      const auto& list = lowered.body[rank];
      for (int index = 0; index < static_cast<int>(list.size()); ++index) {
        const Action& action = list[index];
        if (is_send(action.kind) || is_receive(action.kind))
          positions_.emplace_back(of_kind(action, action.kind), Position{rank, index});
      }
    }
    std::sort(positions_.begin(), positions_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  }

  Position of(const Action& message) const {
    const auto found = std::lower_bound(positions_.begin(), positions_.end(), of_kind(message, message.kind),
                                        [](const auto& entry, const Action& action) { return entry.first < action; });
    FROSTPIPE_CHECK(found != positions_.end() && found->first == of_kind(message, message.kind),
                    "a valid schedule has both ends of each message");
    return found->second;
  }

 private:
  std::vector<std::pair<Action, Position>> positions_;
};

/// Runs the lists until no rank can go on. The point that each rank reaches depends neither on the order in which ranks
/// take their turns nor on whether a queue posts its receives at the start or later.
class BlockingRun {
 public:
  BlockingRun(const Schedule& lowered, std::span<const ReceiveQueue> queues)
      : lowered_(lowered),
        positions_(lowered),
        queues_(queues.begin(), queues.end()),
        performed_(lowered.body.size(), 0),
        received_(queues.size(), 0) {
    for (const auto& list : lowered.body) {
      partners_.emplace_back(list.size());
      in_queue_.emplace_back(list.size());
    }
    for (int rank = 0; rank < num_pipeline_ranks(lowered); ++rank) {
      for (std::size_t index = 0; index < lowered.body[rank].size(); ++index) {
        const Action& action = lowered.body[rank][index];
        if (is_send(action.kind) || is_receive(action.kind)) partners_[rank][index] = positions_.of(matching(action));
        unreduced_ += action.kind == ActionKind::reduce_gradient ? 1 : 0;
      }
    }
    for (std::size_t queue = 0; queue < queues_.size(); ++queue) {
      for (std::size_t place = 0; place < queues_[queue].receives.size(); ++place) {
        const Position position = positions_.of(queues_[queue].receives[place]);
        in_queue_[position.pipeline_rank][position.index] =
            QueuePlace{static_cast<int>(queue), static_cast<int>(place)};
      }
    }
  }

  void go_on() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < num_pipeline_ranks(lowered_); ++rank) {
        for (; !is_finished(rank) && may_perform(front(rank)); moved = true) perform(front(rank));
      }
    }
  }

  bool is_finished() const {
    for (int rank = 0; rank < num_pipeline_ranks(lowered_); ++rank)
      if (!is_finished(rank)) return false;
    return true;
  }

  /// Lets every queue that blocks a sender post one more receive. Each queue has one sender.
  void post_more() {
    bool posts_more = false;
    for (int rank = 0; rank < num_pipeline_ranks(lowered_); ++rank) {
      if (is_finished(rank) || !is_send(action_at(front(rank)).kind)) continue;
      ++queues_[queue_place(partner(front(rank)))->queue].ahead;
      posts_more = true;
    }
    FROSTPIPE_CHECK(posts_more, "ranks of a valid schedule wait for each other only where a send blocks");
  }

  const std::vector<ReceiveQueue>& queues() const { return queues_; }

  /// Describes a cycle: every rank that is not finished waits for another such rank.
  std::string cycle() const {
    int rank = 0;
    while (is_finished(rank)) ++rank;
    for (std::size_t i = 0; i < lowered_.body.size(); ++i) rank = awaited(front(rank)).pipeline_rank;
    const int first = rank;
    std::string text = describe(front(first));
    do {
      const Position next = awaited(front(rank));
      text += " waits for " + describe(partner_or(next, front(rank)));
      if (is_send(action_at(front(rank)).kind) && next.index != partner(front(rank)).index)
        text += fmt::format(", which is posted after {}", describe(next));
      rank = next.pipeline_rank;
      if (next.index != front(rank).index) text += fmt::format(", which stands after {}", describe(front(rank)));
      if (rank != first) text += ", which";
    } while (rank != first);
    return text;
  }

 private:
  struct QueuePlace {
    int queue = 0;
    int place = 0;
  };

  const Action& action_at(Position position) const { return lowered_.body[position.pipeline_rank][position.index]; }
  Position partner(Position message) const { return partners_[message.pipeline_rank][message.index]; }
  /// Returns none for a receive that is posted only when the rank reaches it.
  std::optional<QueuePlace> queue_place(Position receive) const {
    return in_queue_[receive.pipeline_rank][receive.index];
  }
  Position front(int rank) const { return {rank, performed_[rank]}; }
  bool is_finished(int rank) const { return performed_[rank] == static_cast<int>(lowered_.body[rank].size()); }

  bool is_posted(Position receive) const {
    const auto at = queue_place(receive);
    if (at && at->place < received_[at->queue] + queues_[at->queue].ahead) return true;
    return performed_[receive.pipeline_rank] >= receive.index;
  }

  bool may_perform(Position position) const {
    const ActionKind kind = action_at(position).kind;
    if (is_send(kind)) return is_posted(partner(position));
    if (is_receive(kind)) return performed_[partner(position).pipeline_rank] > partner(position).index;
    // Gradient clipping needs the norm over all stages.
    return kind != ActionKind::optimizer_step || unreduced_ == 0;
  }

  void perform(Position position) {
    const ActionKind kind = action_at(position).kind;
    if (const auto at = queue_place(position)) ++received_[at->queue];
    unreduced_ -= kind == ActionKind::reduce_gradient ? 1 : 0;
    ++performed_[position.pipeline_rank];
  }

  /// Returns the action that must be performed before a blocked one can be. If it is a receive that is posted only when
  /// its rank reaches it, the rank must reach it.
  Position awaited(Position blocked) const {
    const Action& action = action_at(blocked);
    if (action.kind == ActionKind::optimizer_step) return first_unreduced();
    const auto at = queue_place(partner(blocked));
    if (!at || is_receive(action.kind)) return partner(blocked);
    const ReceiveQueue& queue = queues_[at->queue];
    return queue.ahead == 0 ? partner(blocked) : positions_.of(queue.receives[at->place - queue.ahead]);
  }

  Position first_unreduced() const {
    for (int rank = 0; rank < num_pipeline_ranks(lowered_); ++rank) {
      for (Position position = front(rank); position.index < static_cast<int>(lowered_.body[rank].size());
           ++position.index)
        if (action_at(position).kind == ActionKind::reduce_gradient) return position;
    }
    FROSTPIPE_CHECK(false, "an optimizer step is blocked by a reduction");
  }

  /// Returns the other end of a blocked message, or `otherwise` for an optimizer step.
  Position partner_or(Position otherwise, Position blocked) const {
    return action_at(blocked).kind == ActionKind::optimizer_step ? otherwise : partner(blocked);
  }

  std::string describe(Position position) const {
    return fmt::format("{} (pipeline rank {}, {})", to_string(action_at(position)), position.pipeline_rank,
                       place_in_list(lowered_.body[position.pipeline_rank], position.index));
  }

  const Schedule& lowered_;
  MessagePositions positions_;
  std::vector<ReceiveQueue> queues_;
  std::vector<int> performed_;                                    // [pipeline_rank]: number of actions
  std::vector<int> received_;                                     // [queue]: number of receives
  std::vector<std::vector<Position>> partners_;                   // [pipeline_rank][index]
  std::vector<std::vector<std::optional<QueuePlace>>> in_queue_;  // [pipeline_rank][index]
  int unreduced_ = 0;
};

}  // namespace

std::vector<ReceiveQueue> receive_queues(const Schedule& lowered, int least_ahead) {
  std::map<std::tuple<int, int, ActionKind>, std::vector<Action>> receives;
  for (int rank = 0; rank < num_pipeline_ranks(lowered); ++rank) {
    for (const Action& action : lowered.body[rank]) {
      if (!is_receive(action.kind)) continue;
      receives[{rank, pipeline_rank_of(lowered, matching(action).stage, *action.micro_batch), action.kind}].push_back(
          action);
    }
  }
  std::vector<ReceiveQueue> queues;
  for (auto& [key, of_queue] : receives) {
    const auto [rank, from, kind] = key;
    const int ahead = std::min(least_ahead, static_cast<int>(of_queue.size()));
    queues.push_back({rank, from, kind, std::move(of_queue), ahead});
  }
  BlockingRun run(lowered, queues);
  for (run.go_on(); !run.is_finished(); run.go_on()) run.post_more();
  return run.queues();
}

std::optional<std::string> blocking_cycle(const Schedule& lowered, std::span<const ReceiveQueue> queues) {
  BlockingRun run(lowered, queues);
  run.go_on();
  if (run.is_finished()) return std::nullopt;
  return run.cycle();
}

std::optional<Action> received_out_of_order(const Schedule& lowered) {
  std::map<std::tuple<int, int, ActionKind>, std::vector<Action>> sent;  // by receiver, sender and kind of the receive
  for (int rank = 0; rank < num_pipeline_ranks(lowered); ++rank) {
    for (const Action& action : lowered.body[rank]) {
      if (!is_send(action.kind)) continue;
      const Action receive = matching(action);
      sent[{pipeline_rank_of(lowered, receive.stage, *receive.micro_batch), rank, receive.kind}].push_back(receive);
    }
  }
  for (const ReceiveQueue& queue : receive_queues(lowered)) {
    const std::vector<Action>& in_order = sent[{queue.pipeline_rank, queue.from, queue.kind}];
    const auto [receive, other] = std::ranges::mismatch(queue.receives, in_order);
    if (receive != queue.receives.end()) return *receive;
  }
  return std::nullopt;
}

Schedule with_receives_in_send_order(const Schedule& lowered) {
  Schedule placed = lowered;
  for (auto& list : placed.body) list.clear();
  const MessagePositions positions(lowered);
  std::vector<std::vector<bool>> is_placed;  // [pipeline_rank][index], receives only
  for (const auto& list : lowered.body) is_placed.emplace_back(list.size());
  std::vector<std::size_t> next(lowered.body.size(), 0);

  const auto skip_placed_receives = [&](int rank) {
    while (next[rank] < lowered.body[rank].size() && is_placed[rank][next[rank]]) ++next[rank];
  };
  // Takes one compute action, or an overlapped pair, and its sends.
  const auto take_turn = [&](int rank) {
    const auto& list = lowered.body[rank];
    skip_placed_receives(rank);
    if (next[rank] == list.size() || is_receive(list[next[rank]].kind)) return false;
    do {
      const Action& action = list[next[rank]++];
      placed.body[rank].push_back(action);
      if (is_send(action.kind)) {
        const Position receive = positions.of(matching(action));
        is_placed[receive.pipeline_rank][receive.index] = true;
        placed.body[receive.pipeline_rank].push_back(matching(action));
      }
      skip_placed_receives(rank);
    } while (next[rank] < list.size() && (is_send(list[next[rank]].kind) || list[next[rank] - 1].overlaps_next));
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int rank = 0; rank < num_pipeline_ranks(lowered); ++rank) moved = take_turn(rank) || moved;
  }
  for (int rank = 0; rank < num_pipeline_ranks(lowered); ++rank)
    FROSTPIPE_CHECK(next[rank] == lowered.body[rank].size(), "ranks of a valid schedule can always go on");
  return placed;
}

}  // namespace frostpipe
