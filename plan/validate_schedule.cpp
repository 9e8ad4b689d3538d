#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/depth_first_search.hpp>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>

#include "base/error.h"
#include "plan/schedule.h"

namespace frostpipe {

namespace {

struct Spot {
  int pipeline_rank = 0;
  int index = 0;
};

/// A graph of which action waits for which: an edge leads from an action to one that it waits for.
using WaitsFor = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
using Vertex = WaitsFor::vertex_descriptor;

/// Keeps the first cycle that the search finds.
struct CycleFinder : boost::default_dfs_visitor {
  CycleFinder(std::vector<Vertex>& parents, std::vector<Vertex>& cycle) : parents(parents), cycle(cycle) {}
  void tree_edge(WaitsFor::edge_descriptor edge, const WaitsFor& graph) {
    parents[target(edge, graph)] = source(edge, graph);
  }
  void back_edge(WaitsFor::edge_descriptor edge, const WaitsFor& graph) {
    if (!cycle.empty()) return;
    for (Vertex v = source(edge, graph); v != target(edge, graph); v = parents[v]) cycle.push_back(v);
    cycle.push_back(target(edge, graph));
    std::reverse(cycle.begin(), cycle.end());
  }
  std::vector<Vertex>& parents;
  std::vector<Vertex>& cycle;
};

class Validator {
 public:
  explicit Validator(const Schedule& schedule) : schedule_(schedule), dependencies_(schedule) {}

  void run() {
    require_consistent_shape();
    for (int pipeline_rank = 0; pipeline_rank < num_pipeline_ranks(schedule_); ++pipeline_rank)
      enter_list(pipeline_rank);
    for (int stage = 0; stage < num_stages(schedule_); ++stage) require_complete_stage(stage);
    for (int pipeline_rank = 0; pipeline_rank < num_pipeline_ranks(schedule_); ++pipeline_rank)
      for (int index = 0; index < static_cast<int>(schedule_.body[pipeline_rank].size()); ++index)
        require_dependencies({pipeline_rank, index});
    require_no_cycle();
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw InvalidInput(fmt::format("schedule {}: {}", schedule_.name, what));
  }
  [[noreturn]] void fail_at(Spot spot, std::string_view what) const {
    fail(fmt::format("pipeline rank {}, {}: {} {}", spot.pipeline_rank, place_of(spot), to_string(action_at(spot)),
                     what));
  }
  std::string place_of(Spot spot) const { return place_in_list(schedule_.body[spot.pipeline_rank], spot.index); }
  const Action& action_at(Spot spot) const { return schedule_.body[spot.pipeline_rank][spot.index]; }

  void require_consistent_shape() const {
    const int stages = num_stages(schedule_), pipeline_ranks = num_pipeline_ranks(schedule_);
    if (stages == 0) fail("must have at least one stage");
    if (schedule_.num_micro_batches < 1)
      fail(fmt::format("number of micro-batches: must be >= 1, is {}", schedule_.num_micro_batches));
    if (schedule_.first_trainable_stage < 0 || schedule_.first_trainable_stage >= stages)
      fail(fmt::format("first trainable stage: must be >= 0 and < {}, is {}", stages, schedule_.first_trainable_stage));
    for (int stage = 0; stage < stages; ++stage) {
      const int pipeline_rank = schedule_.pipeline_rank_of_stage[stage];
      if (pipeline_rank < 0 || pipeline_rank >= pipeline_ranks)
        fail(fmt::format("stage {}: must live on one of {} pipeline ranks, is on {}", stage, pipeline_ranks,
                         pipeline_rank));
    }
    if (schedule_.num_slices < 1)
      fail(fmt::format("number of token slices: must be >= 1, is {}", schedule_.num_slices));
  }

  void enter_list(int pipeline_rank) {
    const auto& list = schedule_.body[pipeline_rank];
    for (int index = 0; index < static_cast<int>(list.size()); ++index) {
      const Spot spot{pipeline_rank, index};
      const Action& action = list[index];
      if (action.stage < 0 || action.stage >= num_stages(schedule_))
        fail_at(spot, fmt::format("must have a stage < {}", num_stages(schedule_)));
      if (action.micro_batch.has_value() != has_micro_batch(action.kind))
        fail_at(spot, action.micro_batch ? "must have no micro-batch" : "must have a micro-batch");
      if (action.micro_batch && (*action.micro_batch < 0 || *action.micro_batch >= schedule_.num_micro_batches))
        fail_at(spot, fmt::format("must have a micro-batch < {}", schedule_.num_micro_batches));
      if (const int home = home_of(action, pipeline_rank); home != pipeline_rank)
        fail_at(spot, fmt::format("must stand on pipeline rank {}, where its stage lives", home));
      if (action.micro_batch && action.slice.value_or(0) >= schedule_.num_slices)
        fail_at(spot, fmt::format("must have a token slice < {}", schedule_.num_slices));
      if (action.overlaps_next && index + 1 == static_cast<int>(list.size()))
        fail_at(spot, "overlaps the next action, but is the last");
      if (action.stage < schedule_.first_trainable_stage && belongs_to_training(action.kind))
        fail_at(spot, fmt::format("must not be there: stages before {} are frozen and run F only",
                                  schedule_.first_trainable_stage));
      present_.insert(
          Action{.kind = action.kind, .stage = action.stage, .micro_batch = action.micro_batch, .slice = action.slice});
      const auto [earlier, is_new] = spot_of_.emplace(std::pair(pipeline_rank, key(action)), spot);
      const bool may_repeat = action.kind == ActionKind::unshard || action.kind == ActionKind::reshard;
      if (!is_new && !may_repeat) fail_at(spot, fmt::format("stands twice (first: {})", place_of(earlier->second)));
    }
  }

