#include <algorithm>
#include <limits>

#include "plan/schedules/schedule_builder.h"

namespace frostpipe {
namespace {

constexpr int kAnyNumber = std::numeric_limits<int>::max() / 4096;

/// The family of 1F1B with v stages per rank. Micro-batches go through a rank's first stage in groups of m / rounds,
/// then through its second, and so on; backwards take the stages in the opposite order. With `split`, the backward is
/// I, and W lags r micro-batches behind on rank r.
class Interleaving {
 public:
  Interleaving(Schedule& schedule, int pipeline_rank, int virtual_stages, bool split)
      : p_(num_pipeline_ranks(schedule)),
        m_(schedule.num_micro_batches),
        v_(virtual_stages),
        pipeline_rank_(pipeline_rank),
        split_(split),
        actions_(schedule.body[pipeline_rank]),
        next_(kNumPasses * v_, 0) {}

  void run(int warm_up) {
    const int all = m_ * v_;
    for (int i = 0; i < all; ++i) {
      append(Pass::forward, i);
      if (i >= warm_up) append_backward(i - warm_up);
    }
    for (int i = all - warm_up; i < all; ++i) append_backward(i);
    while (split_ && weights_ < all) append(Pass::weight_gradient, weights_++);
  }

 private:
  void append_backward(int index) {
    append(Pass::backward, index);
    if (split_ && index >= pipeline_rank_) append(Pass::weight_gradient, weights_++);
  }

  enum class Pass { forward, backward, weight_gradient };
  static constexpr int kNumPasses = 3;

  /// Appends the index-th F, B (I with `split`) or W of this rank.
  void append(Pass pass, int index) {
    const int group = std::max(1, m_ / std::max(1, m_ / p_));
    const int turn = index / group % v_;
    const int local = pass == Pass::forward ? turn : v_ - 1 - turn;
    const int stage = local * p_ + pipeline_rank_, micro_batch = next_[static_cast<int>(pass) * v_ + local]++;
    actions_.push_back(pass == Pass::forward           ? forward(stage, micro_batch)
                       : pass == Pass::weight_gradient ? weight_gradient(stage, micro_batch)
                       : split_                        ? input_gradient(stage, micro_batch)
                                                       : backward(stage, micro_batch));
  }

  int p_, m_, v_, pipeline_rank_;
  bool split_;
  std::vector<Action>& actions_;
  std::vector<int> next_;  // next micro-batch, by pass and local stage
  int weights_ = 0;
};

Schedule interleave(const char* name, const ScheduleShape& shape, int v, int forwards_per_rank_ahead, bool split) {
  Schedule schedule = empty_schedule(name, shape, v, StageMap::loop);
  const int p = shape.pipeline_parallel_size, m = shape.num_micro_batches, rounds = std::max(1, m / p);
  require_rounds(name, shape, v);
  for (int r = 0; r < p; ++r) {
    const int warm_up = std::min((v - 1) * (m / rounds) + forwards_per_rank_ahead * (p - 1 - r), m * v);
    Interleaving(schedule, r, v, split).run(warm_up);
  }
  return without_frozen_backwards(std::move(schedule));
}

}  // namespace

Schedule interleaved_one_f_one_b(const ScheduleShape& shape) {
  return interleave("Interleaved1F1B", shape, virtual_stages_of("Interleaved1F1B", shape, 2, 1, kAnyNumber), 2, false);
}

Schedule interleaved_zero_bubble(const ScheduleShape& shape) {
  return interleave("InterleavedZeroBubble", shape, virtual_stages_of("InterleavedZeroBubble", shape, 2, 1, kAnyNumber),
                    1, true);
}

Schedule zero_bubble_h1(const ScheduleShape& shape) {
  return interleave("ZB-H1", shape, virtual_stages_of("ZB-H1", shape, 1, 1, 1), 1, true);
}

Schedule looped_bfs(const ScheduleShape& shape) {
  const int v = virtual_stages_of("LoopedBFS", shape, 2, 1, kAnyNumber), p = shape.pipeline_parallel_size,
            m = shape.num_micro_batches;
  Schedule schedule = empty_schedule("LoopedBFS", shape, v, StageMap::loop);
  for (int r = 0; r < p; ++r) {
    for (int local = 0; local < v; ++local) {
      for (int i = 0; i < m; ++i) schedule.body[r].push_back(forward(local * p + r, i));
    }
    for (int local = v - 1; local >= 0; --local) {
      for (int i = m - 1; i >= 0; --i) schedule.body[r].push_back(backward(local * p + r, i));
    }
  }
  return without_frozen_backwards(std::move(schedule));
}

}  // namespace frostpipe
