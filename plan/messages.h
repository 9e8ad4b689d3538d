#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/schedule.h"

namespace frostpipe {

// The model of messages here: a rank performs its list in order. A SEND blocks until its RECV is posted, and a RECV
// until its SEND has ended. A receive of a queue may be posted before the rank reaches it; any other is posted when the
// rank reaches it. Schedules must be valid (validate) and have only a body; overlapping iterations must be unrolled.

/// The receives of one kind that a rank gets from one other rank, in the order of its list.
struct ReceiveQueue {
  int pipeline_rank = 0;
  int from = 0;  // pipeline rank of the sender
  ActionKind kind = ActionKind::recv_forward;
  std::vector<Action> receives;
  /// Number of receives that are posted at any time: the first one that has not been performed and those after it.
  int ahead = 0;
  bool operator==(const ReceiveQueue&) const = default;
};

/// Returns queues with which no rank waits forever, ordered by receiver, sender and kind. Each queue posts
/// `least_ahead` receives, or all if it has fewer. It posts more only where senders would otherwise wait for each
/// other: whenever no rank can go on, each queue that blocks a sender posts one more. This ends, since no send blocks
/// once all receives are posted.
std::vector<ReceiveQueue> receive_queues(const Schedule& lowered, int least_ahead = 2);

/// Describes the cycle of actions in which ranks wait for each other forever; none if there is no cycle. A receive that
/// is in none of the queues is posted when its rank reaches it.
std::optional<std::string> blocking_cycle(const Schedule& lowered, std::span<const ReceiveQueue> queues);

/// Returns the first receive of a rank that precedes another one of the same kind and sender whose message is sent
/// earlier, or none. If messages match by order alone, these two would be swapped. No builder makes such a schedule.
std::optional<Action> received_out_of_order(const Schedule& lowered);

/// Returns the schedule with each receive where PyTorch places it, which is where its send is issued if the ranks take
/// turns, each with one compute action and its sends. Compute and sends keep their order. PyTorch posts a receive when
/// the rank reaches it and matches the messages of two ranks by order alone, whatever their kind. All lists are then
/// parts of one order in which each SEND is followed by its RECV, so messages match and blocking sends cannot deadlock.
Schedule with_receives_in_send_order(const Schedule& lowered);

}  // namespace frostpipe
