#include "plan/reroute.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "plan/memory.h"
#include "plan/messages.h"
#include "plan/stages.h"
#include "simulator/simulate.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ParallelLayout with_vacant(int p, int d, std::vector<MeshCoordinate> vacant) {
  return {.pipeline_parallel_size = p, .data_parallel_size = d, .placement = {}, .vacant = std::move(vacant)};
}

/// Two layers per stage.
Phase phase_of(const ParallelLayout& layout, int m, const std::string& schedule = "1F1B", int virtual_stages = 1) {
  Phase phase{.layout = layout,
              .partition = {},
              .num_micro_batches = m,
              .schedule = schedule,
              .virtual_stages = virtual_stages};
  for (int stage = 0; stage < layout.pipeline_parallel_size * virtual_stages; ++stage)
    phase.partition.push_back({2 * stage, 2 * stage + 2});
  return phase;
}

Nanoseconds makespan(const Phase& phase, Nanoseconds forward, Nanoseconds backward) {
  const UniformCostModel costs({.forward_ns = forward, .input_gradient_ns = backward});
  return simulate_timing(schedule_of(phase), layout_of_lists(phase.layout), costs, 1).iteration_end_ns.front();
}

std::vector<int> all_but(int lost, int world) {
  std::vector<int> left(world);
  std::iota(left.begin(), left.end(), 0);
  left.erase(left.begin() + lost);
  return left;
}

std::string reason_of(const Phase& phase, const Model& model, int lost) {
  const auto result = rerouted(phase, all_but(lost, num_ranks(phase.layout)), model);
  const auto* const reason = std::get_if<CannotReroute>(&result);
  return reason ? reason->reason : "none";
}

/// By hand: micro-batch 3 is replica 1's first, and stage 0 runs both replicas' micro-batches in turn.
TEST(Reroute, WritesOutBothReplicasOnTheRankThatIsLeft) {
  const Schedule schedule = compute_only(schedule_of(phase_of(with_vacant(2, 2, {{0, 1}}), 3)));
  EXPECT_EQ(to_text(schedule),
            "rank 0: 0F0 0F3 0F1 0F4 0B0 0B3 0F2 0F5 0B1 0B4 0B2 0B5\n"
            "rank 1: 1F0 1B0 1F1 1B1 1F2 1B2\n"
            "rank 2: 1F3 1B3 1F4 1B4 1F5 1B5\n");
}

