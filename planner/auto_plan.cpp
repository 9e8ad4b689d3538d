#include "planner/auto_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "planner/make_plan.h"
#include "planner/search/best_phase.h"
#include "planner/search/best_placement.h"
#include "planner/search/candidate.h"
#include "planner/search/placement.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

constexpr std::size_t kMaxAlternatives = 5;
constexpr std::size_t kMaxReasons = 5;
constexpr int kProofMicroBatches = 40'000;  // per layout; takes some tens of milliseconds

/// Returns the pairs (tensor-parallel size, pipeline length) that leave no device idle, or with a fixed number of
/// replicas those for which there are enough devices.
std::vector<std::pair<int, int>> layouts_of(const PlanningProblem& problem) {
  const auto& [profile, cluster, options] = problem;
  const int num_devices = devices_to_use(cluster, options);
  std::vector<std::pair<int, int>> layouts;
  for (const int size : measured_tensor_sizes(profile, options.sequence_parallel)) {
    if (num_devices % size != 0 || (!options.any_tensor_parallel_size && size != options.tensor_parallel_size))
      continue;
    const int groups = num_devices / size;
    const auto are_used = [&](int length) {
      const int replicas = options.data_parallel_size;
      return replicas > 0 ? length * replicas <= groups : groups % length == 0;
    };
    for (int length = 1; length <= std::min(groups, static_cast<int>(profile.model.layers.size())); ++length)
      if (are_used(length) && (options.pipeline_parallel_size == 0 || length == options.pipeline_parallel_size))
        layouts.emplace_back(size, length);
  }
  return layouts;
}

/// Returns why layouts_of is empty.
std::string why_no_layout(const PlanningProblem& problem) {
  const auto& [profile, cluster, options] = problem;
  const int size = options.tensor_parallel_size, length = options.pipeline_parallel_size;
  std::set<int> sizes = measured_tensor_sizes(profile, options.sequence_parallel);
  if (!options.any_tensor_parallel_size) {
    if (!sizes.contains(size))
      return fmt::format(
          "tensor-parallel size {0}: was not measured, the profile has {1} (profile --tensor-parallel "
          "1,{0}{2})",
          size, fmt::join(sizes, ", "), options.sequence_parallel ? " --sequence-parallel" : "");
    sizes = {size};
  }
  const int devices = devices_to_use(cluster, options), replicas = options.data_parallel_size;
  std::string why = fmt::format("no layout of {} devices has what is asked for (tensor-parallel size {}", devices,
                                fmt::join(sizes, " or "));
  if (length > 0) why += fmt::format(", pipeline length {}", length);
  if (replicas == 0) return why + ")";
  return why + fmt::format(", {} replica{}): {} {} ranks", replicas, replicas == 1 ? "" : "s",
                           devices < static_cast<int>(cluster.devices.size()) ? "the plan may use" : "the cluster has",
                           devices);
}

class AutoSearch {
 public:
  AutoSearch(const PlanningProblem& problem, bool bound_only)
      : problem_(problem),
        bound_only_(bound_only),
        costs_(problem.profile, problem.options.dtype, problem.options.sequence_parallel) {}

  void add(int tensor_ranks, int length) {
    PlanOptions options = problem_.options;
    options.tensor_parallel_size = tensor_ranks;
    ParallelLayout layout{.pipeline_parallel_size = length,
                          .data_parallel_size = replicas_of_pipelines(problem_.cluster, options, length),
                          .tensor_parallel_size = tensor_ranks,
                          .placement = {}};
    for (std::vector<int>& placement : placements_of(problem_.cluster, problem_.options, tensor_ranks, length)) {
      layout.placement = placement;
      const int places =
          placement.empty() ? devices_to_use(problem_.cluster, problem_.options) : static_cast<int>(placement.size());
      const bool has_ranks = num_ranks(layout) <= places;  // otherwise the search reports it
      const std::string why = has_ranks ? why_tensor_ranks_are_apart(problem_.cluster, layout) : "";
      if (why.empty())
        add(tensor_ranks, length, std::move(placement));
      else
        apart_.try_emplace(tensor_ranks, why);
    }
  }

  void add(int tensor_ranks, int length, std::vector<int> placement) {
    Layout layout{.options = problem_.options,
                  .search = {.pipeline_parallel_size = length,
                             .recompute = {problem_.options.recompute},
                             .proof_micro_batches = bound_only_ ? 0 : kProofMicroBatches,
                             .bound_only = bound_only_}};
    layout.options.tensor_parallel_size = tensor_ranks;
    layout.options.placement = std::move(placement);
    if (!problem_.options.recompute)
      layout.search.recompute.insert(layout.search.recompute.end(), kRecomputeModes.begin(), kRecomputeModes.end());
    if (shapes_.empty() || shapes_.back().placed.front().options.tensor_parallel_size != tensor_ranks ||
        shapes_.back().placed.front().search.pipeline_parallel_size != length)
      shapes_.emplace_back();
    shapes_.back().placed.push_back(std::move(layout));
  }

