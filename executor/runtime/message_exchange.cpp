#include "executor/runtime/message_exchange.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "base/error.h"
#include "executor/runtime/stage_compute.h"

namespace frostpipe {
namespace {

bool is_activation(const Action& message) {
  return message.kind == ActionKind::send_forward || message.kind == ActionKind::recv_forward;
}

/// Returns the stage at the other end.
int other_stage(const Action& message) {
  const bool is_next = message.kind == ActionKind::send_forward || message.kind == ActionKind::recv_backward;
  return message.stage + (is_next ? 1 : -1);
}

/// Returns the number of values in this part of `count` values.
std::int64_t count_in(const TensorSlice& slice, std::int64_t count) {
  return slice.end_in(count) - slice.begin_in(count);
}

/// Returns this part of the tensor's values, flat.
at::Tensor own_part_of(const at::Tensor& tensor, const TensorSlice& slice) {
  const std::int64_t count = tensor.numel();
  return tensor.detach().contiguous().view({-1}).narrow(0, slice.begin_in(count), count_in(slice, count));
}

}  // namespace

RankMessages messages_of(const Schedule& lowered, int pipeline_rank, std::vector<int> ranks, PartOfMessages part) {
  RankMessages messages{.pipeline_rank = pipeline_rank,
                        .ranks = std::move(ranks),
                        .part = std::move(part),
                        .pipeline_ranks = {},
                        .num_stages = num_stages(lowered),
                        .num_micro_batches = lowered.num_micro_batches,
                        .num_slices = lowered.num_slices,
                        .first_trainable_stage = lowered.first_trainable_stage,
                        .queues = {},
                        .arrived_before = {}};
  for (int stage = 0; stage < messages.num_stages; ++stage)
    for (int micro_batch = 0; micro_batch < lowered.num_micro_batches; ++micro_batch)
      messages.pipeline_ranks[{stage, micro_batch}] = pipeline_rank_of(lowered, stage, micro_batch);
  for (ReceiveQueue& queue : receive_queues(lowered))
    if (queue.pipeline_rank == pipeline_rank) messages.queues.push_back(std::move(queue));
  for (int peer = 0; peer < num_pipeline_ranks(lowered); ++peer) {
    if (peer == pipeline_rank) continue;
    std::vector<Action> received;
    for (const Action& action : lowered.body[peer]) {
      const bool is_ours = (is_send(action.kind) || is_receive(action.kind)) &&
                           pipeline_rank_of(lowered, other_stage(action), *action.micro_batch) == pipeline_rank;
      if (!is_ours) continue;
      if (is_receive(action.kind)) received.push_back(matching(action));
      if (is_send(action.kind)) messages.arrived_before[matching(action)] = std::exchange(received, {});
    }
  }
  return messages;
}

int num_tags(const RankMessages& messages) {
  return messages.num_stages * messages.num_micro_batches * messages.num_slices;
}

MessageExchange::MessageExchange(const RankMessages& messages, int first_tag, ActiveGroups& groups, SendsAhead& ahead,
                                 Receives receives)
    : messages_(messages), first_tag_(first_tag), groups_(groups), ahead_(ahead), make_(std::move(receives.make)) {
  for (const ReceiveQueue& of : messages.queues) {
    Queue& queue = queues_[{of.from, of.kind}];
    for (const Action& receive : of.receives)
      if (!receives.is_left_out(receive)) queue.waiting.push_back(receive);
    if (receives.posted == PostedReceives::ahead) queue.ahead = of.ahead;
    if (receives.posted == PostedReceives::all) queue.ahead = of.receives.size();
    post(queue, queue.ahead);
  }
}

int MessageExchange::peer_of(const Action& message) const {
  return messages_.pipeline_ranks.at({other_stage(message), *message.micro_batch});
}

bool MessageExchange::is_scattered(const Action& message) const {
  return !messages_.part.is_on_another_node.empty() && messages_.part.is_on_another_node[peer_of(message)];
}

int MessageExchange::tag_of(const Action& message) const {
  const int sender = is_send(message.kind) ? message.stage : other_stage(message);
  const Part part = part_of(message);
  return first_tag_ + (sender * messages_.num_micro_batches + part.micro_batch) * messages_.num_slices + part.slice;
}

Group& MessageExchange::group_of(const Action& message) const {
  const int peer = peer_of(message);
  const bool goes_up = is_send(message.kind) ? peer > messages_.pipeline_rank : peer < messages_.pipeline_rank;
  if (is_activation(message)) return goes_up ? groups_.activations_up : groups_.activations_down;
  return goes_up ? groups_.gradients_up : groups_.gradients_down;
}

void MessageExchange::post(Queue& queue, std::size_t up_to) {
  while (!queue.waiting.empty() && queue.posted.size() < up_to) {
    const Action action = queue.waiting.front();
    queue.waiting.pop_front();
    const int from = messages_.ranks[peer_of(action)];
    if (is_requested_by_receiver(action))
      asked_.push_back(
          group_of(action).send(at::zeros({1}, at::kByte), from, tag_of(action), to_string(action) + ": asking"));
    at::Tensor whole = make_(action), received = whole;
    if (is_scattered(action)) received = at::empty({count_in(messages_.part.slice, whole.numel())}, whole.options());
    Transfer transfer = group_of(action).receive(received, from, tag_of(action), to_string(action));
    queue.posted.push_back({action, std::move(transfer), is_scattered(action) ? std::move(whole) : at::Tensor()});
  }
}

at::Tensor MessageExchange::receive(const Action& action) {
  Queue& queue = queues_.at({peer_of(action), action.kind});
  post(queue, 1);
  FROSTPIPE_CHECK(!queue.posted.empty() && queue.posted.front().action == action,
                  "receives are posted in the order of their use");
  const Posted posted = std::move(queue.posted.front());
  queue.posted.pop_front();
  Transfer transfer = posted.transfer;
  transfer.wait();
  if (const auto arrived = messages_.arrived_before.find(action); arrived != messages_.arrived_before.end())
    for (const Action& send : arrived->second) finish_send(send);
  post(queue, queue.ahead);
  if (!posted.whole.defined()) return transfer.tensor();
  std::vector<std::int64_t> sizes;
  for (int tensor = 0; tensor < messages_.part.slice.of; ++tensor)
    sizes.push_back(count_in(slice_of(tensor, messages_.part.slice.of), posted.whole.numel()));
  groups_.tensor.all_gather_into(posted.whole, transfer.tensor(), sizes, to_string(action) + ": gathering");
  return posted.whole;
}

void MessageExchange::finish_send(const Action& action) {
  if (auto found = sends_.extract(action); !found.empty()) found.mapped().wait();
}

bool MessageExchange::is_requested_by_receiver(const Action& message) const {
  const int sender = is_send(message.kind) ? message.stage : other_stage(message);
  return sender < messages_.first_trainable_stage && group_of(message).keeps_virtual_time();
}

void MessageExchange::send(const Action& action, const at::Tensor& tensor) {
  FROSTPIPE_CHECK(tensor.defined(), "a stage has made what it sends");
  const bool is_frozen = action.stage < messages_.first_trainable_stage;
  if (is_frozen) ahead_.make_room(action.stage);
  const int to = messages_.ranks[peer_of(action)], tag = tag_of(action);
  Group& group = group_of(action);
  Transfer sent =
      group.send(is_scattered(action) ? own_part_of(tensor, messages_.part.slice) : tensor, to, tag, to_string(action));
  if (!is_frozen) {
    sends_.emplace(action, std::move(sent));
    return;
  }
  std::optional<Transfer> asked;
  if (is_requested_by_receiver(action))
    asked = group.receive(at::zeros({1}, at::kByte), to, tag, to_string(action) + ": being asked");
  ahead_.add(action.stage, std::move(sent), std::move(asked));
}

void MessageExchange::finish() {
  for (auto& [action, transfer] : sends_) transfer.wait();
  sends_.clear();
  for (Transfer& transfer : asked_) transfer.wait();
  asked_.clear();
}

}  // namespace frostpipe
