#include "cli/shared/one_process_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/shared/report_words.h"

namespace frostpipe {
namespace {

std::string process_with(int threads) {
  return threads > 1 ? fmt::format("One process with {} threads", threads) : "One process";
}

}  // namespace

std::string one_process_line(const TrainingPlan& plan, bool is_fastest) {
  if (plan.world_size > 1) return "";
  const auto any = [&](auto property) { return std::any_of(plan.phases.begin(), plan.phases.end(), property); };
  const bool freezes = any([](const Phase& phase) { return phase.first_trainable_layer > 0; });
  const bool caches = any([](const Phase& phase) { return phase.cache.on; });
  return fmt::format("{}{}: this run {}.\n", process_with(plan.threads_per_rank), is_fastest ? " is fastest here" : "",
                     caches    ? "freezes and caches, without a pipeline"
                     : freezes ? "freezes, without a pipeline"
                               : "has no pipeline");
}

std::string one_process_line(const RunSummary& run) {
  if (run.world_size > 1 || !freezes(run)) return "";
  const bool cached =
      std::any_of(run.phases.begin(), run.phases.end(), [](const PhaseSummary& phase) { return phase.cache; });
  return fmt::format("{}: {} froze{}, without a pipeline.\n", process_with(run.threads_per_rank),
                     run_in_words(run.name), cached ? " and cached" : "");
}

}  // namespace frostpipe
