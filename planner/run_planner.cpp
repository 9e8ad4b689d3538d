#include "planner/run_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/error.h"
#include "plan/memory.h"
#include "plan/reconfiguration.h"
#include "planner/search/best_placement.h"
#include "planner/search/candidate.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

constexpr std::size_t kMaxLayouts = 10;             // per window
constexpr std::size_t kMaxLayoutsWithAllFound = 3;  // of fastest_with_all_found
constexpr std::size_t kMaxStates = 512;

CacheUse all_found(int layer, double capacity) { return {.on = true, .found = {{layer, capacity}}}; }

}  // namespace

/// The extension of a state by one window.
struct RunPlanner::Step {
  Nanoseconds cost = 0;
  std::vector<std::pair<CachePart, int>> parts;  // with their layouts; one part without a cache if that is off
  CacheContent content;                          // at the window's end
};

struct RunPlanner::State {
  std::optional<int> layout;  // none = the run has not begun
  int first_trainable_layer = 0;
  CacheContent content;
  Nanoseconds cost = 0;
  int cached_windows = 0;
  int first_choice = 0;                          // index of its choice in the first window
  std::optional<int> before;                     // index into the states before the window; none before the first
  std::vector<std::pair<CachePart, int>> parts;  // of its window

  /// Returns the rank among states, of which the least is the best. On equal costs fewer windows with a cache are
  /// better: a cache must save something.
  std::pair<Nanoseconds, int> rank() const { return {cost, cached_windows}; }
};

RunPlanner::RunPlanner(const PlanningProblem& problem, RunStart start)
    : problem_(problem),
      start_(std::move(start)),
      costs_(problem.profile, problem.options.dtype, problem.options.sequence_parallel) {
  if (why_no_cache_at_all().empty()) capacity_ = cache_capacity(problem.options.cache, problem.profile);
}

std::string RunPlanner::why_no_cache(const RunWindow& first) const {
  if (first.first_trainable_layer == 0) return "nothing is frozen";
  if (std::string why = why_no_cache_at_all(); !why.empty()) return why;
  const auto parts = cache_parts(first.first_trainable_layer, first.from_step, problem_.options.num_steps,
                                 problem_.options.steps_per_epoch, capacity_, start_.content);
  return find_something(parts) ? "" : "the run ends before a sample comes again";
}

std::string RunPlanner::why_no_cache_at_all() const {
  if (!problem_.options.use_cache) return "the cache is switched off";
  if (problem_.options.steps_per_epoch == 0) return "the length of an epoch is not known";
  if (!problem_.profile.cache) return "the profile has not measured a cache; profile again";
  if (problem_.options.cache.memory_bytes + problem_.options.cache.disk_bytes == 0) return "the cache may hold 0 bytes";
  return {};
}

int RunPlanner::layout_index(Phase phase) {
  phase.from_step = phase.first_trainable_layer = 0;
  phase.cache = {};
  phase.predicted = {};
  const int index = static_cast<int>(std::find(layouts_.begin(), layouts_.end(), phase) - layouts_.begin());
  if (index == static_cast<int>(layouts_.size())) layouts_.push_back(std::move(phase));
  return index;
}

std::vector<int> RunPlanner::lengths() const {
  std::vector<int> lengths;
  const int groups = devices_to_use(problem_.cluster, problem_.options) / problem_.options.tensor_parallel_size;
  for (int p = 1; p <= std::min(groups, static_cast<int>(problem_.profile.model.layers.size())); ++p)
    if (groups % p == 0 && (!start_.current || start_.current->layout.pipeline_parallel_size % p == 0))
      lengths.push_back(p);
  return lengths;
}