  /// Considers the layouts with the least bound first, so that others can be given up early.
  void run() {
    for (Shape& shape : shapes_)
      shape.bound_ns = least_bound_of_any_partition({problem_.profile, problem_.cluster, shape.placed.front().options},
                                                    shape.placed.front().search, costs_);
    std::stable_sort(shapes_.begin(), shapes_.end(),
                     [](const Shape& a, const Shape& b) { return a.bound_ns < b.bound_ns; });
    for (Shape& shape : shapes_) {
      apart_.erase(shape.placed.front().options.tensor_parallel_size);  // not apart in some order of the devices
      consider_all(std::move(shape.placed));
    }
  }

  std::vector<Phase> found() {
    std::vector<Phase> phases;
    for (auto& [order, phase] : found_) phases.push_back(std::move(phase));
    return phases;
  }
  std::vector<std::string> unfit_layouts() const {
    std::vector<std::string> reasons;
    for (const Unfit& unfit : unfit_layouts_) reasons.push_back(unfit.reason);
    for (const auto& [why, lengths] : not_measured_)
      reasons.push_back(of_layout(why.first, fmt::format("p = {}: {}", fmt::join(lengths, ", "), why.second)));
    for (const auto& [tensor_ranks, reason] : apart_) reasons.push_back(reason);
    return reasons;
  }
  /// Returns whether the first layout that does not fit lacks memory.
  bool lacks_memory() const { return !unfit_layouts_.empty() && unfit_layouts_.begin()->missing_bytes < kNoLimit; }
  Nanoseconds lower_bound_ns() const { return lower_bound_ns_; }

 private:
  using Found = std::map<std::tuple<Nanoseconds, int, int>, Phase>;  // by time, then the shorter pipeline

  /// A layout that does not fit. Those that lack least come first: bytes before samples, and then all other reasons.
  struct Unfit {
    Bytes missing_bytes = kNoLimit;           // kNoLimit = not for lack of memory
    std::int64_t missing_samples = kNoLimit;  // kNoLimit = not for lack of samples
    int tensor_ranks = 1, length = 1;
    std::string reason;
    auto operator<=>(const Unfit&) const = default;
  };

  struct Layout {
    PlanOptions options;
    PhaseSearch search;
  };

  /// A pipeline length and a tensor-parallel size, in every placement.
  struct Shape {
    std::vector<Layout> placed;
    Nanoseconds bound_ns = 0;  // of the first placement; the bounds of the others hardly differ from it
  };

  /// Considers placements in their order until one has a phase, then those on which that phase would be fastest, and
  /// last the others, on which it seeks only phases that are faster than the best of all shapes.
  void consider_all(std::vector<Layout> placed) {
    const int length = placed.front().search.pipeline_parallel_size,
              tensor_ranks = placed.front().options.tensor_parallel_size;
    auto next = placed.begin();
    auto same = found_.end();
    for (; next != placed.end() && same == found_.end(); ++next) {
      consider(*next, found_.size() > kMaxAlternatives ? std::get<0>(found_.rbegin()->first) : 0);
      same = found_with(length, tensor_ranks);
    }
    if (same == found_.end()) return;
    std::vector<std::pair<Nanoseconds, Layout*>> others;  // by the time of that phase on them
    for (; next != placed.end(); ++next) {
      Phase phase = same->second;
      phase.layout.placement = next->options.placement;
      others.emplace_back(time_of(phase), &*next);
    }
    std::ranges::stable_sort(others, {}, [](const auto& other) { return other.first; });
    for (std::size_t i = 0; i < others.size(); ++i) {
      same = found_with(length, tensor_ranks);
      const bool is_likely = i + 1 < kMaxSearched && same != found_.end();
      consider(*others[i].second, std::get<0>((is_likely ? same : found_.begin())->first));
    }
  }

  /// Returns the time of an iteration; kNoLimit if it was not measured on the devices of this placement.
  Nanoseconds time_of(const Phase& phase) const {
    try {
      return simulated_iteration_ns(phase, step_settings(problem_.options), problem_.profile, problem_.cluster);
    } catch (const InvalidInput&) {
      return kNoLimit;
    }
  }

  /// Considers phases that take at most `slowest_ns`; 0 = all.
  void consider(Layout layout, Nanoseconds slowest_ns) {
    const int length = layout.search.pipeline_parallel_size, tensor_ranks = layout.options.tensor_parallel_size;
    if (bound_only_) slowest_ns = lower_bound_ns_ == kNoLimit ? 0 : lower_bound_ns_;
    layout.search.give_up_above_ns = slowest_ns;
    try {
      PhaseSearchResult result =
          search_phase({problem_.profile, problem_.cluster, layout.options}, layout.search, costs_);
      lower_bound_ns_ = std::min(lower_bound_ns_, result.lower_bound_ns);
      if (result.best && !bound_only_) keep(*std::move(result.best));
      if (found_.size() > kMaxAlternatives + 1) found_.erase(std::prev(found_.end()));
      if (!result.reason.empty())
        unfit_layouts_.insert({.missing_bytes = result.missing_bytes > 0 ? result.missing_bytes : kNoLimit,
                               .missing_samples = missing_samples(layout.options, length),
                               .tensor_ranks = tensor_ranks,
                               .length = length,
                               .reason = of_layout(tensor_ranks, result.reason)});
    } catch (const InvalidInput& error) {  // its micro-batches were not measured; another layout's may be
      not_measured_[{tensor_ranks, error.what()}].insert(length);
    }
  }

