#include "plan/schedule.h"

namespace frostpipe {

namespace {

Action of_whole_stage(ActionKind kind, int stage) {
  return {.kind = kind, .stage = stage, .micro_batch = std::nullopt};
}

bool gives_input_gradient(ActionKind kind) {
  return kind == ActionKind::backward || kind == ActionKind::input_gradient;
}

class Lowering {
 public:
  explicit Lowering(const Schedule& schedule) : schedule_(schedule) {}

  std::vector<Action> lower_list(const std::vector<Action>& actions) const {
    std::vector<Action> lowered;
    lowered.reserve(3 * actions.size() + 2);  // most compute actions have a receive and a send
    for (std::size_t begin = 0; begin < actions.size();) {
      std::size_t end = begin;  // an overlapped pair is one unit: receives before both, sends after both
      while (end + 1 < actions.size() && actions[end].overlaps_next) ++end;
      ++end;
      for (std::size_t i = begin; i < end; ++i) append_receive(actions[i], lowered);
      lowered.insert(lowered.end(), actions.begin() + begin, actions.begin() + end);
      for (std::size_t i = begin; i < end; ++i) append_send(actions[i], lowered);
      begin = end;
    }
    return lowered;
  }

  void append_end_of_iteration(int pipeline_rank, std::vector<Action>& lowered) const {
    for (const auto kind : {ActionKind::reduce_gradient, ActionKind::optimizer_step})
      for (int stage = schedule_.first_trainable_stage; stage < num_stages(schedule_); ++stage)
        if (lives_on(schedule_, stage, pipeline_rank)) lowered.push_back(of_whole_stage(kind, stage));
  }

 private:
  bool message_between(const Action& action, int other_stage) const {
    if (other_stage < 0 || other_stage >= num_stages(schedule_)) return false;
    const int micro_batch = *action.micro_batch;
    return pipeline_rank_of(schedule_, action.stage, micro_batch) !=
           pipeline_rank_of(schedule_, other_stage, micro_batch);
  }

  void append_receive(const Action& action, std::vector<Action>& lowered) const {
    if (action.kind == ActionKind::forward && message_between(action, action.stage - 1))
      lowered.push_back(of_kind(action, ActionKind::recv_forward));
    if (action.kind == ActionKind::forward && schedule_.reads_cache && action.stage == 0)
      lowered.push_back(of_kind(action, ActionKind::cache_read));
    if (gives_input_gradient(action.kind) && message_between(action, action.stage + 1))
      lowered.push_back(of_kind(action, ActionKind::recv_backward));
  }

  void append_send(const Action& action, std::vector<Action>& lowered) const {
    if (action.kind == ActionKind::forward && message_between(action, action.stage + 1))
      lowered.push_back(of_kind(action, ActionKind::send_forward));
    if (action.kind == ActionKind::forward && schedule_.cache_write_stage == action.stage)
      lowered.push_back(of_kind(action, ActionKind::cache_write));
    const bool someone_waits = action.stage > schedule_.first_trainable_stage;
    if (gives_input_gradient(action.kind) && someone_waits && message_between(action, action.stage - 1))
      lowered.push_back(of_kind(action, ActionKind::send_backward));
  }

  const Schedule& schedule_;
};

}  // namespace

Schedule lower(const Schedule& compute_only) {
  const Lowering lowering(compute_only);
  Schedule lowered = compute_only;
  for (auto* part : {&lowered.prologue, &lowered.body, &lowered.epilogue})
    for (auto& actions : *part) actions = lowering.lower_list(actions);
  for (auto* part : {&lowered.body, &lowered.epilogue})  // each ends an iteration, if it is there
    for (std::size_t pipeline_rank = 0; pipeline_rank < part->size(); ++pipeline_rank)
      lowering.append_end_of_iteration(static_cast<int>(pipeline_rank), (*part)[pipeline_rank]);
  return lowered;
}

}  // namespace frostpipe
