#include "executor/runtime/message_exchange.h"

#include <ATen/ops/zeros.h>

#include "executor/runtime/part.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr std::size_t kSendsAhead = 2;  // of a stage that gets nothing back

bool is_activation(const Action& message) {
  return message.kind == ActionKind::send_forward || message.kind == ActionKind::recv_forward;
}

/// Stage at the other end.
int other_stage(const Action& message) {
  const bool is_next = message.kind == ActionKind::send_forward || message.kind == ActionKind::recv_backward;
  return message.stage + (is_next ? 1 : -1);
}

}  // namespace

RankMessages messages_of(const Schedule& lowered, int pipeline_rank, std::vector<int> ranks) {
  RankMessages messages{.pipeline_rank = pipeline_rank,
                        .ranks = std::move(ranks),
                        .pipeline_rank_of_stage = lowered.pipeline_rank_of_stage,
                        .num_micro_batches = lowered.num_micro_batches,
                        .num_slices = lowered.num_slices,
                        .first_trainable_stage = lowered.first_trainable_stage,
                        .queues = {},
                        .arrived_before = {}};
  for (ReceiveQueue& queue : receive_queues(lowered))
    if (queue.pipeline_rank == pipeline_rank) messages.queues.push_back(std::move(queue));
  for (int peer = 0; peer < num_pipeline_ranks(lowered); ++peer) {
    if (peer == pipeline_rank) continue;
    std::vector<Action> received;
    for (const Action& action : lowered.body[peer]) {
      const bool is_ours = (is_send(action.kind) || is_receive(action.kind)) &&
                           lowered.pipeline_rank_of_stage[other_stage(action)] == pipeline_rank;
      if (!is_ours) continue;
      if (is_receive(action.kind)) received.push_back(matching(action));
      if (is_send(action.kind)) messages.arrived_before[matching(action)] = std::exchange(received, {});
    }
  }
  return messages;
}

int num_tags(const RankMessages& messages) {
  return static_cast<int>(messages.pipeline_rank_of_stage.size()) * messages.num_micro_batches * messages.num_slices;
}

MessageExchange::MessageExchange(const RankMessages& messages, int first_tag, ActiveGroups& groups,
                                 PostedReceives posted, const std::function<bool(const Action&)>& is_left_out,
                                 std::function<at::Tensor(const Action&)> make)
    : messages_(messages), first_tag_(first_tag), groups_(groups), make_(std::move(make)) {
  for (const ReceiveQueue& of : messages.queues) {
    Queue& queue = queues_[{of.from, of.kind}];
    for (const Action& receive : of.receives)
      if (!is_left_out(receive)) queue.waiting.push_back(receive);
    if (posted == PostedReceives::ahead) queue.ahead = of.ahead;
    if (posted == PostedReceives::all) queue.ahead = of.receives.size();
    post(queue, queue.ahead);
  }
}

int MessageExchange::peer_of(const Action& message) const {
  return messages_.pipeline_rank_of_stage[other_stage(message)];
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
    if (says_when_asked_for(action))
      asked_.push_back(
          group_of(action).send(at::zeros({1}, at::kByte), from, tag_of(action), to_string(action) + ": asking"));
    queue.posted.emplace_back(action, group_of(action).receive(make_(action), from, tag_of(action), to_string(action)));
  }
}

at::Tensor MessageExchange::receive(const Action& action) {
  Queue& queue = queues_.at({peer_of(action), action.kind});
  post(queue, 1);
  FROSTPIPE_CHECK(!queue.posted.empty() && queue.posted.front().first == action,
                  "receives are posted in the order of their use");
  Transfer transfer = std::move(queue.posted.front().second);
  queue.posted.pop_front();
  transfer.wait();
  if (const auto arrived = messages_.arrived_before.find(action); arrived != messages_.arrived_before.end())
    for (const Action& send : arrived->second) finish_send(send);
  post(queue, queue.ahead);
  return transfer.tensor();
}

void MessageExchange::finish_send(const Action& action) {
  if (auto found = sends_.extract(action); !found.empty()) wait_for(action, found.mapped());
}

void MessageExchange::wait_for(const Action& send, Transfer& transfer) {
  transfer.wait();
  if (!says_when_asked_for(send)) return;
  const int receiver = messages_.ranks[peer_of(send)];
  group_of(send).receive(at::zeros({1}, at::kByte), receiver, tag_of(send), to_string(send) + ": being asked").wait();
}

bool MessageExchange::says_when_asked_for(const Action& message) const {
  const int sender = is_send(message.kind) ? message.stage : other_stage(message);
  return sender < messages_.first_trainable_stage && group_of(message).keeps_virtual_time();
}

void MessageExchange::wait_for_older_ones(std::deque<Action>& under_way) {
  std::erase_if(under_way, [&](const Action& action) { return !sends_.contains(action); });
  for (; under_way.size() >= kSendsAhead; under_way.pop_front()) finish_send(under_way.front());
}

void MessageExchange::send(const Action& action, const at::Tensor& tensor) {
  FROSTPIPE_CHECK(tensor.defined(), "a stage has made what it sends");
  if (action.stage < messages_.first_trainable_stage) {
    std::deque<Action>& under_way = of_frozen_stage_[action.stage];
    wait_for_older_ones(under_way);
    under_way.push_back(action);
  }
  const int to = messages_.ranks[peer_of(action)];
  sends_.emplace(action, group_of(action).send(tensor, to, tag_of(action), to_string(action)));
}

void MessageExchange::finish() {
  for (auto& [action, transfer] : sends_) wait_for(action, transfer);
  sends_.clear();
  for (Transfer& transfer : asked_) transfer.wait();
  asked_.clear();
}

}  // namespace frostpipe
