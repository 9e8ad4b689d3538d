#include "planner/make_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "plan/memory.h"
#include "plan/reconfiguration.h"
#include "planner/auto_plan.h"
#include "planner/search/best_phase.h"
#include "simulator/simulate.h"
#include "tests/planner/two_blocks.h"

namespace frostpipe {
namespace {

using test::free_cluster;
using test::options_for;
using test::reason_of;
using test::synthetic_profile;
using test::SyntheticLayer;
using test::two_blocks;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;

const TrainingPlan& plan_of(const PlanResult& result) {
  if (const auto* none = std::get_if<Infeasible>(&result)) throw std::runtime_error("infeasible: " + none->reason);
  return std::get<TrainingPlan>(result);
}

TEST(MakePlan, DataParallelIsOneStageOnEveryRank) {
  const Profile profile = two_blocks();
  const auto result = make_plan({profile, free_cluster(4), options_for(PlanMethod::data_parallel)});
  const TrainingPlan& plan = plan_of(result);
  validate(plan, profile.model, "plan");
  ASSERT_EQ(plan.phases.size(), 1U);
  EXPECT_EQ(plan.phases[0].layout.pipeline_parallel_size, 1);
  EXPECT_EQ(plan.phases[0].layout.data_parallel_size, 4);
  EXPECT_EQ(plan.phases[0].num_micro_batches, 1);
  EXPECT_EQ(plan.phases[0].partition, (Partition{{0, 6}}));
  // 2 samples through 6 layers, the first without input gradient.
  EXPECT_EQ(plan.phases[0].predicted.iteration_ns, 2 * (6 * 101 + 5 * 10));
}

/// Eight equal layers on four ranks, with 2000 for each of a stage's F, I and W: 33 units with 1F1B, 27 with both
/// others, as drawn by `schedule`. ZB-H2 saves nothing more since all ranks synchronize for the norm. The embedding has
/// no input gradient.
TEST(MakePlan, SplitsTheBackwardWhereItsScheduleIsAskedFor) {
  const Profile profile = synthetic_profile(3, {{.forward_ns = 1000,
                                                 .input_gradient_ns = 1000,
                                                 .weight_gradient_ns = 1000,
                                                 .split_backward = SplitBackward{1000, 1000, 10}}});
  PlanOptions options = options_for(PlanMethod::static_pipeline);
  options.global_batch_size = options.num_micro_batches = 8;
  options.pipeline_parallel_size = 4;
  const auto iteration_of = [&](const std::string& schedule) {
    options.schedule = schedule;
    const TrainingPlan plan = plan_of(make_plan({profile, free_cluster(4), options}));
    validate(plan, profile.model, "plan");
    EXPECT_EQ(plan.phases[0].schedule, schedule);
    return plan.phases[0].predicted.iteration_ns;
  };
  const Nanoseconds whole = iteration_of("1F1B"), h1 = iteration_of("ZB-H1"), h2 = iteration_of("ZB-H2");
  EXPECT_EQ(whole, 33 * 2000 - 1000);
  EXPECT_NEAR(static_cast<double>(h1), 27 * 2000, 3000);
  EXPECT_NEAR(static_cast<double>(h2), 27 * 2000, 3000);
}

TEST(MakePlan, SaysWhyAScheduleThatSplitsTheBackwardIsNotPlanned) {
  PlanOptions options = options_for(PlanMethod::static_pipeline);
  options.schedule = "ZB-H2";
  try {
    make_plan({two_blocks(), free_cluster(4), options});
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("must have measured I and W, which ZB-H2 has in place of B (profile again)"));
  }
  const Profile profile = synthetic_profile(3, {{.split_backward = SplitBackward{1000, 1000, 10}}});
  options.global_batch_size = options.num_micro_batches = 6;
  options.pipeline_parallel_size = 4;
  EXPECT_EQ(
      reason_of(make_plan({profile, free_cluster(4), options})),
      "p = 4: schedule ZB-H2: number of micro-batches: must be >= 2 p - 1, is 6: 7 micro-batches are needed; ask for 7 "
      "with a global batch of at least 7, or try a shorter pipeline");
  options.num_micro_batches = 0;
  options.global_batch_size = 12;
  EXPECT_EQ(reason_of(make_plan({profile, free_cluster(8), options})),
            "p = 4: schedule ZB-H2: number of micro-batches: must be >= 2 p - 1, is 6: 7 micro-batches are needed, a "
            "global batch of 12 makes 6 on each of 2 replicas; try one of at least 14, or a shorter pipeline");
}

TEST(MakePlan, RefusesAScheduleThatThePublishedMethodDoesNotHave) {
  using enum PlanMethod;
  for (const auto& [method, only] : {std::pair{pipedream, "1F1B"}, std::pair{pipedream_2bw, "PipeDream-2BW"},
                                     std::pair{ptd_p, "1F1B"}, std::pair{pipetransformer_published, "GPipe"}}) {
    PlanOptions options = options_for(method);
    options.schedule = only;
    EXPECT_NO_THROW(make_plan({two_blocks(), free_cluster(4), options}));
    for (const std::string other : {"GPipe", "1F1B", "ZB-H1", "Interleaved1F1B"}) {
      if (other == only) continue;
      options.schedule = other;
      try {
        make_plan({two_blocks(), free_cluster(4), options});
        ADD_FAILURE() << to_string(method) << " " << other;
      } catch (const InvalidInput& error) {
        EXPECT_EQ(error.what(), fmt::format("schedule: must be {} for the method {}, or left open, is {}", only,
                                            to_string(method), other));
      }
    }
  }
}

TEST(MakePlan, StaticRespectsTheLimitThatDataParallelMayIgnore) {
  const Profile profile = two_blocks();
  const Cluster cluster = free_cluster(2, /*memory_limit_bytes=*/6000);
  EXPECT_THAT(reason_of(make_plan({profile, cluster, options_for(PlanMethod::data_parallel)})),
              AllOf(HasSubstr("p = 1"), HasSubstr("stage 0"), HasSubstr("rank 0")));
  PlanOptions unlimited = options_for(PlanMethod::data_parallel);
  unlimited.ignore_memory_limit = true;
  const auto ignoring = make_plan({profile, cluster, unlimited});
  EXPECT_FALSE(plan_of(ignoring).memory_limited);
  EXPECT_THAT(plan_of(ignoring).phases[0].predicted.peak_memory_bytes, ElementsAre(9600, 9600));

  const auto result = make_plan({profile, cluster, options_for(PlanMethod::static_pipeline)});
  const TrainingPlan& plan = plan_of(result);
  validate(plan, profile.model, "plan");
  EXPECT_TRUE(plan.memory_limited);
  EXPECT_EQ(plan.phases[0].layout.pipeline_parallel_size, 2);
  EXPECT_THAT(plan.phases[0].predicted.peak_memory_bytes, Each(Le(6000)));
}

TEST(MakePlan, StaticNamesTheClosestMissOfEachLength) {
  const std::string reason =
      reason_of(make_plan({two_blocks(), free_cluster(4, 1000), options_for(PlanMethod::static_pipeline)}));
  EXPECT_THAT(reason, AllOf(HasSubstr("p = 2: stage"), HasSubstr("p = 4: stage"), HasSubstr("needs")));
  EXPECT_THAT(reason, Not(HasSubstr("p = 1")));
}

TEST(MakePlan, StaticTakesTheBestLengthThatUsesEveryRank) {
  const Profile profile = two_blocks();
  const Cluster cluster = free_cluster(4);
  const PlanOptions options = options_for(PlanMethod::static_pipeline);
  const auto result = make_plan({profile, cluster, options});
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
  for (const int p : {2, 4}) {
    best = std::min(best, std::get<Phase>(best_phase({profile, cluster, options}, p, 0)).predicted.iteration_ns);
  }
  EXPECT_EQ(plan_of(result).phases[0].predicted.iteration_ns, best);
  EXPECT_EQ(num_ranks(plan_of(result).phases[0].layout), 4);
}

TEST(MakePlan, StaticOnOneRankIsOneStage) {
  const auto result = make_plan({two_blocks(), free_cluster(1), options_for(PlanMethod::static_pipeline)});
  EXPECT_EQ(plan_of(result).phases[0].layout, (ParallelLayout{1, 1, 1, {}}));
}

TEST(MakePlan, StaticTakesTheLengthThatFixedReplicasLeave) {
  PlanOptions options = options_for(PlanMethod::static_pipeline);
  for (const int replicas : {1, 2, 4}) {
    options.data_parallel_size = replicas;
    const auto result = make_plan({two_blocks(), free_cluster(4), options});
    EXPECT_EQ(plan_of(result).phases[0].layout, (ParallelLayout{4 / replicas, replicas, 1, {}}));
  }
  options.data_parallel_size = 8;
  EXPECT_EQ(reason_of(make_plan({two_blocks(), free_cluster(4), options})),
            "p = 1: this takes 8 ranks for 8 replicas, the cluster has 4");
}

TEST(MakePlan, ThePipelineShrinksWhenTheFrozenModelFits) {
  // One rank can train the model when 5 of 6 layers are frozen (3600 bytes), but not with 3 (6000 of 5000 bytes).
  const Profile profile = two_blocks();
  const Cluster cluster = free_cluster(2, 5000);
  const PlanOptions options = options_for(PlanMethod::pipetransformer);
  const auto result = make_plan({profile, cluster, options});
  const TrainingPlan& plan = plan_of(result);
  validate(plan, profile.model, "plan");
  const auto forecast = forecast_cap(2, 100, options.freeze);
  ASSERT_EQ(forecast.size(), 2U);
  ASSERT_EQ(plan.phases.size(), 3U);

  const auto start = make_plan({profile, cluster, options_for(PlanMethod::static_pipeline)});
  EXPECT_EQ(plan.phases[0], plan_of(start).phases[0]);
  EXPECT_EQ(plan.phases[1].from_step, forecast[0].from_step);
  EXPECT_EQ(plan.phases[1].first_trainable_layer, 3);
  EXPECT_EQ(plan.phases[1].layout, (ParallelLayout{2, 1, 1, {}}));
  EXPECT_EQ(plan.phases[2].from_step, forecast[1].from_step);
  EXPECT_EQ(plan.phases[2].first_trainable_layer, 5);
  EXPECT_EQ(plan.phases[2].layout, (ParallelLayout{1, 2, 1, {}}));
  EXPECT_THAT(plan.phases[2].predicted.peak_memory_bytes, ElementsAre(3600, 3600));
}

TEST(MakePlan, AKeptLengthIsPartitionedAnew) {
  // Per sample, frozen layers 0..2 take 1, layer 3 without input gradient 101, the last two 111: 215 | 111 beats 104 |
  // 222.
  const auto result = make_plan({two_blocks(), free_cluster(2, 5000), options_for(PlanMethod::pipetransformer)});
  const TrainingPlan& plan = plan_of(result);
  EXPECT_EQ(plan.phases[0].partition, (Partition{{0, 3}, {3, 6}}));
  EXPECT_EQ(plan.phases[1].partition, (Partition{{0, 5}, {5, 6}}));
}

TEST(MakePlan, PredictionsAreTheSimulators) {
  const Profile profile = two_blocks();
  Cluster cluster = free_cluster(2, 5000);
  cluster.intra_node.point_to_point = {.latency_ns = 3, .bandwidth_bytes_per_second = 1'000'000'000};
  const PlanOptions options = options_for(PlanMethod::pipetransformer);
  const auto result = make_plan({profile, cluster, options});
  const TrainingPlan& plan = plan_of(result);
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const Phase& phase = plan.phases[i];
    EXPECT_EQ(phase.predicted.iteration_ns,
              simulate_phase(phase, {.global_batch_size = 8}, profile, cluster).summary.iteration_ns);
    const auto memory = memory_of(phase, {.global_batch_size = 8}, profile, cluster);
    EXPECT_EQ(what_does_not_fit(phase, memory, cluster), "");
    if (i == 0) {
      EXPECT_EQ(phase.predicted.transformation_ns, 0);
    } else {
      EXPECT_EQ(phase.predicted.transformation_ns,
                reconfiguration_ns(diff(plan.phases[i - 1], phase, profile.model, Optimizer::kAdamW, DType::kFloat32),
                                   cluster));
      EXPECT_GT(phase.predicted.transformation_ns, 0);
    }
  }
}

TEST(MakePlan, NamesModelAndVersion) {
  const Profile profile = two_blocks();
  const auto result = make_plan({profile, free_cluster(2), options_for(PlanMethod::static_pipeline)});
  EXPECT_EQ(plan_of(result).provenance.model_name, "synthetic");
  EXPECT_EQ(plan_of(result).provenance.model_fingerprint, fingerprint(profile.model));
  EXPECT_NE(plan_of(result).provenance.version, "");
}

TEST(MakePlan, EqualInputGivesAnEqualPlan) {
  const Profile profile = two_blocks();
  const auto once = make_plan({profile, free_cluster(4, 7000), options_for(PlanMethod::pipetransformer)});
  const auto again = make_plan({profile, free_cluster(4, 7000), options_for(PlanMethod::pipetransformer)});
  EXPECT_EQ(to_json(plan_of(once)), to_json(plan_of(again)));
}

TEST(MakePlan, RefusesWhatMeansNothing) {
  const Profile profile = two_blocks();
  const Cluster cluster = free_cluster(2);
  EXPECT_THROW(make_plan({profile, cluster, options_for(PlanMethod::automatic)}), InvalidInput);
  PlanOptions options = options_for(PlanMethod::static_pipeline);
  options.global_batch_size = 0;
  EXPECT_THROW(make_plan({profile, cluster, options}), InvalidInput);
  options = options_for(PlanMethod::static_pipeline);
  options.num_steps = 0;
  EXPECT_THROW(make_plan({profile, cluster, options}), InvalidInput);
  options = options_for(PlanMethod::static_pipeline);
  options.tokens = 0;  // the profile has no workload either
  EXPECT_THROW(make_plan({profile, cluster, options}), InvalidInput);
}

TEST(MakePlan, TakesTheLengthOfTheWorkloadWhereNoneIsGiven) {
  Profile profile = two_blocks();
  profile.workload = {.name = "w",
                      .num_samples = 80,
                      .tokens = test::kSyntheticTokens,
                      .longest_tokens = test::kSyntheticTokens,
                      .global_batch_size = 8};
  PlanOptions options = options_for(PlanMethod::static_pipeline);
  options.tokens = 0;
  const auto result = make_plan({profile, free_cluster(2), options});
  EXPECT_EQ(plan_of(result).phases[0].tokens, test::kSyntheticTokens);
}

// Samples have 8 +- 1 tokens, at most 16, and a mini-batch has 7: at most 56 + 6 sqrt(7) = 72 tokens, in m
// micro-batches at most (72 + 16 (m - 1)) / m each. For m = 4, 5, 6 the largest has 2 samples of 15, 14 and 13 tokens
// on average.
TEST(MakePlan, MemoryIsThatOfTheLongestMiniBatchOfARandomOrder) {
  SyntheticLayer layer;  // six: 9600 bytes of weights and moments, and 60 bytes per token in a micro-batch
  layer.parameter_count = 100;
  layer.output_activation_bytes = 0;
  layer.saved_activation_bytes = 10 * test::kSyntheticTokens;
  Profile profile = synthetic_profile(2, {layer});
  for (std::size_t i = 0, measured = profile.measurements.size(); i < measured; ++i) {
    Measurement longer = profile.measurements[i];
    longer.key.tokens *= 2;
    longer.cost.saved_activation_bytes *= 2;
    profile.measurements.push_back(longer);
  }
  std::ranges::sort(profile.measurements, {}, &Measurement::key);
  profile.workload = {.name = "w",
                      .num_samples = 70,
                      .tokens = test::kSyntheticTokens,
                      .tokens_deviation = 1,
                      .longest_tokens = 2 * test::kSyntheticTokens,
                      .global_batch_size = 7};
  PlanOptions options = options_for(PlanMethod::static_pipeline);
  options.global_batch_size = 7;
  const auto planned = [&](Bytes limit) {
    return plan_of(make_plan({profile, free_cluster(1, limit), options})).phases[0];
  };
  Phase phase = planned(9600 + 60 * 2 * 14);
  EXPECT_EQ(phase.num_micro_batches, 5);  // all are equally fast, but 4 do not fit
  EXPECT_EQ(phase.largest_micro_batch_tokens, (72 + 16 * 4) / 5);
  EXPECT_EQ(phase.predicted.peak_memory_bytes, (std::vector<Bytes>{9600 + 60 * 2 * 14}));
  phase = planned(9600 + 60 * 2 * 13);
  EXPECT_EQ(phase.num_micro_batches, 6);
  EXPECT_EQ(phase.predicted.peak_memory_bytes, (std::vector<Bytes>{9600 + 60 * 2 * 13}));
  profile.workload->tokens_deviation.reset();  // all samples may be the longest
  phase = planned(9600 + 60 * 2 * 14);
  EXPECT_EQ(phase.num_micro_batches, 7);
  EXPECT_EQ(phase.predicted.peak_memory_bytes, (std::vector<Bytes>{9600 + 60 * 1 * 16}));
}

// More ranks only add replicas of the same samples, so they help only if memory is lacking.
TEST(MakePlan, SaysWhetherMemoryIsWhatLacks) {
  PlanOptions options = options_for(PlanMethod::data_parallel);
  options.global_batch_size = 4;
  const auto samples = std::get<Infeasible>(make_plan({two_blocks(), free_cluster(6), options}));
  EXPECT_EQ(samples.reason,
            "p = 1: 4 samples are too few for 1 micro-batch on each of 6 replicas (that takes a global batch of 6, or "
            "fewer replicas: fewer ranks or a longer pipeline)");
  EXPECT_FALSE(samples.lacks_memory);
  for (const PlanMethod method : plan_methods()) {
    if (method == PlanMethod::ptd_p) continue;  // its rule assumes the memory of a whole GPU
    const Profile profile = method == PlanMethod::terapipe ? test::with_slices(two_blocks(), {}) : two_blocks();
    const PlanResult made = make_plan({profile, free_cluster(2, 1000), options_for(method)});
    ASSERT_TRUE(std::holds_alternative<Infeasible>(made)) << to_string(method);
    EXPECT_TRUE(std::get<Infeasible>(made).lacks_memory)
        << to_string(method) << ": " << std::get<Infeasible>(made).reason;
  }
  const auto none = make_auto_plan({two_blocks(), free_cluster(2, 1000), options_for(PlanMethod::automatic)});
  EXPECT_TRUE(std::get<Infeasible>(none).lacks_memory);
}

}  // namespace
}  // namespace frostpipe
