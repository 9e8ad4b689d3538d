#include "plan/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "base/spelling.h"

namespace frostpipe {

namespace {

constexpr int kAnyNumber = std::numeric_limits<int>::max();

struct Builder {
  std::string_view name;
  Schedule (*build)(const ScheduleShape&);
  ScheduleTraits traits;
};

constexpr ScheduleTraits kOneStage{.is_for_plans = true};
constexpr ScheduleTraits kOneStageForwardsFirst{.is_for_plans = true, .starts_all_forwards = true};
constexpr ScheduleTraits kOneStageSplit{.is_for_plans = true, .splits_backward = true};
constexpr ScheduleTraits kLoop{.is_for_plans = true, .max_virtual_stages = kAnyNumber};
constexpr ScheduleTraits kLoopForwardsFirst{
    .is_for_plans = true, .starts_all_forwards = true, .max_virtual_stages = kAnyNumber};
constexpr ScheduleTraits kLoopSplit{.is_for_plans = true, .splits_backward = true, .max_virtual_stages = kAnyNumber};
constexpr ScheduleTraits kV{.is_for_plans = true,
                            .splits_backward = true,
                            .least_virtual_stages = 2,
                            .max_virtual_stages = 2,
                            .stage_map = StageMap::v};
constexpr ScheduleTraits kSliced{.is_for_plans = true, .has_slices = true};
constexpr ScheduleTraits kSlicedForwardsFirst{.is_for_plans = true, .starts_all_forwards = true, .has_slices = true};
constexpr ScheduleTraits kDelayed{.is_for_plans = true, .weight_delay = 1};
constexpr ScheduleTraits kNotForPlans{};

constexpr std::array<Builder, 12> kBuilders{{{"GPipe", gpipe, kOneStageForwardsFirst},
                                             {"1F1B", one_f_one_b, kOneStage},
                                             {"Interleaved1F1B", interleaved_one_f_one_b, kLoop},
                                             {"LoopedBFS", looped_bfs, kLoopForwardsFirst},
                                             {"ZB-H1", zero_bubble_h1, kOneStageSplit},
                                             {"ZB-H2", zero_bubble_h2, kOneStageSplit},
                                             {"InterleavedZeroBubble", interleaved_zero_bubble, kLoopSplit},
                                             {"ZBVZeroBubble", zero_bubble_v, kV},
                                             {"DualPipeV", dual_pipe_v, kV},
                                             {"PipeDream-2BW", pipedream_2bw, kDelayed},
                                             {"TeraPipe", terapipe, kSlicedForwardsFirst},
                                             {"Seq1F1B", seq_one_f_one_b, kSliced}}};

/// Returns null if there is no builder of that name.
const Builder* find_builder(std::string_view name) {
  const auto find = [](auto&& is_it) {
    const auto found = std::find_if(kBuilders.begin(), kBuilders.end(), is_it);
    return found != kBuilders.end() ? found : nullptr;
  };
  if (const Builder* exact = find([&](const Builder& builder) { return builder.name == name; })) return exact;
  return find([&](const Builder& builder) { return equal_ignoring_case(builder.name, name); });
}

}  // namespace

bool has_messages(const Schedule& schedule) {
  for (const auto* part : {&schedule.prologue, &schedule.body, &schedule.epilogue}) {
    for (const auto& list : *part) {
      if (std::any_of(list.begin(), list.end(),
                      [](const Action& action) { return is_send(action.kind) || is_receive(action.kind); }))
        return true;
    }
  }
  return false;
}

Schedule compute_only(const Schedule& schedule) {
  Schedule compute = schedule;
  for (auto* part : {&compute.prologue, &compute.body, &compute.epilogue}) {
    for (auto& list : *part) std::erase_if(list, [](const Action& action) { return !is_compute(action.kind); });
  }
  return compute;
}

int num_stages(const Schedule& schedule) { return static_cast<int>(schedule.pipeline_rank_of_stage.size()); }

int num_pipeline_ranks(const Schedule& schedule) { return static_cast<int>(schedule.body.size()); }

int pipeline_rank_of(const Schedule& schedule, int stage, int micro_batch) {
  if (schedule.pipeline_rank_of_micro_batch.empty()) return schedule.pipeline_rank_of_stage[stage];
  return schedule.pipeline_rank_of_micro_batch[stage].at(micro_batch);
}

bool lives_on(const Schedule& schedule, int stage, int pipeline_rank) {
  if (schedule.pipeline_rank_of_micro_batch.empty()) return schedule.pipeline_rank_of_stage[stage] == pipeline_rank;
  const std::vector<int>& runs_on = schedule.pipeline_rank_of_micro_batch[stage];
  return std::ranges::find(runs_on, pipeline_rank) != runs_on.end();
}

Schedule build_schedule(std::string_view name, const ScheduleShape& shape) {
  if (const Builder* builder = find_builder(name)) return builder->build(shape);
  throw InvalidInput("schedule", fmt::format("must be one of {}", fmt::join(schedule_names(), ", ")),
                     fmt::format("\"{}\"", name));
}

bool is_built_in(std::string_view name) { return find_builder(name) != nullptr; }

std::string canonical_schedule_name(std::string_view name) {
  const Builder* builder = find_builder(name);
  return std::string(builder != nullptr ? builder->name : name);
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const auto& builder : kBuilders) names.emplace_back(builder.name);
  return names;
}

std::vector<std::string> plan_schedule_names() {
  std::vector<std::string> names;
  for (const auto& builder : kBuilders)
    if (builder.traits.is_for_plans) names.emplace_back(builder.name);
  return names;
}

int pipeline_rank_of(StageMap map, int stage, int pipeline_parallel_size) {
  const int along = stage % pipeline_parallel_size;
  const bool upwards = map == StageMap::v && stage / pipeline_parallel_size % 2 == 1;
  return upwards ? pipeline_parallel_size - 1 - along : along;
}

bool splits_backward(const Schedule& schedule) {
  return std::ranges::any_of(schedule.body, [](const std::vector<Action>& list) {
    return std::ranges::any_of(list, [](const Action& action) { return action.kind == ActionKind::weight_gradient; });
  });
}

ScheduleTraits schedule_traits(std::string_view name) {
  const Builder* builder = find_builder(name);
  return builder != nullptr ? builder->traits : kNotForPlans;
}

}  // namespace frostpipe
