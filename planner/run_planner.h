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
#include "planner/search/layer_costs.h"
#include "planner/search/plan_options.h"

namespace frostpipe {

/// Where the planning begins.
struct RunStart {
  std::optional<Phase> current;  // what runs before the first window; none = the run begins, any layout may
  CacheContent content;          // what the cache holds then
  std::vector<int> lengths;      // pipeline lengths that the first window may have if there is no current; empty = all
};

/// One way to go through all windows.
struct RunPath {
  std::vector<std::vector<Phase>> phases;  // by window, each with its predictions
  std::vector<CachePart> parts;            // how the first window uses the cache; empty = it does not
  Nanoseconds predicted_ns = 0;            // steps x iteration times + transformations, over all windows
};

/// Plans a whole run along a forecast of freezes, by dynamic programming over its windows.
///
/// Layouts: for every window the best phase (search_phase) of every pipeline length, without the cache and with all
/// samples found in it; each of them may be kept in, or taken early for, another window, if it is among the fastest
/// there. A window takes one layout without the cache, or one with it, or one while the cache fills and one of the
/// three fastest after that; the next window's length divides the last's (pipelines shrink, never grow). State: the
/// layout and what the cache holds. Of two states with one layout the one that costs more and has no activation cached
/// after a later layer is dropped. The cache is used only where samples are found in it before the run ends, and of
/// two ways that cost the same the one that uses it in fewer windows is taken. Exact over these layouts where no window
/// has more than kMostLayouts of them that are worth a look and no state is dropped for want of room (kMostStates, the
/// cheapest stay); transitions are priced by the simulator and its transformation costs.
class RunPlanner {
 public:
  RunPlanner(const PlanningProblem& problem, RunStart start);

  /// The path with the least predicted time for every choice in the first window, the fastest first. With `only_best`
  /// the first of these alone, which is quicker. Infeasible names the window's frozen blocks and what does not fit.
  std::variant<std::vector<RunPath>, Infeasible> plan(const std::vector<RunWindow>& windows, bool only_best);

  /// Why nothing is cached in a first window like this; empty if something may be.
  std::string why_no_cache(const RunWindow& first) const;

 private:
  struct State;
  struct Step;
  using Use = std::vector<std::pair<int, double>>;

  /// The reasons that hold for every window.
  std::string why_no_cache_at_all() const;
  int layout_index(Phase phase);
  std::vector<int> lengths() const;
  const std::vector<int>& layouts_for(int first_trainable_layer);
  std::vector<int> layouts_to_consider(const RunWindow& window, const std::vector<RunWindow>& windows,
                                       const std::vector<int>& kept);
  /// Empty where nothing may be cached.
  std::vector<int> fastest_with_all_found(const RunWindow& window, const std::vector<int>& layouts);
  Phase phase_of(int layout, int first_trainable_layer, const CacheUse& cache) const;
  /// Of the phase's iteration, from below, without a simulation.
  Nanoseconds bound_ns(int layout, int first_trainable_layer, const CacheUse& cache);
  /// Nothing where a rank lacks memory or a size was not measured.
  std::optional<Nanoseconds> iteration_ns(int layout, int first_trainable_layer, const CacheUse& cache);
  Nanoseconds transition_ns(int layout, int first_trainable_layer, int next_layout, int next_first_trainable_layer);
  std::optional<Step> step(const RunWindow& window, const State& state, int layout, int last_layout, bool cached);
  std::vector<State> next_states(const RunWindow& window, const std::vector<State>& states,
                                 const std::vector<int>& layouts, bool only_best);
  RunPath path_of(const std::vector<std::vector<State>>& states, int last, const std::vector<RunWindow>& windows);

  PlanningProblem problem_;
  RunStart start_;
  LayerCosts costs_;
  double capacity_ = 0;                          // fraction of the samples that the cache has room for
  std::vector<Phase> layouts_;                   // without step, frozen layers, cache and prediction
  std::map<int, std::vector<int>> layouts_for_;  // by first trainable layer
  std::map<int, Infeasible> reasons_;            // why lengths do not fit, by first trainable layer
  std::map<std::tuple<int, int, bool, Use>, std::optional<Nanoseconds>> iteration_ns_;
  std::map<std::tuple<int, int, int, int>, Nanoseconds> transition_ns_;
};

}  // namespace frostpipe