const std::vector<int>& RunPlanner::layouts_for(int first_trainable_layer) {
  const auto [entry, is_new] = layouts_for_.try_emplace(first_trainable_layer);
  if (!is_new) return entry->second;
  for (const int length : lengths()) {
    std::vector<CacheUse> uses = {{}};
    if (capacity_ > 0 && first_trainable_layer > 0) uses.push_back(all_found(first_trainable_layer, capacity_));
    for (const CacheUse& use : uses) {
      try {
        PhaseSearchResult found = search_placements(problem_,
                                                    {.pipeline_parallel_size = length,
                                                     .first_trainable_layer = first_trainable_layer,
                                                     .cache = use,
                                                     .recompute = {problem_.options.recompute}},
                                                    costs_);
        if (found.best) {
          const int index = layout_index(*std::move(found.best));
          if (std::find(entry->second.begin(), entry->second.end(), index) == entry->second.end())
            entry->second.push_back(index);
        } else if (!use.on) {
          reasons_[first_trainable_layer].add({found.reason, found.missing_bytes > 0});
        }
      } catch (const InvalidInput& error) {  // this length's micro-batches were not measured
        if (!use.on) reasons_[first_trainable_layer].add({fmt::format("p = {}: {}", length, error.what())});
      }
    }
  }
  return entry->second;
}

std::vector<int> RunPlanner::layouts_to_consider(const RunWindow& window, const std::vector<RunWindow>& windows,
                                                 const std::vector<int>& kept) {
  std::set<int> all(kept.begin(), kept.end());
  for (const RunWindow& other : windows)
    for (const int layout : layouts_for(other.first_trainable_layer)) all.insert(layout);
  std::set<int> chosen(kept.begin(), kept.end());
  std::vector<CacheUse> uses = {{}};
  if (capacity_ > 0 && window.first_trainable_layer > 0)
    uses.push_back(all_found(window.first_trainable_layer, capacity_));
  for (const CacheUse& use : uses) {
    std::vector<std::pair<Nanoseconds, int>> bounded;
    for (const int layout : all) bounded.emplace_back(bound_ns(layout, window.first_trainable_layer, use), layout);
    std::sort(bounded.begin(), bounded.end());
    std::set<std::pair<Nanoseconds, int>> fastest;  // at most kMaxLayouts
    for (const auto& [bound, layout] : bounded) {
      if (fastest.size() == kMaxLayouts && bound > fastest.rbegin()->first) break;
      if (const auto time = iteration_ns(layout, window.first_trainable_layer, use)) fastest.emplace(*time, layout);
      if (fastest.size() > kMaxLayouts) fastest.erase(std::prev(fastest.end()));
    }
    for (const auto& [time, layout] : fastest) chosen.insert(layout);
  }
  for (const int layout : layouts_for(window.first_trainable_layer)) chosen.insert(layout);
  return {chosen.begin(), chosen.end()};
}

std::vector<int> RunPlanner::fastest_with_all_found(const RunWindow& window, const std::vector<int>& layouts) {
  std::vector<std::pair<Nanoseconds, int>> ranked;
  if (capacity_ > 0 && window.first_trainable_layer > 0) {
    for (const int layout : layouts)
      if (const auto time =
              iteration_ns(layout, window.first_trainable_layer, all_found(window.first_trainable_layer, capacity_)))
        ranked.emplace_back(*time, layout);
  }
  std::sort(ranked.begin(), ranked.end());
  ranked.resize(std::min(ranked.size(), kMaxLayoutsWithAllFound));
  std::vector<int> fastest;
  for (const auto& [time, layout] : ranked) fastest.push_back(layout);
  return fastest;
}

Phase RunPlanner::phase_of(int layout, int first_trainable_layer, const CacheUse& cache) const {
  Phase phase = layouts_[layout];
  phase.first_trainable_layer = first_trainable_layer;
  phase.cache = cache;
  return phase;
}

Nanoseconds RunPlanner::bound_ns(int layout, int first_trainable_layer, const CacheUse& cache) {
  const Phase phase = phase_of(layout, first_trainable_layer, cache);
  if (!phase.schedule_rows.empty()) return 0;  // stages may be anywhere
  try {
    return StageBound(phase, problem_, costs_).of(phase.partition);
  } catch (const InvalidInput&) {  // not measured at this size
    return kNoLimit;
  }
}

