#include "planner/make_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "planner/published/paper_auto_pipe.h"
#include "planner/published/published_layouts.h"
#include "planner/replan.h"
#include "planner/run_planner.h"
#include "planner/search/best_phase.h"
#include "planner/search/freeze_in_place.h"
#include "profiles/device_type.h"
#include "profiles/error.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

using Phases = std::variant<std::vector<Phase>, Infeasible>;

/// Groups of tensor ranks: what pipelines and replicas are made of.
int num_groups(const Cluster& cluster, const PlanOptions& options) {
  return devices_to_use(cluster, options) / options.tensor_parallel_size;
}

/// Pipeline lengths of the static method: those that leave no rank idle.
std::vector<int> static_lengths(int world_size) {
  std::vector<int> lengths;
  for (int p = std::min(2, world_size); p <= world_size; ++p) {
    if (world_size % p == 0) lengths.push_back(p);
  }
  return lengths;
}

std::variant<Phase, Infeasible> best_of_lengths(const Profile& profile, const Cluster& cluster,
                                                const PlanOptions& options, const std::vector<int>& lengths) {
  std::optional<Phase> best;
  Infeasible misses;
  for (const int p : lengths) {
    auto result = best_phase(profile, cluster, options, p, /*first_trainable_layer=*/0);
    if (const auto* none = std::get_if<Infeasible>(&result)) {
      misses.add(*none);
      continue;
    }
    Phase& phase = std::get<Phase>(result);
    if (!best || phase.predicted.iteration_ns < best->predicted.iteration_ns) best = std::move(phase);
  }
  if (best) return *best;
  return misses;
}

/// Phase after phase along the forecast by a rule that looks at nothing but the next freeze.
Phases phases_by_rule(const Profile& profile, const Cluster& cluster, const PlanOptions& options, const Phase& start) {
  std::vector<Phase> phases{start};
  const auto windows = windows_of(profile.model, 0, 0, forecast_of(profile.model, options), options.num_steps);
  for (auto window = std::next(windows.begin()); window != windows.end(); ++window) {
    const int first_trainable = window->first_trainable_layer;
    auto next =
        options.method == "freeze-only"
            ? freeze_in_place(profile, cluster, options, phases.back(), first_trainable, window->from_step)
            : next_published_phase(profile, cluster, options, phases.back(), first_trainable, window->from_step);
    if (const auto* none = std::get_if<Infeasible>(&next))
      return Infeasible{
          fmt::format("with {} frozen layers: {}", frozen_blocks(profile.model, first_trainable), none->reason),
          none->lacks_memory};
    phases.push_back(std::get<Phase>(std::move(next)));
  }
  return phases;
}

/// The phases of a path from a window on, each until the next begins.
std::vector<Phase> phases_from(const RunPath& path, const std::vector<RunWindow>& windows, std::size_t window) {
  std::vector<Phase> phases;
  for (std::size_t i = window; i < windows.size(); ++i) append_until(phases, path.phases[i], windows[i].end_step);
  return phases;
}

/// How the path goes on at a window.
Continuation continuation_of(const RunPath& path, const std::vector<RunWindow>& windows, std::size_t window,
                             int num_steps) {
  Continuation way{
      .phases = path.phases[window], .later = phases_from(path, windows, window + 1), .parts = {}, .predicted_ns = 0};
  for (std::size_t i = 0; i < way.phases.size(); ++i) {
    const int end_step = i + 1 < way.phases.size() ? way.phases[i + 1].from_step : num_steps;
    if (way.phases[i].cache.on)
      way.parts.push_back({.from_step = way.phases[i].from_step, .end_step = end_step, .use = way.phases[i].cache});
  }
  TrainingPlan rest;
  rest.num_steps = num_steps;
  rest.phases = phases_from(path, windows, window);
  way.predicted_ns = predicted_run_ns(rest);
  return way;
}

