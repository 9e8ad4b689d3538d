#include "plan/schedules/schedule_builder.h"

namespace frostpipe {
namespace {

/// What position r does at one tick; micro-batches outside [0, m) are none.
struct Tick {
  bool is_forward = false;
  int micro_batch = -1;
};

/// Forwards and backwards take turns, neighbours opposite ones; micro-batch 0 comes down one position per tick, and its
/// backward comes up from tick p. All divisions are exact.
Tick tick_of(int tick, int r, int p) {
  const bool is_forward = tick % 2 == r % 2;
  return {is_forward, is_forward ? (tick - r) / 2 : (tick - (2 * p - 1 - r)) / 2};
}

}  // namespace

Schedule one_f_one_b_of_deepspeed(const ScheduleShape& shape) {
  Schedule schedule = empty_schedule("1F1B of DeepSpeed", shape, virtual_stages_of("1F1B of DeepSpeed", shape, 1, 1, 1),
                                     StageMap::loop);
  const int p = shape.pipeline_parallel_size, m = shape.num_micro_batches;
  for (int r = 0; r < p; ++r) {
    auto& actions = schedule.body[r];
    const auto exists = [&](const Tick& tick) { return tick.micro_batch >= 0 && tick.micro_batch < m; };
    const auto add = [&](ActionKind kind, const Tick& tick) {
      actions.push_back({.kind = kind, .stage = r, .micro_batch = tick.micro_batch});
    };
    for (int t = 0; t < 2 * (m + p - 1); ++t) {
      const Tick now = tick_of(t, r, p), before = t == 0 ? Tick{} : tick_of(t - 1, r, p);
      if (now.is_forward) {
        if (exists(before) && r > 0) add(ActionKind::send_backward, before);
        if (exists(now) && r > 0) add(ActionKind::recv_forward, now);
        if (exists(now)) add(ActionKind::forward, now);
      } else {
        if (exists(now) && r + 1 < p) add(ActionKind::recv_backward, now);
        if (exists(before) && r + 1 < p) add(ActionKind::send_forward, before);
        if (exists(now)) add(ActionKind::backward, now);
      }
    }
    // What the last tick made is sent behind it.
    const Tick last = tick_of(2 * (m + p - 1) - 1, r, p);
    if (exists(last) && !last.is_forward && r > 0) add(ActionKind::send_backward, last);
    for (const auto kind : {ActionKind::reduce_gradient, ActionKind::optimizer_step})
      actions.push_back({.kind = kind, .stage = r, .micro_batch = std::nullopt});
  }
  return schedule;
}

}  // namespace frostpipe