std::optional<Nanoseconds> RunPlanner::iteration_ns(int layout, int first_trainable_layer, const CacheUse& cache) {
  Use use;
  for (const CacheFound& one : cache.found) use.emplace_back(one.layer, one.fraction);
  const auto [entry, is_new] = iteration_ns_.try_emplace({layout, first_trainable_layer, cache.on, std::move(use)});
  if (!is_new) return entry->second;
  const Phase phase = phase_of(layout, first_trainable_layer, cache);
  try {
    const auto memory = memory_of(phase, step_settings(problem_.options), problem_.profile, problem_.cluster);
    if (problem_.options.ignore_memory_limit || what_does_not_fit(phase, memory, problem_.cluster).empty())
      entry->second =
          simulated_iteration_ns(phase, step_settings(problem_.options), problem_.profile, problem_.cluster);
  } catch (const InvalidInput&) {
  }
  return entry->second;
}

Nanoseconds RunPlanner::transition_ns(int layout, int first_trainable_layer, int next_layout,
                                      int next_first_trainable_layer) {
  const auto [entry, is_new] =
      transition_ns_.try_emplace({layout, first_trainable_layer, next_layout, next_first_trainable_layer}, 0);
  if (is_new)
    entry->second = reconfiguration_ns(
        diff(phase_of(layout, first_trainable_layer, {}), phase_of(next_layout, next_first_trainable_layer, {}),
             problem_.profile.model, problem_.options.optimizer, problem_.options.dtype),
        problem_.cluster);
  return entry->second;
}

std::optional<RunPlanner::Step> RunPlanner::step(const RunWindow& window, const State& state, int layout,
                                                 int last_layout, bool cached) {
  Step step{.cost = 0, .parts = {}, .content = state.content};
  std::vector<CachePart> parts = {{.from_step = window.from_step, .end_step = problem_.options.num_steps, .use = {}}};
  if (cached)
    parts = cache_parts(window.first_trainable_layer, window.from_step, problem_.options.num_steps,
                        problem_.options.steps_per_epoch, capacity_, state.content);
  if ((cached && !find_something(parts)) || (parts.size() < 2 && last_layout != layout)) return std::nullopt;
  std::optional<int> before = state.layout;
  int frozen_before = state.first_trainable_layer;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int now = i + 1 < parts.size() ? layout : last_layout;
    const auto time = iteration_ns(now, window.first_trainable_layer, parts[i].use);
    if (!time) return std::nullopt;
    const int steps = std::min(parts[i].end_step, window.end_step) - parts[i].from_step;
    if (steps > 0) {
      step.cost += steps * *time;
      if (before) step.cost += transition_ns(*before, frozen_before, now, window.first_trainable_layer);
      before = now;
      frozen_before = window.first_trainable_layer;
    }
    step.parts.emplace_back(std::move(parts[i]), now);
  }
  if (problem_.options.steps_per_epoch > 0)
    step.content = advanced(state.content, cached ? window.first_trainable_layer : 0, window.from_step, window.end_step,
                            problem_.options.steps_per_epoch);
  return step;
}

std::vector<RunPlanner::State> RunPlanner::next_states(const RunWindow& window, const std::vector<State>& states,
                                                       const std::vector<int>& layouts, bool only_best) {
  std::map<std::pair<int, int>, std::vector<State>> kept;  // by first choice and layout
  const std::vector<int> last_layouts = fastest_with_all_found(window, layouts);
  for (int i = 0; i < static_cast<int>(states.size()); ++i) {
    const State& state = states[i];
    const bool is_first = !state.before;
    const auto consider = [&](int layout, int last_layout, bool cached, int way) {
      auto made = step(window, state, layout, last_layout, cached);
      if (!made) return;
      State next{.layout = made->parts.front().second,
                 .first_trainable_layer = window.first_trainable_layer,
                 .content = std::move(made->content),
                 .cost = state.cost + made->cost,
                 .cached_windows = state.cached_windows + cached,
                 .first_choice = only_best  ? 0
                                 : is_first ? way
                                            : state.first_choice,
                 .before = i,
                 .parts = std::move(made->parts)};
      for (const auto& [part, used] : next.parts)
        if (part.from_step < window.end_step) next.layout = used;
      std::vector<State>& same = kept[{next.first_choice, *next.layout}];
      if (std::any_of(same.begin(), same.end(), [&](const State& other) {
            return other.rank() <= next.rank() && covers(other.content, next.content);
          }))
        return;
      std::erase_if(
          same, [&](const State& other) { return next.rank() <= other.rank() && covers(next.content, other.content); });
      same.push_back(std::move(next));
    };
    int way = 0;
    for (const int layout : layouts) {
      const int length = layouts_[layout].layout.pipeline_parallel_size;
      if (state.layout ? layouts_[*state.layout].layout.pipeline_parallel_size % length != 0
                       : !start_.lengths.empty() &&
                             std::find(start_.lengths.begin(), start_.lengths.end(), length) == start_.lengths.end())
        continue;
      consider(layout, layout, false, ++way);
      if (last_layouts.empty()) continue;
      consider(layout, layout, true, ++way);
      for (const int last : last_layouts)
        if (last != layout && length % layouts_[last].layout.pipeline_parallel_size == 0)
          consider(layout, last, true, ++way);
    }
  }
  std::vector<State> next;
  for (auto& [key, same] : kept) std::move(same.begin(), same.end(), std::back_inserter(next));
  std::stable_sort(next.begin(), next.end(), [](const State& a, const State& b) { return a.rank() < b.rank(); });
  if (next.size() > kMaxStates) next.resize(kMaxStates);
  return next;
}