/// What is considered at each freeze of a plan, and which of it the plan does: of equally fast ways replan() may prefer
/// another.
void explain(const Profile& profile, const Cluster& cluster, const PlanOptions& options, const RunPath& path,
             const std::vector<RunWindow>& windows, const ReplanObserver& observe) {
  const std::vector<Phase> phases = phases_from(path, windows, 0);
  CacheContent content;
  int step = 0;
  for (std::size_t i = 1; i < windows.size(); ++i) {
    const int until = windows[i].from_step;
    const Phase& current = *std::prev(std::partition_point(
        phases.begin(), phases.end(), [&](const Phase& phase) { return phase.from_step < until; }));
    if (options.steps_per_epoch > 0)
      content = advanced(std::move(content), current.cache.on ? current.first_trainable_layer : 0,
                         std::exchange(step, until), until, options.steps_per_epoch);
    const ReplanRequest request{
        .current = current, .first_trainable_layer = windows[i].first_trainable_layer, .from_step = until};
    auto result = replan(profile, cluster, options, request, content);
    auto* considered = std::get_if<ReplanResult>(&result);
    if (!considered) continue;
    considered->chosen = continuation_of(path, windows, i, options.num_steps);
    std::vector<Continuation>& ways = considered->candidates;
    const auto same = std::find_if(ways.begin(), ways.end(),
                                   [&](const Continuation& way) { return way.phases == considered->chosen.phases; });
    if (same == ways.end())
      ways.insert(ways.begin(), considered->chosen);
    else
      *same = considered->chosen;
    observe(request, *considered);
  }
}

/// The best of the whole run.
Phases elastic_phases(const Profile& profile, const Cluster& cluster, const PlanOptions& options,
                      std::vector<int> lengths, const ReplanObserver& observe) {
  RunPlanner planner(profile, cluster, options, {.current = {}, .content = {}, .lengths = std::move(lengths)});
  const auto windows = windows_of(profile.model, 0, 0, forecast_of(profile.model, options), options.num_steps);
  auto planned = planner.plan(windows, /*only_best=*/true);
  if (auto* none = std::get_if<Infeasible>(&planned)) return std::move(*none);
  const RunPath& path = std::get<std::vector<RunPath>>(planned).front();
  if (observe) explain(profile, cluster, options, path, windows, observe);
  return phases_from(path, windows, 0);
}

/// Method exact.
std::variant<Phase, Infeasible> least_bound_phase(const Profile& profile, const Cluster& cluster,
                                                  const PlanOptions& options) {
  LayerCosts costs(profile, options.dtype);
  std::optional<Phase> best;
  Nanoseconds least = 0;
  Infeasible reasons;
  const int groups = num_groups(cluster, options);
  for (int p = 1; p <= std::min(groups, static_cast<int>(profile.model.layers.size())); ++p) {
    if (groups % p != 0 || (options.pipeline_parallel_size > 0 && p != options.pipeline_parallel_size)) continue;
    PhaseSearchResult found = search_phase(profile, cluster, options,
                                           {.pipeline_parallel_size = p,
                                            .cache = {},
                                            .recompute = {options.recompute},
                                            .give_up_above_ns = least,
                                            .bound_only = true},
                                           costs);
    if (!found.best) {
      reasons.add({found.reason, found.missing_bytes > 0});
    } else if (!best || found.lower_bound_ns < least) {
      least = found.lower_bound_ns;
      best = std::move(found.best);
    }
  }
  if (best) return freeze_in_place(profile, cluster, options, *best, 0, 0);  // with its prediction
  return reasons;
}

using OnePhaseMethod = std::variant<Phase, Infeasible> (*)(const Profile&, const Cluster&, const PlanOptions&);

/// Those that never change their layout, beside data-parallel and static.
const std::map<std::string, OnePhaseMethod>& one_phase_methods() {
  static const std::map<std::string, OnePhaseMethod> methods = {{"exact", least_bound_phase},
                                                                {"equal-split", equal_split_phase},
                                                                {"pipedream", pipedream_phase},
                                                                {"pipedream-2bw", pipedream_2bw_phase},
                                                                {"ptd-p", ptd_p_phase}};
  return methods;
}

