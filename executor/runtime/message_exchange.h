#pragma once
#include <ATen/core/Tensor.h>

#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "executor/communication/communicator.h"
#include "plan/messages.h"
#include "plan/schedule.h"

namespace frostpipe {

/// What one pipeline rank of a lowered schedule sends and receives: the same in all iterations of a phase.
struct RankMessages {
  int pipeline_rank = 0;
  std::vector<int> ranks;  // by pipeline rank, of this rank's pipeline
  std::vector<int> pipeline_rank_of_stage;
  int num_micro_batches = 1, num_slices = 1;
  int first_trainable_stage = 0;
  std::vector<ReceiveQueue> queues;
  /// By receive: the sends that have arrived when it has, for its sender has received them before.
  std::map<Action, std::vector<Action>> arrived_before;
};

/// `lowered` has only a body. `ranks`: those of its pipeline ranks.
RankMessages messages_of(const Schedule& lowered, int pipeline_rank, std::vector<int> ranks);
/// Tags of an iteration's messages.
int num_tags(const RankMessages& messages);

/// How many receives are posted before they are needed.
enum class PostedReceives {
  none,   // each when it is asked for: with NCCL an early one can hold up what it waits for
  ahead,  // as many as the queues say
  all,    // all of the iteration
};

/// The messages of a rank in one iteration. What is sent is kept until another message says that it has arrived, the
/// last ones until the end. A send does not block, but for a frozen stage: it gets nothing back, has two messages of
/// the iteration under way, and waits for the older one before it sends another. In real time that ends when the
/// message is received. In virtual time the receiver asks for it, by a byte that it sends back where it posts the
/// receive; the wait ends when that has come, so a link's latency after the receive was posted.
class MessageExchange {
 public:
  /// `first_tag`: of num_tags, which no other iteration under way has. `is_left_out`: messages that this iteration does
  /// without. `make`: an uninitialised tensor for a receive. All that is given must outlive the exchange.
  MessageExchange(const RankMessages& messages, int first_tag, ActiveGroups& groups, PostedReceives posted,
                  const std::function<bool(const Action&)>& is_left_out,
                  std::function<at::Tensor(const Action& receive)> make);

  void send(const Action& action, const at::Tensor& tensor);
  /// Receives of one kind from one rank come in the order of their queue.
  at::Tensor receive(const Action& action);
  /// Waits until all that was sent has arrived.
  void finish();

 private:
  struct Queue {
    std::deque<Action> waiting{};
    std::deque<std::pair<Action, Transfer>> posted{};
    std::size_t ahead = 0;
  };

  void post(Queue& queue, std::size_t up_to);
  /// Waits for this send, if it is under way, and lets go of its tensor.
  void finish_send(const Action& action);
  void wait_for(const Action& send, Transfer& transfer);
  void wait_for_older_ones(std::deque<Action>& under_way);
  /// A message that a frozen stage sends, in virtual time.
  bool says_when_asked_for(const Action& message) const;
  /// Pipeline rank at the other end.
  int peer_of(const Action& message) const;
  Group& group_of(const Action& message) const;
  int tag_of(const Action& message) const;

  const RankMessages& messages_;
  int first_tag_;
  ActiveGroups& groups_;
  std::function<at::Tensor(const Action&)> make_;
  std::map<std::pair<int, ActionKind>, Queue> queues_;  // by sender and kind
  std::map<Action, Transfer> sends_;                    // until they are known to have arrived
  std::map<int, std::deque<Action>> of_frozen_stage_;   // sends under way, oldest first; by stage
  std::vector<Transfer> asked_;                         // for messages of frozen stages
};

}  // namespace frostpipe