TEST(Reroute, DealsMicroBatchesEvenly) {
  // 4 replicas of 4 micro-batches: 16 over the remaining 3, or on the last pipeline rank over 2.
  const Phase phase = phase_of(with_vacant(3, 4, {{1, 2}, {2, 0}, {2, 1}}), 4);
  const Schedule schedule = schedule_of(phase);
  std::vector<std::vector<int>> forwards;
  for (int pipeline_rank = 0; pipeline_rank < 3; ++pipeline_rank) {
    std::vector<int>& of_rank = forwards.emplace_back();
    for (const int list : lists_of(phase.layout, pipeline_rank))
      of_rank.push_back(static_cast<int>(std::ranges::count_if(
          schedule.body[list], [](const Action& action) { return action.kind == ActionKind::forward; })));
  }
  EXPECT_THAT(forwards[0], ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(forwards[1], ElementsAre(6, 5, 5));
  EXPECT_THAT(forwards[2], ElementsAre(8, 8));
}

/// Closed form for equal stages, d = 2, m >= p and backwards that take no less than forwards. All forwards come first:
/// stage s runs 2 m of them without a gap, and p - 1 more fill and drain the pipeline. Backwards are alike, but the
/// first replica begins them one forward earlier unless s is the last stage and has both.
TEST(Reroute, GPipeTakesWhatTheClosedFormSays) {
  for (const auto& [p, m] : {std::pair(2, 4), std::pair(4, 4), std::pair(4, 8), std::pair(3, 7)}) {
    for (const auto& [F, B] : {std::pair(1, 2), std::pair(3, 4), std::pair(2, 5)}) {
      for (int s = 0; s < p; ++s) {
        for (const int replica : {0, 1}) {
          const Phase phase = phase_of(with_vacant(p, 2, {{s, replica}}), m, "GPipe");
          EXPECT_EQ(makespan(phase, F, B), (2 * m + p - 1) * (F + B) - (s < p - 1 ? F : 0))
              << fmt::format("p {} m {} F {} B {} stage {}", p, m, F, B, s);
        }
      }
    }
  }
}

/// The stage begins after s forwards, has work of 2 m (F + B), and s backwards follow it. It waits once: after p - s
/// forwards of both replicas it needs the first backward, which arrives (p - 1 - s) (F + B) + F after its start.
TEST(Reroute, OneFOneBTakesWhatTheClosedFormSays) {
  for (const auto& [p, m] : {std::pair(2, 4), std::pair(4, 4), std::pair(4, 8), std::pair(3, 7)}) {
    for (int s = 0; s < p; ++s) {
      for (const int replica : {0, 1}) {
        const Phase phase = phase_of(with_vacant(p, 2, {{s, replica}}), m);
        const int F = 1, B = 2, wait = std::max(0, (p - 1 - s) * (F + B) + F - 2 * (p - s) * F);
        EXPECT_EQ(makespan(phase, F, B), (2 * m + s) * (F + B) + wait) << fmt::format("p {} m {} stage {}", p, m, s);
      }
    }
  }
}

/// For every schedule and lost rank: the result is valid, has receive queues that do not block, and on every rank at
/// most as much in flight as both replicas have. Oracle: the validator, which knows nothing of replicas.
TEST(Reroute, NoRankWaitsForever) {
  for (const std::string& name : schedule_names()) {
    const ScheduleTraits traits = schedule_traits(name);
    if (traits.weight_delay > 0 || traits.has_slices) continue;
    for (const auto& layout :
         {with_vacant(4, 2, {{0, 1}}), with_vacant(4, 2, {{3, 0}}), with_vacant(4, 2, {{1, 0}, {2, 1}}),
          with_vacant(2, 4, {{1, 2}}), with_vacant(2, 4, {{0, 1}, {1, 0}, {1, 3}})}) {
      const Phase phase = phase_of(layout, 8, name, traits.max_virtual_stages == 1 ? 1 : 2);
      const Schedule schedule = schedule_of(phase);
      EXPECT_NO_THROW(validate(schedule)) << name;
      EXPECT_EQ(blocking_cycle(schedule, receive_queues(schedule)), std::nullopt) << name;
      Phase whole = phase;
      whole.layout.vacant.clear();
      const std::vector<double> peaks = peak_in_flight(schedule), of_own = peak_in_flight(schedule_of(whole));
      for (int pipeline_rank = 0; pipeline_rank < layout.pipeline_parallel_size; ++pipeline_rank)
        for (const int list : lists_of(layout, pipeline_rank))
          EXPECT_LE(peaks[list], layout.data_parallel_size * of_own[pipeline_rank]) << name;
    }
  }
}

TEST(Reroute, NamesRanksByTheirPlaceAmongThoseThatAreLeft) {
  const Model model = test::synthetic_model(3);
  Phase phase = phase_of({.pipeline_parallel_size = 2, .data_parallel_size = 2, .placement = {7, 5, 3, 1}}, 2);
  const auto once = std::get<Phase>(rerouted(phase, std::vector{1, 5, 7}, model));
  EXPECT_THAT(once.layout.vacant, ElementsAre(MeshCoordinate{1, 0}));
  EXPECT_THAT(once.layout.placement, ElementsAre(2, 1, 0));
  EXPECT_THAT(replicas_of(once.layout, 1), ElementsAre(0));
  EXPECT_EQ(find_coordinate(once.layout, 0), (MeshCoordinate{1, 1}));
  const auto twice = std::get<Phase>(rerouted(once, std::vector{0, 2}, model));
  EXPECT_THAT(twice.layout.vacant, ElementsAre(MeshCoordinate{0, 1}, MeshCoordinate{1, 0}));
  EXPECT_THAT(twice.layout.placement, ElementsAre(1, 0));
  EXPECT_EQ(std::get<CannotReroute>(rerouted(once, std::vector{1, 2}, model)).reason, "no replica is left of stage 1");
}

TEST(Reroute, SaysWhyItCannotBe) {
  Model model = test::synthetic_model(3);
  const ParallelLayout layout{.pipeline_parallel_size = 4, .data_parallel_size = 2};
  const Phase phase = phase_of(layout, 4);
  EXPECT_EQ(reason_of(phase, model, 1), "none");
  EXPECT_EQ(reason_of(phase_of({.pipeline_parallel_size = 4}, 4), model, 2), "no replica is left of stage 2");
  Phase tensor = phase;
  tensor.layout.tensor_parallel_size = 2;
  EXPECT_EQ(reason_of(tensor, model, 1), "tensor ranks share its layers");
  Phase cached = phase;
  cached.cache.on = true;
  EXPECT_EQ(reason_of(cached, model, 1), "the activation cache is in use");
  EXPECT_EQ(reason_of(phase_of(layout, 4, "PipeDream-2BW"), model, 1), "PipeDream-2BW delays updates");
  model.tied_parameter_count = 1;
  EXPECT_THAT(reason_of(phase, model, 0), HasSubstr("tied parameters"));
  EXPECT_THAT(reason_of(phase, model, 7), HasSubstr("tied parameters"));
  EXPECT_EQ(reason_of(phase, model, 2), "none");  // in the middle
}

/// By hand: of 2 or 4 replicas, neighbouring pairs share the experts of each layer.
TEST(Reroute, NeedsAHolderOfEveryExpert) {
  Model model = test::synthetic_model(3);
  const Phase once = phase_of({.pipeline_parallel_size = 4, .data_parallel_size = 2}, 4);
  const Phase twice = phase_of({.pipeline_parallel_size = 4, .data_parallel_size = 4}, 4);
  model.expert_parallel_size = 2;
  EXPECT_EQ(reason_of(once, model, 3), "none") << "no layer has experts";
  model.layers[2].expert_parameter_count = 1;
  EXPECT_EQ(reason_of(once, model, 3), "it held experts that no other rank holds") << "layers 2 and 3";
  EXPECT_EQ(reason_of(once, model, 5), "none") << "layers 4 and 5 have no experts";
  EXPECT_EQ(reason_of(twice, model, 5), "none") << "replica 3 has the experts of replica 1";
  const auto lost = [&](std::vector<int> ranks) {
    std::vector<int> left(16);
    std::iota(left.begin(), left.end(), 0);
    std::erase_if(left, [&](int rank) { return std::ranges::find(ranks, rank) != ranks.end(); });
    return std::holds_alternative<CannotReroute>(rerouted(twice, left, model));
  };
  EXPECT_FALSE(lost({4, 5})) << "replicas 0 and 1, a whole group";
  EXPECT_TRUE(lost({5, 7})) << "replicas 1 and 3, both holders of a half";
  model.expert_parallel_size = 1;
  EXPECT_EQ(reason_of(once, model, 3), "none") << "every replica has all experts";
}

TEST(Reroute, APlanKeepsVacantCoordinates) {
  TrainingPlan plan{.world_size = 4, .global_batch_size = 8, .num_steps = 1, .phases = {}, .provenance = {}};
  plan.phases = {phase_of(with_vacant(2, 2, {{1, 0}}), 2)};
  EXPECT_EQ(plan_from_json(to_json(plan), "plan.json"), plan);
  EXPECT_THAT(to_json(plan), HasSubstr("\"version\": 2"));
  Model model = test::synthetic_model(1);
  EXPECT_NO_THROW(validate(plan, model, "plan.json"));
  const auto refusal = [&](std::vector<MeshCoordinate> vacant) -> std::string {
    plan.phases[0].layout.vacant = std::move(vacant);
    try {
      validate(plan, model, "plan.json");
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(refusal({{2, 0}}),
              HasSubstr("plan.json: phases[0].layout.vacant[0]: must be a pipeline rank < 2 and a replica < 2"));
  EXPECT_THAT(refusal({{1, 0}, {0, 0}}), HasSubstr("vacant[1]: must come after the one before"));
  EXPECT_THAT(refusal({{1, 0}, {1, 1}}), HasSubstr("vacant[1]: must leave a replica of each pipeline rank"));
  model.tied_parameter_count = 1;
  EXPECT_THAT(refusal({{1, 0}}), HasSubstr("layout.vacant: must have no rank of pipeline rank 1: it held tied"));
  plan.phases[0].first_trainable_layer = 1;
  EXPECT_EQ(refusal({{1, 0}}), "none") << "tied gradients are exchanged while nothing is frozen";
  model.expert_parallel_size = 2;
  model.layers[2].expert_parameter_count = 1;
  EXPECT_THAT(refusal({{1, 0}}), HasSubstr("layout.vacant: must have no rank of pipeline rank 1: it held experts"));
}

}  // namespace
}  // namespace frostpipe
