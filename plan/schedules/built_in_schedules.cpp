// The schedules that have a name, each with its builder and traits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "base/spelling.h"
#include "plan/schedule.h"

namespace frostpipe {
namespace {

constexpr int kAnyNumberOfStages = std::numeric_limits<int>::max();

struct Builder {
  std::string_view name;
  Schedule (*build)(const ScheduleShape&);
  ScheduleTraits traits;
};

constexpr ScheduleTraits kOneStage{};
constexpr ScheduleTraits kOneStageForwardsFirst{.starts_all_forwards = true};
constexpr ScheduleTraits kOneStageSplit{.splits_backward = true};
constexpr ScheduleTraits kLoop{.max_virtual_stages = kAnyNumberOfStages};
constexpr ScheduleTraits kLoopForwardsFirst{.starts_all_forwards = true, .max_virtual_stages = kAnyNumberOfStages};
constexpr ScheduleTraits kLoopSplit{.splits_backward = true, .max_virtual_stages = kAnyNumberOfStages};
constexpr ScheduleTraits kV{
    .splits_backward = true, .least_virtual_stages = 2, .max_virtual_stages = 2, .stage_map = StageMap::v};
constexpr ScheduleTraits kSliced{.has_slices = true};
constexpr ScheduleTraits kSlicedForwardsFirst{.starts_all_forwards = true, .has_slices = true};
constexpr ScheduleTraits kDelayed{.weight_delay = 1};

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

ScheduleTraits schedule_traits(std::string_view name) {
  const Builder* builder = find_builder(name);
  return builder != nullptr ? builder->traits : ScheduleTraits();
}

}  // namespace frostpipe
