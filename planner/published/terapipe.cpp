#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "planner/published/best_of_lengths.h"
#include "planner/published/published_layouts.h"
#include "planner/search/candidate.h"
#include "planner/search/freeze_in_place.h"
#include "planner/search/slice_cut.h"

namespace frostpipe {
namespace {

/// Returns the phase with the least objective among those that fit.
std::variant<Phase, Infeasible> with_least_objective(const PlanningProblem& problem, const Partition& partition,
                                                     LayerCosts& costs) {
  const int p = static_cast<int>(partition.size());
  const CandidateMaker maker(problem, {.pipeline_parallel_size = p, .cache = {}}, costs);
  std::map<std::pair<Nanoseconds, int>, Phase> by_objective;
  std::string not_measured;
  for (const int m : maker.numbers_of_micro_batches()) {
    try {
      Phase phase = maker.unpartitioned_phase(problem.options.recompute, {"TeraPipe"}, m);
      phase.partition = partition;
      TokenSlices slices = cut_for_slowest_stage(phase, problem, costs);
      phase.token_slices = std::move(slices.lengths);
      by_objective.emplace(std::pair(slices.time_ns, m), std::move(phase));
    } catch (const InvalidInput& error) {  // not measured at this size
      not_measured = fmt::format("p = {}: {}", p, error.what());
    }
  }
  Infeasible why;
  for (const auto& [objective, phase] : by_objective) {
    try {
      auto predicted = freeze_in_place(problem, phase, /*first_trainable_layer=*/0, /*from_step=*/0);
      if (std::holds_alternative<Phase>(predicted)) return predicted;
      why = std::get<Infeasible>(std::move(predicted));
    } catch (const InvalidInput& error) {  // the largest micro-batch was not measured
      not_measured = fmt::format("p = {}: {}", p, error.what());
    }
  }
  return why.reason.empty() ? Infeasible{not_measured} : why;
}

}  // namespace

std::variant<Phase, Infeasible> terapipe_phase(const PlanningProblem& problem) {
  LayerCosts costs(problem.profile, problem.options.dtype, problem.options.sequence_parallel);
  BestOfLengths best;
  for_each_length(problem, [&](int p) {
    const std::string why = why_no_pipeline(problem, p);
    if (!why.empty()) return best.add(Infeasible{fmt::format("p = {}: {}", p, why)});
    auto split = equal_split(problem.profile.model, p);
    if (auto* none = std::get_if<Infeasible>(&split)) return best.add(std::move(*none));
    best.add(with_least_objective(problem, std::get<Partition>(split), costs));
  });
  return std::move(best).result();
}

}  // namespace frostpipe
