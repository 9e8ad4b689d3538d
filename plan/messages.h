#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/schedule.h"

namespace frostpipe {

// Messages whose sends block until their receives are posted. Here a rank performs its list in order, a SEND ends once
// its RECV is posted, and a RECV once its SEND has ended. A receive may be posted before the rank comes to it, else it
// is posted where it stands. Schedules are valid (validate) and have only a body; what overlaps is unrolled.

/// The receives of one kind that a rank gets from one other, in the order of its list.
struct ReceiveQueue {
  int pipeline_rank = 0;
  int from = 0;  // pipeline rank
  ActionKind kind = ActionKind::recv_forward;
  std::vector<Action> receives;
  /// So many are posted at any time: the first one that has not been performed, and those after it.
  int ahead = 0;
  bool operator==(const ReceiveQueue&) const = default;
};

/// Queues with which no rank waits forever, by receiver, sender and kind. Each posts `least_ahead` receives, or all if
/// it has fewer, and more only where senders would wait for each other otherwise: whenever no rank can go on, each
/// queue that a sender is blocked on posts one more. Where all are posted no send blocks, so this ends.
std::vector<ReceiveQueue> receive_queues(const Schedule& lowered, int least_ahead = 2);

/// The cycle of actions in which ranks wait for each other forever, or none. A receive of none of the queues is posted
/// where it stands.
std::optional<std::string> blocking_cycle(const Schedule& lowered, std::span<const ReceiveQueue> queues);

/// The first receive of a rank that stands before one of the same kind and sender whose message is sent earlier, or
/// none. No builder has one; where messages match by their order alone, they would be mistaken for each other.
std::optional<Action> received_out_of_order(const Schedule& lowered);

/// The same order of compute and sends, with each receive where PyTorch places it: on its rank when the send is issued,
/// if all ranks take turns. PyTorch posts a receive where it stands and matches messages of two ranks by their order
/// alone, whatever their kind. All lists are parts of one order in which each SEND is followed by its RECV: so messages
/// match, and blocking sends cannot deadlock.
Schedule with_receives_in_send_order(const Schedule& lowered);

}  // namespace frostpipe
