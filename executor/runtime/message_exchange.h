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

/// The part of each message that a tensor rank sends to and receives from pipeline ranks on other nodes. The tensor
/// ranks of the receiver gather the whole message. So each message crosses to the other node once, and not once for
/// each tensor rank (Megatron-LM's scatter and gather, docs/papers.md).
struct PartOfMessages {
  TensorSlice slice{};                     // of this tensor rank
  std::vector<bool> is_on_another_node{};  // by pipeline rank; empty: messages are sent whole
};

/// The messages of one pipeline rank in a lowered schedule, which are the same in all iterations of a phase.
struct RankMessages {
  int pipeline_rank = 0;
  std::vector<int> ranks;  // ranks of this rank's pipeline, by pipeline rank
  PartOfMessages part{};
  /// The pipeline rank that runs a stage for a micro-batch, by (stage, micro-batch).
  std::map<std::pair<int, int>, int> pipeline_ranks;
  int num_stages = 1, num_micro_batches = 1, num_slices = 1;
  int first_trainable_stage = 0;
  std::vector<ReceiveQueue> queues;
  /// For each receive, the sends that must have arrived by then, because its sender received them before.
  std::map<Action, std::vector<Action>> arrived_before;
};

/// Returns the messages of a pipeline rank. `lowered` must have a body only, without prologue and epilogue. `ranks` are
/// the ranks of this rank's pipeline, by pipeline rank.
RankMessages messages_of(const Schedule& lowered, int pipeline_rank, std::vector<int> ranks, PartOfMessages part = {});
/// Returns the number of tags that an iteration's messages use.
int num_tags(const RankMessages& messages);

/// The number of receives that are posted before they are needed.
enum class PostedReceives {
  none,   // each one is posted when it is needed: with NCCL an earlier one could block the work that it waits for
  ahead,  // as many as the receive queues say (ReceiveQueue::ahead)
  all,    // all receives of the iteration
};

/// The messages of a rank in one iteration. Sent tensors are kept until another message shows that they have arrived,
/// the last ones until the end. Sends do not block, except those of frozen stages, to which nothing is sent back: their
/// messages may outlast the iteration (SendsAhead). In virtual time the receiver requests each of these messages by a
/// byte, which it sends when it posts the receive; the receive completes at least a link's latency after that.
class MessageExchange {
 public:
  /// The settings of an iteration's receives.
  struct Receives {
    PostedReceives posted;
    std::function<bool(const Action&)> is_left_out;         // true for a message that is skipped
    std::function<at::Tensor(const Action& receive)> make;  // makes the tensor to receive into
  };
  /// `first_tag` is the first of num_tags() tags, which no other iteration in progress may use. All arguments must
  /// outlive the exchange.
  MessageExchange(const RankMessages& messages, int first_tag, ActiveGroups& groups, SendsAhead& ahead,
                  Receives receives);

  /// Starts to send a tensor; with a frozen stage, first waits as SendsAhead says.
  void send(const Action& action, const at::Tensor& tensor);
  /// Waits for a message and returns it. Receives of one kind from one rank must be called in the order of their queue.
  at::Tensor receive(const Action& action);
  /// Waits until all sends of trainable stages, and all requests, have arrived.
  void finish();

 private:
  struct Posted {
    Action action;
    Transfer transfer;
    at::Tensor whole;  // if `transfer` receives only this tensor rank's part of it
  };
  struct Queue {
    std::deque<Action> waiting{};
    std::deque<Posted> posted{};
    std::size_t ahead = 0;
  };

  void post(Queue& queue, std::size_t up_to);
  /// Waits for this send, if it is in progress, and releases its tensor.
  void finish_send(const Action& action);
  /// True for a message that a frozen stage sends in virtual time.
  bool is_requested_by_receiver(const Action& message) const;
  /// True for a message of which each tensor rank sends a part.
  bool is_scattered(const Action& message) const;
  /// Returns the pipeline rank at the other end.
  int peer_of(const Action& message) const;
  Group& group_of(const Action& message) const;
  int tag_of(const Action& message) const;

  const RankMessages& messages_;
  int first_tag_;
  ActiveGroups& groups_;
  SendsAhead& ahead_;
  std::function<at::Tensor(const Action&)> make_;
  std::map<std::pair<int, ActionKind>, Queue> queues_;  // by sender and kind
  std::map<Action, Transfer> sends_;                    // of trainable stages, until they are known to have arrived
  std::vector<Transfer> asked_;                         // requests for messages of frozen stages
};

}  // namespace frostpipe
