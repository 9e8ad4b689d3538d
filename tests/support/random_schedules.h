#pragma once
// Random schedules, costs and topologies, for tests that compare engines or check invariants.
#include <algorithm>
#include <random>

#include "plan/schedule.h"
#include "simulator/cost_model.h"

namespace frostpipe::test {

/// A random builder with an allowed shape, sometimes with frozen stages, or with its pairs split.
inline Schedule random_schedule(std::mt19937& random) {
  const auto up_to = [&](int most) { return static_cast<int>(random() % most) + 1; };
  const std::vector<std::string> names = schedule_names();
  for (;;) {
    ScheduleShape shape{.pipeline_parallel_size = up_to(5), .num_micro_batches = up_to(11)};
    const std::string& name = names[random() % names.size()];
    if (name.starts_with("Interleaved") || name == "LoopedBFS") shape.virtual_stages = up_to(3);
    if (name == "TeraPipe" || name == "Seq1F1B") shape.token_slices = up_to(4);
    try {
      const int stages = num_stages(build_schedule(name, shape));
      if (random() % 3 == 0) shape.first_trainable_stage = static_cast<int>(random() % stages);
      Schedule schedule = build_schedule(name, shape);
      if (!schedule.epilogue.empty()) schedule = unrolled(schedule, up_to(3));
      if (random() % 4 == 0) {
        for (auto& list : schedule.body)
          for (Action& action : list) action.overlaps_next = false;
      }
      return lower(schedule);
    } catch (const std::exception&) {
      continue;  // too few micro-batches for it
    }
  }
}

/// Few stages on random ranks, with lists in any order that can run.
inline Schedule random_order(std::mt19937& random) {
  const auto up_to = [&](int most) { return static_cast<int>(random() % most) + 1; };
  const int ranks = up_to(3) + 1, stages = ranks + up_to(4) - 1;
  Schedule schedule{.name = "any order",
                    .num_micro_batches = up_to(6),
                    .first_trainable_stage = random() % 3 == 0 ? static_cast<int>(random() % stages) : 0,
                    .body = std::vector<std::vector<Action>>(ranks)};
  for (int stage = 0; stage < stages; ++stage)
    schedule.pipeline_rank_of_stage.push_back(stage < ranks ? stage : up_to(ranks) - 1);
  std::shuffle(schedule.pipeline_rank_of_stage.begin(), schedule.pipeline_rank_of_stage.end(), random);

  std::vector<Action> left;
  for (int stage = 0; stage < stages; ++stage) {
    const bool splits = random() % 2 == 0;
    for (int i = 0; i < schedule.num_micro_batches; ++i) {
      left.push_back({.kind = ActionKind::forward, .stage = stage, .micro_batch = i});
      if (stage < schedule.first_trainable_stage) continue;
      left.push_back(
          {.kind = splits ? ActionKind::input_gradient : ActionKind::backward, .stage = stage, .micro_batch = i});
      if (splits) left.push_back({.kind = ActionKind::weight_gradient, .stage = stage, .micro_batch = i});
    }
  }
  const auto waits_for = [](const Action& a, const Action& b) {
    if (a.micro_batch != b.micro_batch) return false;
    const bool same = a.stage == b.stage,
               b_is_gradient = b.kind == ActionKind::backward || b.kind == ActionKind::input_gradient;
    if (a.kind == ActionKind::forward) return b.kind == ActionKind::forward && b.stage == a.stage - 1;
    if (a.kind == ActionKind::weight_gradient) return same && b.kind == ActionKind::input_gradient;
    return (same && b.kind == ActionKind::forward) || (b.stage == a.stage + 1 && b_is_gradient);
  };
  while (!left.empty()) {
    const auto next = left.begin() + static_cast<std::ptrdiff_t>(random() % left.size());
    if (std::any_of(left.begin(), left.end(), [&](const Action& other) { return waits_for(*next, other); })) continue;
    schedule.body[schedule.pipeline_rank_of_stage[next->stage]].push_back(*next);
    left.erase(next);
  }
  return lower(schedule);
}

/// Random times, the same for the same action of the same replica; stages reduce over their replicas, and all ranks
/// synchronise at the step.
class RandomCostModel final : public CostModel {
 public:
  RandomCostModel(std::uint32_t seed, const Schedule& schedule, const ParallelLayout& layout,
                  int holds_both_percent = 0)
      : seed_(seed), schedule_(schedule), layout_(layout), holds_both_percent_(holds_both_percent) {}

  Nanoseconds compute_ns(const Action& action, int pipeline_rank, int replica) const override {
    return draw(action, pipeline_rank, replica, 50);
  }

  std::vector<Segment> segments(const Action& action, int pipeline_rank, int replica) const override {
    if (is_compute(action.kind))
      return {{.duration_ns = compute_ns(action, pipeline_rank, replica), .collective_ranks = {}}};
    if (action.kind == ActionKind::reduce_gradient) {
      const std::vector<int> ranks = replicas_of(layout_, pipeline_rank);
      if (ranks.size() < 2) return {};
      std::vector<int> ascending = ranks;
      std::sort(ascending.begin(), ascending.end());
      return {{.duration_ns = draw(action, pipeline_rank, 0, 40), .collective_ranks = ascending}};
    }
    if (action.kind == ActionKind::optimizer_step) {
      std::vector<Segment> segments{{.duration_ns = draw(action, pipeline_rank, replica, 9), .collective_ranks = {}}};
      if (seed_ % 2 == 0 && schedule_.first_trainable_stage == 0 &&
          num_stages(schedule_) == num_pipeline_ranks(schedule_)) {
        std::vector<int> all;
        for (int p = 0; p < layout_.pipeline_parallel_size; ++p)
          for (int d = 0; d < layout_.data_parallel_size; ++d) all.push_back(rank_of(layout_, p, d));
        std::sort(all.begin(), all.end());
        if (all.size() > 1) segments.insert(segments.begin(), {.duration_ns = 3, .collective_ranks = all});
      }
      return segments;
    }
    return {};
  }

  TransferCost transfer(const Action& send, int replica) const override {
    return {.occupancy_ns = draw(send, 0, replica, 60),
            .latency_ns = draw(send, 1, replica, 30),
            .holds_both = draw(send, 2, replica, 100) < holds_both_percent_};
  }

 private:
  Nanoseconds draw(const Action& action, int pipeline_rank, int replica, int below) const {
    std::seed_seq seed{seed_,
                       static_cast<std::uint32_t>(action.kind),
                       static_cast<std::uint32_t>(action.stage),
                       static_cast<std::uint32_t>(action.micro_batch.value_or(-1)),
                       static_cast<std::uint32_t>(action.slice.value_or(-1)),
                       static_cast<std::uint32_t>(pipeline_rank),
                       static_cast<std::uint32_t>(replica)};
    std::uint32_t value = 0;
    seed.generate(&value, &value + 1);
    return value % below;
  }

  std::uint32_t seed_;
  const Schedule& schedule_;
  const ParallelLayout& layout_;
  int holds_both_percent_;
};

}  // namespace frostpipe::test
