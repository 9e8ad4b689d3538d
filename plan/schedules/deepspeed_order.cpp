#include <optional>

#include "plan/schedules/schedule_builder.h"

namespace frostpipe {
namespace {

/// The action of pipeline rank r at one tick.
struct Tick {
  bool is_forward = false;
  std::optional<int> micro_batch;
};

/// Forwards and backwards alternate, in opposite phase on neighbouring ranks. Micro-batch 0 goes down one pipeline rank
/// per tick, and its backward comes up from tick p. All divisions are exact.
Tick tick_of(int tick, int r, const ScheduleShape& shape) {
  const bool is_forward = tick % 2 == r % 2;
  const int lag = is_forward ? r : 2 * shape.pipeline_parallel_size - 1 - r;
  if (tick < lag || (tick - lag) / 2 >= shape.num_micro_batches) return {is_forward, std::nullopt};
  return {is_forward, (tick - lag) / 2};
}

}  // namespace

Schedule one_f_one_b_of_deepspeed(const ScheduleShape& shape) {
  Schedule schedule = empty_schedule("1F1B of DeepSpeed", shape, virtual_stages_of("1F1B of DeepSpeed", shape, 1, 1, 1),
                                     StageMap::loop);
  const int p = shape.pipeline_parallel_size, m = shape.num_micro_batches;
  for (int r = 0; r < p; ++r) {
    auto& actions = schedule.body[r];
    const auto add = [&](ActionKind kind, const Tick& tick) {
      actions.push_back({.kind = kind, .stage = r, .micro_batch = *tick.micro_batch});
    };
    for (int t = 0; t < 2 * (m + p - 1); ++t) {
      const Tick now = tick_of(t, r, shape), before = t == 0 ? Tick{} : tick_of(t - 1, r, shape);
      if (now.is_forward) {
        if (before.micro_batch && r > 0) add(ActionKind::send_backward, before);
        if (now.micro_batch && r > 0) add(ActionKind::recv_forward, now);
        if (now.micro_batch) add(ActionKind::forward, now);
      } else {
        if (now.micro_batch && r + 1 < p) add(ActionKind::recv_backward, now);
        if (before.micro_batch && r + 1 < p) add(ActionKind::send_forward, before);
        if (now.micro_batch) add(ActionKind::backward, now);
      }
    }
    // The result of the last tick is sent after it.
    const Tick last = tick_of(2 * (m + p - 1) - 1, r, shape);
    if (last.micro_batch && !last.is_forward && r > 0) add(ActionKind::send_backward, last);
    for (const auto kind : {ActionKind::reduce_gradient, ActionKind::optimizer_step})
      actions.push_back({.kind = kind, .stage = r, .micro_batch = std::nullopt});
  }
  return schedule;
}

}  // namespace frostpipe
