#pragma once
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "planner/cache_parts.h"
#include "planner/run_windows.h"
#include "planner/search/plan_options.h"
#include "simulator/layer_costs.h"

namespace frostpipe {

/// The state in which planning begins.
struct RunStart {
  std::optional<Phase> current;  // phase before the first window; none = the run begins here, with any layout
  CacheContent content;          // of the cache at that time
  std::vector<int> lengths;      // allowed pipeline lengths of the first window if there is no `current`; empty = all
};

/// One path through all windows.
struct RunPath {
  std::vector<std::vector<Phase>> phases;  // by window, each with its predictions
  std::vector<CachePart> parts;            // how the first window uses the cache; empty = not at all
  Nanoseconds predicted_ns = 0;            // steps x iteration times + transformations, over all windows
};

/// Plans a whole run along a forecast of freezes, by dynamic programming over its windows.
///
/// The layouts are, for every window and pipeline length, the best phase (search_phase) without the cache and the best
/// with all samples found in it. Each may also be used in other windows, kept from before or taken early, if it is
/// among the fastest there. A window uses one layout without the cache, or one with it, or one while the cache fills
/// and one of the three fastest after that. The next window's pipeline length divides the last one's (pipelines shrink,
/// never grow). A state is the layout and the content of the cache. Of two states with the same layout, the one that
/// costs more is dropped unless it has an activation cached at a later layer. The cache is used only where samples are
/// found in it before the run ends, and on equal costs in fewer windows. The plan is exact over these layouts if no
/// window has more than 10 candidates that may be among the fastest and no state is dropped for lack of room (the
/// cheapest 512 stay). Reconfigurations are priced by the simulator.
class RunPlanner {
 public:
  RunPlanner(const PlanningProblem& problem, RunStart start);

  /// Returns for every choice in the first window the path with the least predicted time, the fastest first. With
  /// `only_best` it returns only the first of these, which is quicker. Infeasible says for every pipeline length what
  /// does not fit in the first window that has no layout.
  std::variant<std::vector<RunPath>, Infeasible> plan(const std::vector<RunWindow>& windows, bool only_best);

  /// Returns why a run whose first window is `first` caches nothing there; empty if it may cache.
  std::string why_no_cache(const RunWindow& first) const;

 private:
  struct State;
  struct Step;
  using Use = std::vector<std::pair<int, double>>;  // CacheUse::found: layers and fractions

  /// Returns the reasons that hold for every window.
  std::string why_no_cache_at_all() const;
  int layout_index(Phase phase);
  std::vector<int> lengths() const;
  const std::vector<int>& layouts_for(int first_trainable_layer);
  std::vector<int> layouts_to_consider(const RunWindow& window, const std::vector<RunWindow>& windows,
                                       const std::vector<int>& kept);
  /// Returns at most kMaxLayoutsWithAllFound of the layouts, those that are fastest if all samples are found in the
  /// cache, the fastest first; none if nothing may be cached.
  std::vector<int> fastest_with_all_found(const RunWindow& window, const std::vector<int>& layouts);
  Phase phase_of(int layout, int first_trainable_layer, const CacheUse& cache) const;
  /// Returns a lower bound on the phase's iteration time, without a simulation.
  Nanoseconds bound_ns(int layout, int first_trainable_layer, const CacheUse& cache);
  /// Returns none if a rank lacks memory or a size was not measured.
  std::optional<Nanoseconds> iteration_ns(int layout, int first_trainable_layer, const CacheUse& cache);
  Nanoseconds transition_ns(int layout, int first_trainable_layer, int next_layout, int next_first_trainable_layer);
  std::optional<Step> step(const RunWindow& window, const State& state, int layout, int last_layout, bool cached);
  std::vector<State> next_states(const RunWindow& window, const std::vector<State>& states,
                                 const std::vector<int>& layouts, bool only_best);
  RunPath path_of(const std::vector<std::vector<State>>& states, int last, const std::vector<RunWindow>& windows);

  PlanningProblem problem_;
  RunStart start_;
  LayerCosts costs_;
  double capacity_ = 0;                          // fraction of the samples that fit into the cache
  std::vector<Phase> layouts_;                   // without step, frozen layers, cache and prediction
  std::map<int, std::vector<int>> layouts_for_;  // by first trainable layer
  std::map<int, Infeasible> reasons_;            // by first trainable layer, why lengths do not fit
  std::map<std::tuple<int, int, bool, Use>, std::optional<Nanoseconds>> iteration_ns_;
  std::map<std::tuple<int, int, int, int>, Nanoseconds> transition_ns_;
};

}  // namespace frostpipe
