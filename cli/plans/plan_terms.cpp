#include "cli/plans/plan_terms.h"

#include <fmt/format.h>

#include "cli/shared/table.h"
#include "plan/memory.h"
#include "planner/search/stage_bound.h"

namespace frostpipe {

std::string stage_terms_text(const Phase& phase, const PlanningProblem& problem) {
  const auto& [profile, cluster, wanted] = problem;
  PlanOptions options = wanted;
  options.tensor_parallel_size = phase.layout.tensor_parallel_size;
  LayerCosts costs(profile, options.dtype);
  const StageBound bound(phase, {profile, cluster, options}, costs);
  const auto memory = memory_of(phase, step_settings(options), profile, cluster);
  using enum Table::Align;
  Table table({{"stage", right},
               {"layers", left},
               {"before [ms]", right},
               {"its work [ms]", right},
               {"after [ms]", right},
               {"norm [ms]", right},
               {"at least [ms]", right},
               {"memory [MiB]", right},
               {"limit [MiB]", right},
               {"mostly", left}});
  int slowest = 0;
  for (int stage = 0; stage < phase.layout.pipeline_parallel_size; ++stage) {
    const StageBound::Terms terms = bound.terms(stage, phase.partition[stage]);
    if (terms.total_ns() > bound.at(slowest, phase.partition[slowest])) slowest = stage;
    const auto limit = cluster.devices[rank_of(phase.layout, stage, 0)].memory_limit_bytes;
    const RankMemory& need = memory[stage];
    std::pair<Bytes, std::string> most = {need.weights, "weights"};
    for (const auto& [bytes, name] : {std::pair(need.gradients, "gradients"),
                                      {need.optimizer_state, "optimizer"},
                                      {need.saved_activations, "saved activations"},
                                      {need.workspace, "workspace"},
                                      {need.exchange, "exchange"},
                                      {need.cache, "cache"}})
      if (bytes > most.first) most = {bytes, name};
    table.add_row({std::to_string(stage),
                   fmt::format("[{},{})", phase.partition[stage].begin, phase.partition[stage].end),
                   fmt::format("{} {}", in_milliseconds(std::max(terms.to_ns, terms.update_ns)),
                               terms.to_ns >= terms.update_ns ? "filling" : "update"),
                   in_milliseconds(terms.work_ns),
                   fmt::format("{} {}", in_milliseconds(std::max(terms.draining_ns(), terms.reduction_ns)),
                               terms.draining_ns() >= terms.reduction_ns ? "draining" : "reduction"),
                   in_milliseconds(terms.norm_ns), in_milliseconds(terms.total_ns()), in_mebibytes(need.total()),
                   limit ? in_mebibytes(*limit) : "none", most.second});
  }
  return fmt::format(
      "\nfirst phase, stage by stage (filling: until the first micro-batch is there; draining: until the last one's "
      "backward has left the pipeline)\n{}"
      "stage {} sets the pace; the iteration takes {}\n",
      table.to_string(), slowest, format_duration(phase.predicted.iteration_ns));
}

}  // namespace frostpipe
