#include "plan/reroute.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "plan/stages.h"
#include "plan/token_slices.h"

namespace frostpipe {

namespace {

constexpr const char* kHeldTiedParameters = "it held tied parameters, whose gradients both ends of a replica exchange";
constexpr const char* kHeldExperts = "it held experts that no other rank holds";

/// Returns why a phase cannot be rerouted, apart from its layout; "" if nothing prevents it.
std::string reason_against_rerouting(const Phase& phase) {
  if (phase.layout.tensor_parallel_size > 1) return "tensor ranks share its layers";
  if (phase.cache.on) return "the activation cache is in use";
  if (weight_delay(phase) > 0) return fmt::format("{} delays updates", phase.schedule);
  if (num_slices(phase) > 1) return "micro-batches are cut into token slices";
  return "";
}

/// Returns whether both ends of the model exchange tied gradients within each replica.
bool exchanges_tied_gradients(const Phase& phase, const Model& model) {
  return model.tied_parameter_count > 0 && phase.first_trainable_layer == 0 &&
         pipeline_rank_of(phase, 0) != pipeline_rank_of(phase, num_stages(phase) - 1);
}

bool is_at_an_end(const Phase& phase, int pipeline_rank) {
  return pipeline_rank == pipeline_rank_of(phase, 0) || pipeline_rank == pipeline_rank_of(phase, num_stages(phase) - 1);
}

/// Returns whether some experts of the pipeline rank are held by no remaining replica. Replica r holds the share r mod
/// expert_parallel_size of the experts.
bool loses_experts(const Phase& phase, int pipeline_rank, const Model& model) {
  const int num_shares = model.expert_parallel_size;
  if (num_shares == 1) return false;
  const auto has_experts = [&](const LayerRange& range) {
    const auto begin = model.layers.begin();
    return std::any_of(begin + range.begin, begin + range.end,
                       [](const Layer& layer) { return layer.expert_parameter_count > 0; });
  };
  if (std::ranges::none_of(layers_on(phase, pipeline_rank), has_experts)) return false;
  std::vector<bool> is_held(num_shares);
  for (int replica = 0; replica < phase.layout.data_parallel_size; ++replica)
    if (!is_vacant(phase.layout, pipeline_rank, replica)) is_held[replica % num_shares] = true;
  return std::ranges::find(is_held, false) != is_held.end();
}

/// The actions of one replica that a list contains, in their order.
struct Stream {
  struct Entry {
    int place = 0;  // index in the replica's list
    Action action;
  };
  std::vector<Entry> entries{};
  std::size_t next = 0;
};

class Merge {
 public:
  Merge(const Schedule& of_a_replica, const ParallelLayout& layout)
      : merged_(with_renamed_actions(of_a_replica, layout)), dependencies_(merged_) {}

  Schedule run() {
    std::vector<std::vector<Action>> lists(streams_.size());
    while (std::optional<Turn> turn = next_turn()) {
      const Action action = stream(*turn).entries[stream(*turn).next++].action;
      free_at_[turn->list] = end_of_[action] = turn->begin + units_of(action);
      lists[turn->list].push_back(action);
    }
    for (const auto& of_list : streams_)
      for (const Stream& one : of_list)
        FROSTPIPE_CHECK(one.next == one.entries.size(), "in the order of a valid schedule every rank can go on");
    merged_.body = std::move(lists);
    return std::move(merged_);
  }

 private:
  /// The next action of a stream. Turns are ordered by their start time, then by the place in the replica's list.
  struct Turn {
    int begin = 0;
    int place = 0;
    std::size_t list = 0, stream = 0;
    auto operator<=>(const Turn&) const = default;
  };

  /// Fills the streams. The lists of the result hold their actions in arbitrary order.
  Schedule with_renamed_actions(const Schedule& of_a_replica, const ParallelLayout& layout) {
    const ParallelLayout lists = layout_of_lists(layout);
    const int d = layout.data_parallel_size, m = of_a_replica.num_micro_batches;
    const auto list_of = [&](int pipeline_rank, int replica, int micro_batch) {
      const MeshCoordinate runner = runner_of(layout, pipeline_rank, replica, micro_batch);
      return find_coordinate(lists, rank_of(layout, runner.pipeline_rank, runner.replica))->pipeline_rank;
    };
    Schedule schedule = of_a_replica;
    schedule.num_micro_batches = d * m;
    schedule.body.assign(lists.pipeline_parallel_size, {});
    for (int& pipeline_rank : schedule.pipeline_rank_of_stage) {
      std::vector<int>& runs_on = schedule.pipeline_rank_of_micro_batch.emplace_back();
      for (int micro_batch = 0; micro_batch < d * m; ++micro_batch)
        runs_on.push_back(list_of(pipeline_rank, micro_batch / m, micro_batch % m));
      pipeline_rank = runs_on.front();
    }
    streams_.assign(schedule.body.size(), std::vector<Stream>(d));
    free_at_.assign(schedule.body.size(), 0);
    for (const std::vector<Action>& list : of_a_replica.body) {
      for (int replica = 0; replica < d; ++replica) {
        for (int place = 0; place < static_cast<int>(list.size()); ++place) {
          Action action = list[place];
          action.micro_batch = replica * m + *action.micro_batch;
          action.overlaps_next = false;  // overlapped pairs run one after the other
          const int to = pipeline_rank_of(schedule, action.stage, *action.micro_batch);
          streams_[to][replica].entries.push_back({place, action});
          schedule.body[to].push_back(action);
        }
      }
    }
    return schedule;
  }