Phases phases_by_method(const Profile& profile, const Cluster& cluster, const PlanOptions& options,
                        const ReplanObserver& observe) {
  std::vector<int> lengths;
  const int wanted = options.pipeline_parallel_size;
  if (wanted > 0 &&
      (num_groups(cluster, options) % wanted != 0 || (options.method == "data-parallel" && wanted != 1))) {
    throw InvalidInput(
        "pipeline length",
        options.method == "data-parallel"
            ? "must be 1 for data-parallel"
            : fmt::format("must divide the {} ranks (over the tensor-parallel size)", num_groups(cluster, options)),
        std::to_string(wanted));
  }
  if (options.method == "data-parallel") {
    lengths = {1};
  } else if (options.method == "pipetransformer-published" || !replicates(options)) {
    lengths = {num_groups(cluster, options)};
  } else if (options.method == "static" || options.method == "freeze-only" || options.method == "timelyfreeze") {
    lengths = static_lengths(num_groups(cluster, options));
  } else if (const auto known = one_phase_methods().find(options.method); known != one_phase_methods().end()) {
    auto phase = known->second(profile, cluster, options);
    if (auto* none = std::get_if<Infeasible>(&phase)) return std::move(*none);
    return std::vector<Phase>{std::get<Phase>(std::move(phase))};
  } else if (options.method != "pipetransformer") {
    throw InvalidInput("method", fmt::format("must be one of {}", fmt::join(plan_methods(), ", ")), options.method);
  }
  if (wanted > 0) lengths = {wanted};
  if (options.method == "pipetransformer" || !replicates(options))
    return elastic_phases(profile, cluster, options, std::move(lengths), observe);
  auto start = best_of_lengths(profile, cluster, options, lengths);
  if (const auto* none = std::get_if<Infeasible>(&start)) return *none;
  const Phase& first = std::get<Phase>(start);
  if (options.method == "freeze-only" || options.method == "pipetransformer-published")
    return phases_by_rule(profile, cluster, options, first);
  return std::vector<Phase>{first};
}

/// The published method is one of partition and schedule too.
PlanOptions as_published(PlanOptions options) {
  if (options.method != "pipetransformer-published") return options;
  options.partitioner = "pipetransformer-greedy";
  options.schedule = "GPipe";
  options.use_cache = false;
  return options;
}

}  // namespace

const std::vector<std::string>& plan_methods() {
  static const std::vector<std::string> methods = {"data-parallel",
                                                   "static",
                                                   "exact",
                                                   "equal-split",
                                                   "pipedream",
                                                   "pipedream-2bw",
                                                   "ptd-p",
                                                   "timelyfreeze",
                                                   "pipetransformer",
                                                   "freeze-only",
                                                   "pipetransformer-published",
                                                   "pipetransformer-without-replicas"};
  return methods;
}

PlanResult make_plan(const Profile& profile, const Cluster& cluster, const PlanOptions& wanted,
                     const ReplanObserver& observe) {
  const PlanOptions options = as_published(wanted);
  require_meaningful(profile, cluster, options);
  auto phases = phases_by_method(profile, cluster, options, observe);
  if (const auto* none = std::get_if<Infeasible>(&phases)) return *none;
  return plan_of(profile, cluster, options, std::get<std::vector<Phase>>(std::move(phases)));
}

TrainingPlan plan_of(const Profile& profile, const Cluster& cluster, const PlanOptions& options,
                     std::vector<Phase> phases) {
  TrainingPlan plan;
  plan.method = options.method;
  plan.world_size = static_cast<int>(cluster.devices.size());
  plan.threads_per_rank = threads_of(cluster.devices.front().type);
  plan.global_batch_size = options.global_batch_size;
  plan.num_steps = options.num_steps;
  plan.optimizer = options.optimizer;
  plan.dtype = options.dtype;
  plan.frozen_dtype = profile.frozen_dtype;
  plan.memory_limited = !options.ignore_memory_limit;
  plan.partitioner = options.partitioner;
  const bool may_cache = options.method == "pipetransformer" || !replicates(options);
  if (may_cache && options.use_cache) plan.cache = options.cache;
  plan.phases = std::move(phases);
  plan.provenance.model_name = profile.model.name;
  plan.provenance.model_fingerprint = fingerprint(profile.model);
  plan.provenance.version = std::string(FROSTPIPE_VERSION);
  return plan;
}

}  // namespace frostpipe