  /// Returns how many samples a mini-batch lacks for this layout's replicas and micro-batches; kNoLimit if none.
  std::int64_t missing_samples(const PlanOptions& options, int length) const {
    const std::int64_t needed =
        std::int64_t{replicas_of_pipelines(problem_.cluster, options, length)} * std::max(1, options.num_micro_batches);
    return needed > options.global_batch_size ? needed - options.global_batch_size : kNoLimit;
  }

  static std::string of_layout(int tensor_ranks, const std::string& reason) {
    return tensor_ranks > 1 ? fmt::format("t = {}, {}", tensor_ranks, reason) : reason;
  }

  Found::iterator found_with(int length, int tensor_ranks) {
    return std::find_if(found_.begin(), found_.end(), [&](const auto& one) {
      return one.second.layout.pipeline_parallel_size == length &&
             one.second.layout.tensor_parallel_size == tensor_ranks;
    });
  }

  /// Keeps one phase for every length and tensor-parallel size, with the best placement.
  void keep(Phase phase) {
    const std::tuple key(phase.predicted.iteration_ns, phase.layout.pipeline_parallel_size,
                         phase.layout.tensor_parallel_size);
    const auto same = found_with(phase.layout.pipeline_parallel_size, phase.layout.tensor_parallel_size);
    if (same != found_.end() && std::get<0>(same->first) <= std::get<0>(key)) return;
    if (same != found_.end()) found_.erase(same);
    found_.emplace(key, std::move(phase));
  }

  PlanningProblem problem_;
  bool bound_only_;
  LayerCosts costs_;
  std::vector<Shape> shapes_;
  Found found_;
  Nanoseconds lower_bound_ns_ = kNoLimit;
  std::set<Unfit> unfit_layouts_;
  std::map<std::pair<int, std::string>, std::set<int>> not_measured_;  // lengths, by tensor-parallel size and reason
  std::map<int, std::string> apart_;  // by tensor-parallel size, why its ranks are apart
};

AutoSearch searched(const PlanningProblem& problem, bool bound_only) {
  AutoSearch search(problem, bound_only);
  for (const auto& [tensor_ranks, length] : layouts_of(problem)) search.add(tensor_ranks, length);
  search.run();
  return search;
}

}  // namespace

std::variant<AutoPlan, Infeasible> make_auto_plan(const PlanningProblem& problem) {
  const auto& [profile, cluster, options] = problem;
  require_meaningful(problem);
  AutoSearch search = searched(problem, /*bound_only=*/false);
  std::vector<Phase> found = search.found();
  std::vector<std::string> unfit_layouts = search.unfit_layouts();
  if (found.empty()) {
    if (unfit_layouts.empty()) return Infeasible{why_no_layout(problem)};
    const std::size_t more = unfit_layouts.size() > kMaxReasons ? unfit_layouts.size() - kMaxReasons : 0;
    unfit_layouts.resize(unfit_layouts.size() - more);
    return Infeasible{fmt::format("{}{}", fmt::join(unfit_layouts, "\n  "),
                                  more > 0 ? fmt::format("\n  and {} more layouts", more) : ""),
                      search.lacks_memory()};
  }
  PlanOptions chosen = options;  // for the fields of the plan other than its phases
  chosen.method =
      found.front().layout.pipeline_parallel_size == 1 ? PlanMethod::data_parallel : PlanMethod::static_pipeline;
  AutoPlan result{.plan = plan_of({profile, cluster, chosen}, {found.front()}),
                  .alternatives = {},
                  .unfit_layouts = std::move(unfit_layouts)};
  result.lower_bound_ns = cuts_slices(problem) ? 0 : search.lower_bound_ns();
  found.erase(found.begin());
  result.alternatives = std::move(found);
  return result;
}

Nanoseconds iteration_lower_bound_ns(const PlanningProblem& problem) {
  if (cuts_slices(problem)) return 0;
  PlanOptions any = problem.options;
  any.tensor_parallel_size = 1;
  any.any_tensor_parallel_size = true;
  any.pipeline_parallel_size = 0;
  any.recompute.reset();
  any.data_parallel_size = any.num_micro_batches = 0;
  any.pins.clear();
  any.method = PlanMethod::automatic;
  any.partitioner = Partitioner::exact;
  const auto least = [&] {
    return searched({problem.profile, problem.cluster, any}, /*bound_only=*/true).lower_bound_ns();
  };
  Nanoseconds bound = kNoLimit;
  if (!any.schedule.empty() || asks_for_several_stages_per_rank(any)) bound = least();
  any.schedule.clear();
  any.virtual_stages = 0;
  bound = std::min(bound, least());
  return bound == kNoLimit ? 0 : bound;
}

}  // namespace frostpipe
