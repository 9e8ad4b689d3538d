#include <algorithm>

#include "plan/schedules/schedule_builder.h"

namespace frostpipe {

Schedule zero_bubble_h2(const ScheduleShape& shape) {
  Schedule schedule = empty_schedule("ZB-H2", shape, virtual_stages_of("ZB-H2", shape, 1, 1, 1), StageMap::loop);
  const int p = shape.pipeline_parallel_size, m = shape.num_micro_batches;
  require_enough_micro_batches("ZB-H2", shape);
  for (int r = 0; r < p; ++r) {
    auto& actions = schedule.body[r];
    int forwards = 0, weights = 0;
    while (forwards < 2 * (p - r) - 1) actions.push_back(forward(r, forwards++));
    for (int i = 0; i < m; ++i) {
      actions.push_back(input_gradient(r, i));
      const int done = i + 1;
      if (forwards < m) {
        if (done > 2 * r) actions.push_back(weight_gradient(r, weights++));
        actions.push_back(forward(r, forwards++));
      } else if (done - weights > 2 * r) {
        actions.push_back(weight_gradient(r, weights++));
      }
    }
    while (weights < m) actions.push_back(weight_gradient(r, weights++));
  }
  return without_frozen_backwards(std::move(schedule));
}

namespace {

/// One rank's list, with the next micro-batch of each kind and chunk (chunk 0 is on the way down the V, 1 on the way
/// up).
class TwoChunks {
 public:
  TwoChunks(std::vector<Action>& actions, int down, int up) : actions_(actions), stage_{down, up} {}
  int forwards(int chunk) const { return forwards_[chunk]; }
  void f(int chunk) { actions_.push_back(forward(stage_[chunk], forwards_[chunk]++)); }
  void b(int chunk) { actions_.push_back(backward(stage_[chunk], backwards_[chunk]++)); }
  /// Appends I; its W waits.
  void i(int chunk) {
    actions_.push_back(input_gradient(stage_[chunk], backwards_[chunk]));
    waiting_.push_back(weight_gradient(stage_[chunk], backwards_[chunk]++));
  }
  /// Appends the W that has waited longest, optionally only among those of `chunk`.
  void w() { take(waiting_.begin()); }
  void w(int chunk) {
    take(std::find_if(waiting_.begin(), waiting_.end(),
                      [&](const Action& action) { return action.stage == stage_[chunk]; }));
  }
  bool waits(int chunk) const {
    return std::any_of(waiting_.begin(), waiting_.end(),
                       [&](const Action& action) { return action.stage == stage_[chunk]; });
  }
  /// Makes the last two actions an overlapped pair.
  void overlap_last_pair() { actions_[actions_.size() - 2].overlaps_next = true; }

 private:
  void take(std::vector<Action>::iterator at) {
    actions_.push_back(*at);
    waiting_.erase(at);
  }
  std::vector<Action>& actions_;
  int stage_[2];
  int forwards_[2] = {0, 0}, backwards_[2] = {0, 0};
  std::vector<Action> waiting_;
};

}  // namespace

Schedule zero_bubble_v(const ScheduleShape& shape) {
  const int p = shape.pipeline_parallel_size, n = std::max(2 * p - 1, shape.num_micro_batches);
  Schedule schedule =
      empty_schedule("ZBVZeroBubble", shape, virtual_stages_of("ZBVZeroBubble", shape, 2, 2, 2), StageMap::v);
  for (int r = 0; r < p; ++r) {
    TwoChunks rank(schedule.body[r], r, 2 * p - 1 - r);
    for (int k = 0; k < 2 * (p - r) - 1; ++k) rank.f(0);
    for (int k = 0; k < r; ++k) rank.f(1), rank.f(0);
    for (int k = 0; k < p - r; ++k) rank.f(1), rank.i(1), rank.w(1);
    while (rank.forwards(1) < n) {
      if (rank.forwards(0) < n) rank.f(0);
      rank.i(0), rank.w(0), rank.f(1), rank.i(1), rank.w(1);
    }
    for (int k = 0; k < r; ++k) rank.i(0), rank.i(1);
    for (int k = 0; k < p - r; ++k) rank.i(0), rank.w(0);
    while (rank.waits(1)) rank.w(1);
    while (rank.waits(0)) rank.w(0);
    // The order is made for at least 2 p - 1 micro-batches; remove those beyond the actual number.
    std::erase_if(schedule.body[r],
                  [&](const Action& action) { return *action.micro_batch >= shape.num_micro_batches; });
  }
  return without_frozen_backwards(std::move(schedule));
}

Schedule dual_pipe_v(const ScheduleShape& shape) {
  const int p = shape.pipeline_parallel_size, m = shape.num_micro_batches;
  Schedule schedule = empty_schedule("DualPipeV", shape, virtual_stages_of("DualPipeV", shape, 2, 2, 2), StageMap::v);
  require_enough_micro_batches("DualPipeV", shape);
  for (int r = 0; r < p; ++r) {
    TwoChunks rank(schedule.body[r], r, 2 * p - 1 - r);
    for (int k = 0; k < 2 * (p - r - 1); ++k) rank.f(0);
    for (int k = 0; k < r + 1; ++k) rank.f(0), rank.f(1);
    for (int k = 0; k < p - r - 1; ++k) rank.i(1), rank.w(), rank.f(1);
    for (int k = 0; k < m - 2 * p + r + 1; ++k) {
      rank.f(0), rank.b(1);
      if (k > 0 || r < p - 1)
        rank.overlap_last_pair();  // DeepSeek does not overlap the last rank's first pair, to shorten the bubble
      rank.f(1), rank.b(0), rank.overlap_last_pair();
    }
    for (int k = 0; k < p - r - 1; ++k) rank.b(1), rank.f(1), rank.b(0), rank.overlap_last_pair();
    bool split = false;
    for (int k = 0; k < r + 1; ++k) {
      if (k == (r + 1) / 2 && r % 2 == 1) split = true;
      split ? rank.i(1) : rank.b(1);
      if (k == (r + 1) / 2 && r % 2 == 0) split = true;
      split ? rank.i(0) : rank.b(0);
    }
    for (int k = 0; k < p - r - 1; ++k) rank.w(), rank.i(0);
    for (int k = 0; k < r + 1; ++k) rank.w();
  }
  return without_frozen_backwards(std::move(schedule));
}

}  // namespace frostpipe
