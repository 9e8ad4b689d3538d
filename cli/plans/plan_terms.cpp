#include "cli/plans/plan_terms.h"

#include <fmt/format.h>

#include "cli/shared/table.h"
#include "plan/memory.h"
#include "plan/stages.h"
#include "planner/search/stage_bound.h"

namespace frostpipe {

std::string stage_terms_text(const Phase& phase, const PlanningProblem& problem) {
  const auto& [profile, cluster, wanted] = problem;
  PlanOptions options = wanted;
  options.tensor_parallel_size = phase.layout.tensor_parallel_size;
  options.sequence_parallel = phase.layout.sequence_parallel;
  LayerCosts costs(profile, options.dtype, options.sequence_parallel);
  const StageBound bound(phase, {profile, cluster, options}, costs);
  const auto memory = memory_of(phase, step_settings(options), profile, cluster);
  using enum Table::Align;
  const bool has_one_each = has_one_stage_per_rank(phase);
  Table table({{has_one_each ? "stage" : "pipeline rank", right},
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
  for (int rank = 0; rank < phase.layout.pipeline_parallel_size; ++rank) {
    const StageBound::Terms terms = bound.on_rank(phase.partition, rank);
    if (terms.total_ns() > bound.on_rank(phase.partition, slowest).total_ns()) slowest = rank;
    const auto limit = cluster.devices[rank_of(phase.layout, rank, 0)].memory_limit_bytes;
    const RankMemory& need = memory[rank];
    std::pair<Bytes, std::string> most = {need.weights, "weights"};
    for (const auto& [bytes, name] : {std::pair(need.gradients, "gradients"),
                                      {need.older_weights, "older weights"},
                                      {need.optimizer_state, "optimizer"},
                                      {need.saved_activations, "saved activations"},
                                      {need.workspace, "workspace"},
                                      {need.exchange, "exchange"},
                                      {need.cache, "cache"},
                                      {need.sent_ahead, "sent ahead"}})
      if (bytes > most.first) most = {bytes, name};
    table.add_row({std::to_string(rank), to_string(layers_on(phase, rank)),
                   fmt::format("{} {}", in_milliseconds(std::max(terms.to_ns, terms.update_ns)),
                               terms.to_ns >= terms.update_ns ? "filling" : "update"),
                   in_milliseconds(terms.work_ns),
                   fmt::format("{} {}", in_milliseconds(std::max(terms.draining_ns(), terms.reduction_ns)),
                               terms.draining_ns() >= terms.reduction_ns ? "draining" : "reduction"),
                   in_milliseconds(terms.norm_ns), in_milliseconds(terms.total_ns()), in_mebibytes(need.total()),
                   limit ? in_mebibytes(*limit) : "none", most.second});
  }
  return fmt::format(
      "\nfirst phase, {0} by {0} (filling: until the first micro-batch is there; draining: until the last one's "
      "backward has left the pipeline)\n{1}"
      "{0} {2} sets the pace; the iteration takes {3}\n",
      has_one_each ? "stage" : "pipeline rank", table.to_string(), slowest,
      format_duration(phase.predicted.iteration_ns));
}

}  // namespace frostpipe
