#include "planner/replan.h"

#include <algorithm>
#include <optional>

#include "plan/memory.h"
#include "plan/transformation.h"
#include "planner/candidate.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

Nanoseconds times(Nanoseconds duration, double factor) { return static_cast<Nanoseconds>(static_cast<double>(duration) * factor); }

class Replanner {
 public:
  Replanner(const Profile& profile, const Cluster& cluster, const PlanOptions& options, const ReplanRequest& request, const CacheContent& content)
      : profile_(profile), cluster_(cluster), options_(options), request_(request) {
    result_.why_no_cache = why_no_cache();
    if (!result_.why_no_cache.empty()) return;
    parts_ = cache_parts(request.first_trainable_layer, request.from_step, options.num_steps, options.steps_per_epoch,
                         cache_capacity(options.cache, profile), content);
  }

  std::variant<ReplanResult, Infeasible> run() {
    const auto carried = carry_on(profile_, cluster_, options_, request_.current, request_.first_trainable_layer, request_.from_step);
    std::string reason;
    if (const auto* phase = std::get_if<Phase>(&carried)) {
      consider_layout(*phase, std::nullopt);
    } else {
      reason = std::get<Infeasible>(carried).reason;
    }
    for (int length = request_.current.layout.pipeline_parallel_size;; length /= 2) {
      const auto uncached = best(length, {});
      if (const auto* none = std::get_if<Infeasible>(&uncached)) {
        reason = none->reason;
      } else {
        consider(uncached_continuation(std::get<Phase>(uncached)));
        if (!parts_.empty()) {
          const auto fill = best(length, parts_.front().use), hit = best(length, parts_.back().use);
          if (const auto* phase = std::get_if<Phase>(&fill)) {
            const auto* later = std::get_if<Phase>(&hit);
            consider_layout(*phase, later ? std::optional(*later) : std::nullopt);
          }
        }
      }
      if (length % 2 != 0) break;
    }
    if (result_.candidates.empty()) return Infeasible{reason};
    result_.chosen = *std::min_element(result_.candidates.begin(), result_.candidates.end(),
                                       [](const Continuation& a, const Continuation& b) { return a.predicted_ns < b.predicted_ns; });
    return std::move(result_);
  }

 private:
  std::string why_no_cache() const {
    if (!options_.use_cache) return "the cache is switched off";
    if (options_.steps_per_epoch == 0) return "the length of an epoch is not known";
    if (!profile_.cache) return "the profile has not measured a cache; profile again";
    if (options_.cache.memory_bytes + options_.cache.disk_bytes == 0) return "the cache may hold 0 bytes";
    if (request_.first_trainable_layer == 0) return "nothing is frozen";
    return {};
  }

  std::variant<Phase, Infeasible> best(int length, const CacheUse& cache) const {
    return best_phase(profile_, cluster_, options_, length, request_.first_trainable_layer, cache);
  }

  Continuation uncached_continuation(Phase phase) const {
    phase.from_step = request_.from_step;
    return priced({{std::move(phase)}, {}, 0});
  }

  /// One layout without the cache; and with it, changing to `later`'s layout for the last part or not.
  void consider_layout(const Phase& phase, const std::optional<Phase>& later) {
    consider(uncached_continuation(uncached(phase)));
    if (parts_.empty()) return;
    consider(with_cache(phase, phase));
    if (!later || parts_.size() < 2) return;
    consider(with_cache(phase, *later));
    consider(with_cache(*later, *later));
  }

  static Phase uncached(Phase phase) {
    phase.cache = {};
    return phase;
  }

  Continuation with_cache(const Phase& first, const Phase& last) const {
    Continuation made{.phases = {}, .parts = parts_, .predicted_ns = 0};
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Phase phase = i + 1 < parts_.size() ? first : last;
      phase.from_step = parts_[i].from_step;
      phase.cache = parts_[i].use;
      made.phases.push_back(std::move(phase));
    }
    return priced(std::move(made));
  }

  Continuation priced(Continuation made) const {
    const Phase* before = &request_.current;
    for (std::size_t i = 0; i < made.phases.size(); ++i) {
      Phase& phase = made.phases[i];
      const auto memory = memory_of(phase, options_.global_batch_size, options_.optimizer, options_.dtype, profile_, cluster_);
      if (!options_.ignore_memory_limit && !what_does_not_fit(phase, memory, cluster_).empty()) return {};
      const int end = i + 1 < made.phases.size() ? made.phases[i + 1].from_step : options_.num_steps;
      phase.predicted = {
          .iteration_ns = simulated_iteration_ns(phase, options_.global_batch_size, options_.optimizer, options_.dtype, profile_, cluster_),
          .transformation_ns = transformation_ns(diff(*before, phase, profile_.model, options_.optimizer, options_.dtype), cluster_),
          .peak_memory_bytes = peak_per_rank(phase, memory, static_cast<int>(cluster_.devices.size()))};
      made.predicted_ns += (end - phase.from_step) * phase.predicted.iteration_ns + phase.predicted.transformation_ns;
      before = &phase;
    }
    return made;
  }

  void consider(Continuation made) {
    const auto same = [&](const Continuation& other) { return other.phases == made.phases; };
    if (!made.phases.empty() && std::none_of(result_.candidates.begin(), result_.candidates.end(), same)) result_.candidates.push_back(std::move(made));
  }

  const Profile& profile_;
  const Cluster& cluster_;
  const PlanOptions& options_;
  const ReplanRequest& request_;
  std::vector<CachePart> parts_;
  ReplanResult result_;
};

}  // namespace

Profile scaled_profile(Profile profile, double factor) {
  for (Measurement& measurement : profile.measurements) {
    LayerCost& cost = measurement.cost;
    for (Nanoseconds* part : {&cost.forward_ns, &cost.input_gradient_ns, &cost.weight_gradient_ns, &cost.frozen_forward_ns}) *part = times(*part, factor);
  }
  for (UpdateMeasurement& update : profile.updates) update.update_ns = times(update.update_ns, factor);
  if (!profile.cache) return profile;
  for (Link* link : {&profile.cache->read, &profile.cache->write}) {
    link->latency_ns = times(link->latency_ns, factor);
    link->bandwidth_bytes_per_second = static_cast<std::int64_t>(static_cast<double>(link->bandwidth_bytes_per_second) / factor);
  }
  return profile;
}

std::variant<ReplanResult, Infeasible> replan(const Profile& profile, const Cluster& cluster, const PlanOptions& options,
                                              const ReplanRequest& request, const CacheContent& content) {
  if (request.measured_iteration_ns == 0) return Replanner(profile, cluster, options, request, content).run();
  const Nanoseconds predicted =
      simulated_iteration_ns(request.current, options.global_batch_size, options.optimizer, options.dtype, profile, cluster);
  const double factor = std::clamp(static_cast<double>(request.measured_iteration_ns) / static_cast<double>(std::max<Nanoseconds>(1, predicted)), 0.5, 2.0);
  const Profile measured = scaled_profile(profile, factor);
  return Replanner(measured, cluster, options, request, content).run();
}

}  // namespace frostpipe