RunPath RunPlanner::path_of(const std::vector<std::vector<State>>& states, int last,
                            const std::vector<RunWindow>& windows) {
  RunPath path;
  path.phases.resize(windows.size());
  path.predicted_ns = states.back()[last].cost;
  std::vector<int> at(windows.size());  // index of each window's state
  for (int w = static_cast<int>(windows.size()) - 1, i = last; w >= 0; --w) {
    at[w] = i;
    i = states[w + 1][i].before.value();
  }
  std::optional<int> before = states[0][0].layout;
  int frozen_before = states[0][0].first_trainable_layer;
  for (std::size_t w = 0; w < windows.size(); ++w) {
    const int frozen = windows[w].first_trainable_layer;
    for (const auto& [part, layout] : states[w + 1][at[w]].parts) {
      Phase phase = phase_of(layout, frozen, part.use);
      phase.from_step = part.from_step;
      const auto memory = memory_of(phase, step_settings(problem_.options), problem_.profile, problem_.cluster);
      phase.predicted = {
          .iteration_ns = *iteration_ns(layout, frozen, part.use),
          .transformation_ns = before ? transition_ns(*before, frozen_before, layout, frozen) : 0,
          .peak_memory_bytes = peak_per_rank(phase, memory, static_cast<int>(problem_.cluster.devices.size()))};
      path.phases[w].push_back(std::move(phase));
      if (w == 0 && part.use.on) path.parts.push_back(part);
      if (part.from_step >= windows[w].end_step) continue;
      before = layout;
      frozen_before = frozen;
    }
  }
  return path;
}

std::variant<std::vector<RunPath>, Infeasible> RunPlanner::plan(const std::vector<RunWindow>& windows, bool only_best) {
  State first{.content = start_.content};
  std::vector<int> kept;
  if (start_.current) {
    first.layout = layout_index(*start_.current);
    first.first_trainable_layer = start_.current->first_trainable_layer;
    kept.push_back(*first.layout);
  }
  FROSTPIPE_CHECK(std::all_of(windows.begin(), windows.end(),
                              [](const RunWindow& window) { return window.from_step < window.end_step; }),
                  "a window has steps");
  std::vector<std::vector<State>> states = {{first}};
  for (const RunWindow& window : windows) {
    std::vector<State> next = next_states(window, states.back(), layouts_to_consider(window, windows, kept), only_best);
    if (next.empty()) {
      const auto reason = reasons_.find(window.first_trainable_layer);
      return reason == reasons_.end()
                 ? Infeasible{"no layout fits whose pipeline length divides that of the layout before"}
                 : reason->second;
    }
    states.push_back(std::move(next));
  }
  std::vector<RunPath> paths;
  std::set<int> seen;
  for (int i = 0; i < static_cast<int>(states.back().size()); ++i)
    if (seen.insert(states.back()[i].first_choice).second) paths.push_back(path_of(states, i, windows));
  return paths;
}

}  // namespace frostpipe