  static bool belongs_to_training(ActionKind kind) {
    return kind != ActionKind::forward && kind != ActionKind::send_forward && kind != ActionKind::recv_forward &&
           kind != ActionKind::cache_read && kind != ActionKind::cache_write && kind != ActionKind::unshard &&
           kind != ActionKind::reshard;
  }

  /// Returns the pipeline rank that an action belongs on. An action of a whole stage may be on any `list` that has the
  /// stage.
  int home_of(const Action& action, int list) const {
    if (action.micro_batch) return pipeline_rank_of(schedule_, action.stage, *action.micro_batch);
    return lives_on(schedule_, action.stage, list) ? list : schedule_.pipeline_rank_of_stage[action.stage];
  }

  /// Returns the actions that `action` waits for on `list`. A reduction waits only for the backwards of its own list.
  std::vector<Action> needed_by(const Action& action, int list) const {
    std::vector<Action> needed = dependencies_.of(action);
    if (action.kind == ActionKind::reduce_gradient)
      std::erase_if(needed, [&](const Action& backward) { return home_of(backward, list) != list; });
    return needed;
  }

  static Action key(Action action) {
    action.overlaps_next = false;
    return action;
  }

  bool contains(ActionKind kind, int stage, OptionalIndex micro_batch, OptionalIndex slice) const {
    // An action counts whatever its weight version and iteration are.
    return present_.contains(Action{.kind = kind, .stage = stage, .micro_batch = micro_batch, .slice = slice});
  }

  void require_complete_stage(int stage) const {
    const auto place = fmt::format("pipeline rank {}, stage {}", schedule_.pipeline_rank_of_stage[stage], stage);
    const auto require = [&](ActionKind kind, OptionalIndex micro_batch, OptionalIndex slice) {
      if (contains(kind, stage, micro_batch, slice)) return;
      const Action absent{.kind = kind, .stage = stage, .micro_batch = micro_batch, .slice = slice};
      fail(fmt::format("{}: {} is missing", place, to_string(absent)));
    };
    const std::int64_t num_units = std::int64_t{schedule_.num_micro_batches} * schedule_.num_slices;
    for (std::int64_t unit = 0; unit < num_units; ++unit) {
      const int i = static_cast<int>(unit / schedule_.num_slices);
      const int of_slices = static_cast<int>(unit % schedule_.num_slices);
      const auto slice = schedule_.num_slices > 1 ? OptionalIndex(of_slices) : OptionalIndex();
      require(ActionKind::forward, i, slice);
      if (stage < schedule_.first_trainable_stage) continue;
      const bool splits = contains(ActionKind::input_gradient, stage, i, slice) ||
                          contains(ActionKind::weight_gradient, stage, i, slice);
      if (!splits) {
        require(ActionKind::backward, i, slice);
        continue;
      }
      require(ActionKind::input_gradient, i, slice);
      require(ActionKind::weight_gradient, i, slice);
      if (contains(ActionKind::backward, stage, i, slice))
        fail(fmt::format("{}: micro-batch {} must run either B or I and W, has both", place, i));
    }
    if (stage < schedule_.first_trainable_stage) return;
    require(ActionKind::reduce_gradient, std::nullopt, std::nullopt);
    require(ActionKind::optimizer_step, std::nullopt, std::nullopt);
  }

