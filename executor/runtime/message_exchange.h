#pragma once
#include <ATen/core/Tensor.h>

#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/runtime/sends_ahead.h"
#include "plan/messages.h"
#include "plan/schedule.h"

namespace frostpipe {

/// What one pipeline rank of a lowered schedule sends and receives: the same in all iterations of a phase.
struct RankMessages {
  int pipeline_rank = 0;
  std::vector<int> ranks;  // by pipeline rank, of this rank's pipeline
  /// By stage and micro-batch: the pipeline rank that runs it.
  std::map<std::pair<int, int>, int> pipeline_ranks;
  int num_stages = 1, num_micro_batches = 1, num_slices = 1;
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
/// last ones until the end. A send does not block, but for a frozen stage, which gets nothing back: its messages may
/// outlast the iteration (SendsAhead). In virtual time the receiver asks for each of them, by a byte that it sends back
/// where it posts the receive; the wait for it ends when that has come, so a link's latency after the receive was
/// posted.
class MessageExchange {
 public:
  /// How the iteration receives.
  struct Receives {
    PostedReceives posted;
    std::function<bool(const Action&)> is_left_out;         // messages that the iteration does without
    std::function<at::Tensor(const Action& receive)> make;  // an uninitialised tensor
  };
  /// `first_tag`: of num_tags, which no other iteration under way has. All that is given must outlive the exchange.
  MessageExchange(const RankMessages& messages, int first_tag, ActiveGroups& groups, SendsAhead& ahead,
                  Receives receives);

  void send(const Action& action, const at::Tensor& tensor);
  /// Receives of one kind from one rank come in the order of their queue.
  at::Tensor receive(const Action& action);
  /// Waits until all that stages which train have sent has arrived.
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
  /// A message that a frozen stage sends, in virtual time.
  bool says_when_asked_for(const Action& message) const;
  /// Pipeline rank at the other end.
  int peer_of(const Action& message) const;
  Group& group_of(const Action& message) const;
  int tag_of(const Action& message) const;

  const RankMessages& messages_;
  int first_tag_;
  ActiveGroups& groups_;
  SendsAhead& ahead_;
  std::function<at::Tensor(const Action&)> make_;
  std::map<std::pair<int, ActionKind>, Queue> queues_;  // by sender and kind
  std::map<Action, Transfer> sends_;                    // of stages that train, until they are known to have arrived
  std::vector<Transfer> asked_;                         // for messages of frozen stages
};

}  // namespace frostpipe
