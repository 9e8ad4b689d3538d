#pragma once
#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "planner/search/plan_options.h"

namespace frostpipe {

/// Calls `consider` with every pipeline length that divides longest_pipeline(); if a length is asked for, only with
/// that one.
template <class Consider>
void for_each_length(const PlanningProblem& problem, Consider&& consider) {
  const auto& [profile, cluster, options] = problem;
  const int longest = longest_pipeline(cluster, options);
  for (int p = 1; p <= std::min(longest, static_cast<int>(profile.model.layers.size())); ++p)
    if (longest % p == 0 && (options.pipeline_parallel_size == 0 || options.pipeline_parallel_size == p)) consider(p);
}

/// Keeps the phase with the least objective, or, if there is none, the reasons.
class BestOfLengths {
 public:
  void add(std::variant<Phase, Infeasible> result, double objective) {
    if (const auto* none = std::get_if<Infeasible>(&result)) {
      reasons_.add(*none);
    } else if (!best_ || objective < objective_) {
      best_ = std::get<Phase>(std::move(result));
      objective_ = objective;
    }
  }
  void add(std::variant<Phase, Infeasible> result) {
    const auto* phase = std::get_if<Phase>(&result);
    const double objective = phase ? static_cast<double>(phase->predicted.iteration_ns) : 0;
    add(std::move(result), objective);
  }
  std::variant<Phase, Infeasible> result() && {
    if (best_) return *std::move(best_);
    if (reasons_.reason.empty()) return Infeasible{"no pipeline length divides the devices of each replica"};
    return std::move(reasons_);
  }

 private:
  std::optional<Phase> best_;
  double objective_ = 0;
  Infeasible reasons_;
};

}  // namespace frostpipe
