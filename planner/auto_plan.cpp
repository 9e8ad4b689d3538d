#include "planner/auto_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "planner/candidate.h"
#include "planner/iteration_bound.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr std::size_t kMostAlternatives = 5;

std::set<int> tensor_parallel_sizes(const Profile& profile, const PlanOptions& options, int num_devices) {
  std::set<int> sizes;
  for (const Measurement& one : profile.measurements) sizes.insert(one.key.tensor_parallel_size);
  std::erase_if(sizes, [&](int size) { return num_devices % size != 0 || (options.tensor_parallel_size > 1 && size != options.tensor_parallel_size); });
  return sizes;
}

class AutoSearch {
 public:
  AutoSearch(const Profile& profile, const Cluster& cluster, const PlanOptions& options) : profile_(profile), cluster_(cluster), options_(options) {}

  void consider(int tensor_ranks, int length) {
    PlanOptions options = options_;
    options.tensor_parallel_size = tensor_ranks;
    std::vector<Recompute> modes = {options.recompute};
    if (!options.recompute) modes.insert(modes.end(), recompute_modes().begin(), recompute_modes().end());
    std::string reason;
    for (const Recompute& mode : modes) {
      options.recompute = mode;
      try {
        auto result = best_phase(profile_, cluster_, options, length, /*first_trainable_layer=*/0);
        if (auto* phase = std::get_if<Phase>(&result)) {
          found_.push_back(std::move(*phase));
          return;
        }
        reason = std::get<Infeasible>(result).reason;
      } catch (const InvalidInput& error) {  // its micro-batches were not measured; another layout's may be
        reason = fmt::format("p = {}: {}", length, error.what());
        break;
      }
    }
    misses_.push_back(tensor_ranks > 1 ? fmt::format("t = {}, {}", tensor_ranks, reason) : reason);
  }

  std::vector<Phase> found() {
    const auto order = [](const Phase& a, const Phase& b) {
      const auto key = [](const Phase& phase) { return std::tuple(phase.predicted.iteration_ns, phase.layout.pipeline_parallel_size, phase.layout.tensor_parallel_size); };
      return key(a) < key(b);
    };
    std::sort(found_.begin(), found_.end(), order);
    return std::move(found_);
  }
  std::vector<std::string> misses() { return std::move(misses_); }

 private:
  const Profile& profile_;
  const Cluster& cluster_;
  const PlanOptions& options_;
  std::vector<Phase> found_;
  std::vector<std::string> misses_;
};

}  // namespace

std::variant<AutoPlan, Infeasible> make_auto_plan(const Profile& profile, const Cluster& cluster, const PlanOptions& options) {
  const int devices = static_cast<int>(cluster.devices.size());
  AutoSearch search(profile, cluster, options);
  for (const int tensor_ranks : tensor_parallel_sizes(profile, options, devices)) {
    const int groups = devices / tensor_ranks;
    for (int length = 1; length <= std::min(groups, static_cast<int>(profile.model.layers.size())); ++length) {
      if (groups % length != 0 || (options.pipeline_parallel_size > 0 && length != options.pipeline_parallel_size)) continue;
      search.consider(tensor_ranks, length);
    }
  }
  std::vector<Phase> found = search.found();
  std::vector<std::string> misses = search.misses();
  if (found.empty()) {
    if (misses.empty()) return Infeasible{fmt::format("no layout of {} devices has what is asked for (tensor-parallel size {}, pipeline length {})", devices,
                                                      options.tensor_parallel_size, options.pipeline_parallel_size)};
    return Infeasible{fmt::format("{}", fmt::join(misses, "; "))};
  }
  PlanOptions chosen = options;  // for what a plan holds beside its phases
  chosen.method = found.front().layout.pipeline_parallel_size == 1 ? "data-parallel" : "static";
  AutoPlan result{.plan = plan_of(profile, cluster, chosen, {found.front()}), .alternatives = {}, .misses = std::move(misses)};
  result.lower_bound_ns = iteration_lower_bound_ns(profile, cluster, options.global_batch_size, tokens_of(options, profile), options.optimizer, options.dtype);
  found.erase(found.begin());
  found.resize(std::min(found.size(), kMostAlternatives));
  result.alternatives = std::move(found);
  return result;
}

}  // namespace frostpipe