  Stream& stream(const Turn& turn) { return streams_[turn.list][turn.stream]; }

  std::optional<Turn> next_turn() const {
    std::optional<Turn> first;
    for (std::size_t list = 0; list < streams_.size(); ++list) {
      for (std::size_t index = 0; index < streams_[list].size(); ++index) {
        const Stream& stream = streams_[list][index];
        if (stream.next == stream.entries.size()) continue;
        const auto& [place, action] = stream.entries[stream.next];
        const std::optional<int> ready = ready_at(action);
        if (!ready) continue;
        const Turn turn{std::max(free_at_[list], *ready), place, list, index};
        if (!first || turn < *first) first = turn;
      }
    }
    return first;
  }

  /// Returns the time at which all that the action needs has ended; none if some of it has not begun.
  std::optional<int> ready_at(const Action& action) const {
    int ready = 0;
    for (Action needed : dependencies_.of(action)) {
      if (is_receive(needed.kind)) needed = dependencies_.of(matching(needed)).front();  // messages take no time
      const auto end = end_of_.find(needed);
      if (end == end_of_.end()) return std::nullopt;
      ready = std::max(ready, end->second);
    }
    return ready;
  }

  std::vector<std::vector<Stream>> streams_;  // [list][replica]
  std::vector<int> free_at_;                  // by list
  Schedule merged_;
  Dependencies dependencies_;
  std::map<Action, int> end_of_;
};

}  // namespace

std::variant<Phase, CannotReroute> rerouted(const Phase& phase, std::span<const int> left, const Model& model) {
  if (const std::string reason = reason_against_rerouting(phase); !reason.empty()) return CannotReroute{reason};
  Phase result = phase;
  ParallelLayout& layout = result.layout;
  layout.placement.clear();
  layout.vacant.clear();
  result.predicted = {};
  for (int pipeline_rank = 0; pipeline_rank < layout.pipeline_parallel_size; ++pipeline_rank) {
    const std::size_t placed = layout.placement.size();
    for (int replica = 0; replica < layout.data_parallel_size; ++replica) {
      const bool was_vacant = is_vacant(phase.layout, pipeline_rank, replica);
      const int rank = was_vacant ? 0 : rank_of(phase.layout, pipeline_rank, replica);
      const auto found = std::ranges::lower_bound(left, rank);
      if (was_vacant || found == left.end() || *found != rank) {
        layout.vacant.push_back({pipeline_rank, replica});
        if (exchanges_tied_gradients(phase, model) && is_at_an_end(phase, pipeline_rank))
          return CannotReroute{kHeldTiedParameters};
      } else {
        layout.placement.push_back(static_cast<int>(found - left.begin()));
      }
    }
    if (layout.placement.size() == placed)
      return CannotReroute{fmt::format("no replica is left of {} {}",
                                       has_one_stage_per_rank(phase) ? "stage" : "pipeline rank", pipeline_rank)};
    if (loses_experts(result, pipeline_rank, model)) return CannotReroute{kHeldExperts};
  }
  return result;
}

void require_vacant(const Phase& phase, const std::string& place) {
  const auto& [p, d, t, placement, vacant, sequence_parallel] = phase.layout;
  if (vacant.empty()) return;
  std::vector<int> left(p, d);
  for (std::size_t i = 0; i < vacant.size(); ++i) {
    const auto fail = [&](const std::string& rule) {
      throw InvalidInput(fmt::format("{}.layout.vacant[{}]", place, i), rule,
                         fmt::format("pipeline rank {}, replica {}", vacant[i].pipeline_rank, vacant[i].replica));
    };
    if (vacant[i].pipeline_rank >= p || vacant[i].replica >= d)
      fail(fmt::format("must be a pipeline rank < {} and a replica < {}", p, d));
    if (i > 0 && vacant[i] <= vacant[i - 1]) fail("must come after the one before");
    if (--left[vacant[i].pipeline_rank] == 0) fail("must leave a replica of each pipeline rank");
  }
  if (const std::string reason = reason_against_rerouting(phase); !reason.empty())
    throw InvalidInput(place + ".layout.vacant", "must be empty: " + reason, fmt::format("{} vacant", vacant.size()));
}

void require_nothing_lost(const Phase& phase, const Model& model, const std::string& place) {
  for (const MeshCoordinate& vacant : phase.layout.vacant) {
    const int pipeline_rank = vacant.pipeline_rank;
    const bool held_tied = exchanges_tied_gradients(phase, model) && is_at_an_end(phase, pipeline_rank);
    if (!held_tied && !loses_experts(phase, pipeline_rank, model)) continue;
    throw InvalidInput(place + ".layout.vacant",
                       fmt::format("must have no rank of pipeline rank {}: {}", pipeline_rank,
                                   held_tied ? kHeldTiedParameters : kHeldExperts),
                       fmt::format("replica {}", vacant.replica));
  }
}

Schedule written_out(const Schedule& of_a_replica, const ParallelLayout& layout) {
  return Merge(of_a_replica, layout).run();
}

}  // namespace frostpipe