  void require_dependencies(Spot spot) const {
    const Action& action = action_at(spot);
    for (const auto& needed : needed_by(action, spot.pipeline_rank)) {
      if (needed.stage < 0 || needed.stage >= num_stages(schedule_))
        fail_at(spot, fmt::format("waits for {}, which no stage can give", to_string(needed)));
      const int home = home_of(needed, spot.pipeline_rank);
      const auto found = spot_of_.find({home, key(needed)});
      if (found == spot_of_.end())
        fail_at(spot, fmt::format("waits for {}, which is missing on pipeline rank {}", to_string(needed), home));
      if (found->second.pipeline_rank == spot.pipeline_rank && found->second.index > spot.index)
        fail_at(spot,
                fmt::format("waits for {} ({}), which stands after it", to_string(needed), place_of(found->second)));
    }
    if (!is_send(action.kind)) return;
    if (const int to = matching(action).stage; to < 0 || to >= num_stages(schedule_))
      fail_at(spot, fmt::format("goes to stage {}, which does not exist", to));
    if (!spot_of_.contains({home_of(matching(action), spot.pipeline_rank), key(matching(action))}))
      fail_at(spot, fmt::format("is never received: {} is missing", to_string(matching(action))));
  }

  void require_no_cycle() const {
    std::vector<int> first_vertex;
    std::vector<Spot> spots;
    for (int pipeline_rank = 0; pipeline_rank < num_pipeline_ranks(schedule_); ++pipeline_rank) {
      first_vertex.push_back(static_cast<int>(spots.size()));
      for (int index = 0; index < static_cast<int>(schedule_.body[pipeline_rank].size()); ++index)
        spots.push_back({pipeline_rank, index});
    }
    const auto vertex = [&](Spot spot) { return static_cast<Vertex>(first_vertex[spot.pipeline_rank] + spot.index); };

    std::vector<Spot> reductions;
    std::ranges::copy_if(spots, std::back_inserter(reductions),
                         [&](Spot spot) { return action_at(spot).kind == ActionKind::reduce_gradient; });
    WaitsFor graph(spots.size());
    for (const Spot spot : spots) {
      if (spot.index > 0) add_edge(vertex(spot), vertex({spot.pipeline_rank, spot.index - 1}), graph);
      for (const auto& needed : needed_by(action_at(spot), spot.pipeline_rank))
        add_edge(vertex(spot), vertex(spot_of_.at({home_of(needed, spot.pipeline_rank), key(needed)})), graph);
      if (action_at(spot).kind != ActionKind::optimizer_step) continue;
      // Gradient clipping needs the norm over all stages: every optimizer step waits for all reductions.
      for (const Spot reduction : reductions) add_edge(vertex(spot), vertex(reduction), graph);
    }

    std::vector<Vertex> parents(spots.size()), cycle;
    depth_first_search(graph, boost::visitor(CycleFinder(parents, cycle)));
    if (cycle.empty()) return;
    fail(fmt::format("pipeline ranks wait for each other forever: {}", cycle_text(cycle, spots)));
  }

  /// Describes the cycle, "0SEND_F1 (pipeline rank 0, after compute action 3) stands after 0RECV_B0 (pipeline rank 0,
  /// after compute action 2), which waits for ...". A stretch on one pipeline rank is shown by its two ends only.
  std::string cycle_text(const std::vector<Vertex>& cycle, const std::vector<Spot>& spots) const {
    const std::size_t n = cycle.size();
    const auto spot = [&](std::size_t i) { return spots[cycle[i % n]]; };
    const auto enters_pipeline_rank = [&](std::size_t i) {
      return spot(i).pipeline_rank != spot(i + n - 1).pipeline_rank;
    };
    std::size_t start = 0;
    while (start + 1 < n && !enters_pipeline_rank(start)) ++start;
    std::string text;
    for (std::size_t i = start; i <= start + n; ++i) {
      const bool enters = i == start || enters_pipeline_rank(i);
      const bool leaves = i == start + n || enters_pipeline_rank(i + 1);
      if (!enters && !leaves) continue;
      if (i > start) text += fmt::format(" {} ", enters ? "waits for" : "stands after");
      text += fmt::format("{} (pipeline rank {}, {})", to_string(action_at(spot(i))), spot(i).pipeline_rank,
                          place_of(spot(i)));
      if (i > start && i < start + n) text += ", which";
    }
    return text;
  }

  const Schedule& schedule_;
  Dependencies dependencies_;
  std::map<std::pair<int, Action>, Spot> spot_of_;  // by pipeline rank
  std::set<Action> present_;                        // without weight version and iteration
};

}  // namespace

void validate(const Schedule& lowered) {
  if (lowered.prologue.empty() && lowered.epilogue.empty()) return Validator(lowered).run();
  for (const auto* part : {&lowered.prologue, &lowered.epilogue}) {
    if (part->size() != lowered.body.size())
      throw InvalidInput(
          fmt::format("schedule {}: must have a prologue and an epilogue for each of {} pipeline ranks, or neither",
                      lowered.name, lowered.body.size()));
  }
  constexpr int kIterations = 3;  // the first, one between, the last
  const Schedule flat = unrolled(lowered, kIterations);
  Validator(flat).run();
}

}  // namespace frostpipe
