#include "planner/replan.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "planner/run_planner.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

Nanoseconds times(Nanoseconds duration, double factor) {
  return static_cast<Nanoseconds>(static_cast<double>(duration) * factor);
}

std::variant<ReplanResult, Infeasible> replan_along_forecast(const PlanningProblem& problem,
                                                             const ReplanRequest& request,
                                                             const CacheContent& content) {
  RunStart start{.current = request.current, .content = content, .lengths = {}};
  if (request.layout_is_lost) start.current.reset();
  RunPlanner planner(problem, std::move(start));
  const Model& model = problem.profile.model;
  const auto windows = windows_of(model, request.from_step, request.first_trainable_layer,
                                  forecast_after(request.from_step, model, problem.options), problem.options.num_steps);
  auto planned = planner.plan(windows, /*only_best=*/false);
  if (auto* none = std::get_if<Infeasible>(&planned)) return std::move(*none);
  ReplanResult result;
  result.why_no_cache = planner.why_no_cache(windows.front());
  std::set<std::tuple<int, bool, bool>> seen;  // pipeline length, whether the current partition, whether with the cache
  for (RunPath& path : std::get<std::vector<RunPath>>(planned)) {
    const Phase& first = path.phases.front().front();
    const bool is_current = have_same_pipeline(first, request.current);
    if (!seen.emplace(first.layout.pipeline_parallel_size, is_current, !path.parts.empty()).second) continue;
    Continuation way{
        .phases = path.phases.front(), .later = {}, .parts = std::move(path.parts), .predicted_ns = path.predicted_ns};
    for (std::size_t i = 1; i < windows.size(); ++i) append_until(way.later, path.phases[i], windows[i].end_step);
    result.candidates.push_back(std::move(way));
  }
  result.chosen = result.candidates.front();
  return result;
}

}  // namespace

std::vector<Phase> forecast_phases(const Continuation& continuation) {
  const std::vector<Phase>& later = continuation.later;
  std::vector<Phase> phases;
  append_until(phases, continuation.phases, later.empty() ? std::numeric_limits<int>::max() : later.front().from_step);
  phases.insert(phases.end(), later.begin(), later.end());
  return phases;
}

Profile scaled_profile(Profile profile, double factor) {
  for (Measurement& measurement : profile.measurements) {
    for (Nanoseconds* const part : times_in(measurement.cost)) *part = times(*part, factor);
  }
  for (UpdateMeasurement& update : profile.updates) update.update_ns = times(update.update_ns, factor);
  if (!profile.cache) return profile;
  for (Link* link : {&profile.cache->read, &profile.cache->write}) {
    link->latency_ns = times(link->latency_ns, factor);
    link->bandwidth_bytes_per_second =
        static_cast<std::int64_t>(static_cast<double>(link->bandwidth_bytes_per_second) / factor);
  }
  return profile;
}

std::variant<ReplanResult, Infeasible> replan(const PlanningProblem& problem, const ReplanRequest& request,
                                              const CacheContent& content) {
  const auto& [profile, cluster, options] = problem;
  if (request.forecast && options.forecast != request.forecast) {
    PlanOptions with_forecast = options;
    with_forecast.forecast = request.forecast;
    return replan({profile, cluster, with_forecast}, request, content);
  }
  if (request.from_step >= options.num_steps) {
    PlanOptions one_more = options;
    one_more.num_steps = request.from_step + 1;
    one_more.use_cache = false;
    one_more.forecast.emplace();
    auto result = replan_along_forecast({profile, cluster, one_more}, request, content);
    if (auto* found = std::get_if<ReplanResult>(&result)) found->why_no_cache = "no step is left";
    return result;
  }
  if (request.measured_iteration_ns == 0) return replan_along_forecast(problem, request, content);
  const Nanoseconds predicted = simulated_iteration_ns(request.current, step_settings(options), profile, cluster);
  const double factor = std::clamp(
      static_cast<double>(request.measured_iteration_ns) / static_cast<double>(std::max<Nanoseconds>(1, predicted)),
      0.5, 2.0);
  const Profile scaled = scaled_profile(profile, factor);
  return replan_along_forecast({scaled, cluster, options}, request, content);
}

}  // namespace frostpipe
