#include "planner/search/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "plan/schedule_rules.h"
#include "plan/stages.h"
#include "plan/token_slices.h"
#include "planner/search/stage_bound.h"

namespace frostpipe {
namespace {

void require_shape(const Phase& unpartitioned, int num_layers) {
  const ScheduleShape shape{.pipeline_parallel_size = unpartitioned.layout.pipeline_parallel_size,
                            .num_micro_batches = unpartitioned.num_micro_batches,
                            .virtual_stages = unpartitioned.virtual_stages};
  if (unpartitioned.virtual_stages > num_layers / shape.pipeline_parallel_size)
    throw InvalidInput("stages per rank",
                       fmt::format("must be <= {} ({} layers on {} pipeline ranks)",
                                   num_layers / shape.pipeline_parallel_size, num_layers, shape.pipeline_parallel_size),
                       std::to_string(shape.virtual_stages));
  require_shape(unpartitioned.schedule, shape);
}

}  // namespace

int simulated_micro_batches(const Phase& phase, const PlanOptions& options) {
  const ParallelLayout& layout = phase.layout;
  const bool alike = options.global_batch_size % (layout.data_parallel_size * phase.num_micro_batches) == 0;
  return num_stages(phase) * phase.num_micro_batches * (alike ? 1 : layout.data_parallel_size);
}

Choices choices_of(const PlanningProblem& problem, const PhaseSearch& search,
                   const std::vector<PlannedSchedule>& schedules, const CandidateMaker& maker, LayerCosts& costs) {
  const int num_layers = static_cast<int>(problem.profile.model.layers.size());
  Choices choices;
  std::map<int, std::vector<std::size_t>> shapes;  // schedules by number of micro-batches
  for (const int m : maker.numbers_of_micro_batches()) {
    for (std::size_t schedule = 0; schedule < schedules.size(); ++schedule) {
      try {
        require_shape(maker.unpartitioned_phase(std::nullopt, schedules[schedule], m), num_layers);
        shapes[m].push_back(schedule);
      } catch (const InvalidInput& error) {
        if (!choices.not_scheduled) choices.not_scheduled = error;
      }
    }
  }
  // Bounds depend only on whether ranks have several stages, whether the backward is split, and the token slices.
  using Bounds = std::map<std::tuple<bool, bool, int>, Nanoseconds>;
  std::map<int, Bounds> without_recompute;  // by number of micro-batches
  for (std::size_t recompute = 0; recompute < search.recompute.size(); ++recompute) {
    for (const auto& [m, possible] : shapes) {
      Bounds bounds;
      // Recomputation only takes more time, so what is too slow without it is not bounded again.
      if (const auto known = without_recompute.find(m); search.give_up_above_ns > 0 && known != without_recompute.end())
        for (const auto& [kind, bound] : known->second)
          if (bound > search.give_up_above_ns) bounds.emplace(kind, bound);
      for (const std::size_t schedule : possible) {
        const Phase unpartitioned = maker.unpartitioned_phase(search.recompute[recompute], schedules[schedule], m);
        try {
          const auto [bound, is_new] = bounds.try_emplace(
              {unpartitioned.virtual_stages > 1, splits_backward(unpartitioned.schedule), num_slices(unpartitioned)},
              0);
          if (is_new) bound->second = bound_of_any_partition(unpartitioned, problem, costs);
          choices.of_least_bound_first.push_back(
              {.bound_ns = bound->second, .recompute = recompute, .schedule = schedule, .num_micro_batches = m});
        } catch (const InvalidInput& error) {  // this micro-batch size was not measured; others may be
          if (!choices.not_measured) choices.not_measured = error;
          break;
        }
      }
      if (!search.recompute[recompute]) without_recompute.emplace(m, std::move(bounds));
    }
  }
  std::sort(choices.of_least_bound_first.begin(), choices.of_least_bound_first.end());
  return choices;
}

}  // namespace frostpipe
