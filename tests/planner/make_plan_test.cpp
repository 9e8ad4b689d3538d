#include "planner/make_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "plan/memory.h"
#include "plan/transformation.h"
#include "planner/auto_plan.h"
#include "planner/partition.h"
#include "profiles/error.h"
#include "simulator/simulate.h"
#include "tests/support/synthetic_profile.h"

namespace frostpipe {
namespace {

using test::free_cluster;
using test::synthetic_profile;
using test::SyntheticLayer;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;

/// Two blocks, six layers of 100 parameters: 1600 bytes each while they train with AdamW, 400 when frozen; nothing else
/// needs memory. The whole model trains in 9600 bytes, half of it in 4800.
Profile two_blocks() {
  SyntheticLayer layer;
  layer.parameter_count = 100;
  layer.frozen_forward_ns = 1;
  layer.output_activation_bytes = 0;
  return synthetic_profile(2, {layer});
}

PlanOptions options_for(std::string method) {
  PlanOptions options;
  options.method = std::move(method);
  options.global_batch_size = 8;
  options.num_steps = 100;
  options.tokens = test::kSyntheticTokens;
  return options;
}

const TrainingPlan& plan_of(const PlanResult& result) {
  if (const auto* none = std::get_if<Infeasible>(&result)) throw std::runtime_error("infeasible: " + none->reason);
  return std::get<TrainingPlan>(result);
}

std::string reason_of(const PlanResult& result) {
  const auto* none = std::get_if<Infeasible>(&result);
  return none ? none->reason : "feasible";
}

TEST(MakePlan, DataParallelIsOneStageOnEveryRank) {
  const Profile profile = two_blocks();
  const auto result = make_plan(profile, free_cluster(4), options_for("data-parallel"));
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

TEST(MakePlan, StaticRespectsTheLimitThatDataParallelMayIgnore) {
  const Profile profile = two_blocks();
  const Cluster cluster = free_cluster(2, /*memory_limit_bytes=*/6000);
  EXPECT_THAT(reason_of(make_plan(profile, cluster, options_for("data-parallel"))),
              AllOf(HasSubstr("p = 1"), HasSubstr("stage 0"), HasSubstr("rank 0")));
  PlanOptions unlimited = options_for("data-parallel");
  unlimited.ignore_memory_limit = true;
  const auto ignoring = make_plan(profile, cluster, unlimited);
  EXPECT_FALSE(plan_of(ignoring).memory_limited);
  EXPECT_THAT(plan_of(ignoring).phases[0].predicted.peak_memory_bytes, ElementsAre(9600, 9600));

  const auto result = make_plan(profile, cluster, options_for("static"));
  const TrainingPlan& plan = plan_of(result);
  validate(plan, profile.model, "plan");
  EXPECT_TRUE(plan.memory_limited);
  EXPECT_EQ(plan.phases[0].layout.pipeline_parallel_size, 2);
  EXPECT_THAT(plan.phases[0].predicted.peak_memory_bytes, Each(Le(6000)));
}

TEST(MakePlan, StaticNamesTheClosestMissOfEachLength) {
  const std::string reason = reason_of(make_plan(two_blocks(), free_cluster(4, 1000), options_for("static")));
  EXPECT_THAT(reason, AllOf(HasSubstr("p = 2: stage"), HasSubstr("p = 4: stage"), HasSubstr("needs")));
  EXPECT_THAT(reason, Not(HasSubstr("p = 1")));
}

TEST(MakePlan, StaticTakesTheBestLengthThatUsesEveryRank) {
  const Profile profile = two_blocks();
  const Cluster cluster = free_cluster(4);
  const PlanOptions options = options_for("static");
  const auto result = make_plan(profile, cluster, options);
  Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
  for (const int p : {2, 4}) {
    best = std::min(best, std::get<Phase>(best_phase(profile, cluster, options, p, 0)).predicted.iteration_ns);
  }
  EXPECT_EQ(plan_of(result).phases[0].predicted.iteration_ns, best);
  EXPECT_EQ(num_ranks(plan_of(result).phases[0].layout), 4);
}

TEST(MakePlan, StaticOnOneRankIsOneStage) {
  const auto result = make_plan(two_blocks(), free_cluster(1), options_for("static"));
  EXPECT_EQ(plan_of(result).phases[0].layout, (ParallelLayout{1, 1, 1, {}}));
}

TEST(MakePlan, ThePipelineShrinksWhenTheFrozenModelFits) {
  // One rank trains the model when 5 of 6 layers are frozen (3600 bytes), not with 3 (6000 of 5000 bytes).
  const Profile profile = two_blocks();
  const Cluster cluster = free_cluster(2, 5000);
  const PlanOptions options = options_for("pipetransformer");
  const auto result = make_plan(profile, cluster, options);
  const TrainingPlan& plan = plan_of(result);
  validate(plan, profile.model, "plan");
  const auto forecast = forecast_cap(2, 100, options.freeze);
  ASSERT_EQ(forecast.size(), 2U);
  ASSERT_EQ(plan.phases.size(), 3U);

  const auto start = make_plan(profile, cluster, options_for("static"));
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
  // Per sample: layers 0..2 frozen 1, layer 3 without input gradient 101, the last two 111: 215 | 111 beats 104 | 222.
  const auto result = make_plan(two_blocks(), free_cluster(2, 5000), options_for("pipetransformer"));
  const TrainingPlan& plan = plan_of(result);
  EXPECT_EQ(plan.phases[0].partition, (Partition{{0, 3}, {3, 6}}));
  EXPECT_EQ(plan.phases[1].partition, (Partition{{0, 5}, {5, 6}}));
}

TEST(MakePlan, PredictionsAreTheSimulators) {
  const Profile profile = two_blocks();
  Cluster cluster = free_cluster(2, 5000);
  cluster.intra_node.point_to_point = {.latency_ns = 3, .bandwidth_bytes_per_second = 1'000'000'000};
  const PlanOptions options = options_for("pipetransformer");
  const auto result = make_plan(profile, cluster, options);
  const TrainingPlan& plan = plan_of(result);
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    const Phase& phase = plan.phases[i];
    EXPECT_EQ(phase.predicted.iteration_ns,
              simulate_phase(phase, 8, "adamw", "float32", profile, cluster).summary.iteration_ns);
    const auto memory = memory_of(phase, 8, "adamw", "float32", profile, cluster);
    EXPECT_EQ(what_does_not_fit(phase, memory, cluster), "");
    if (i == 0) {
      EXPECT_EQ(phase.predicted.transformation_ns, 0);
    } else {
      EXPECT_EQ(phase.predicted.transformation_ns,
                transformation_ns(diff(plan.phases[i - 1], phase, profile.model, "adamw", "float32"), cluster));
      EXPECT_GT(phase.predicted.transformation_ns, 0);
    }
  }
}

TEST(MakePlan, NamesModelAndVersion) {
  const Profile profile = two_blocks();
  const auto result = make_plan(profile, free_cluster(2), options_for("static"));
  EXPECT_EQ(plan_of(result).provenance.model_name, "synthetic");
  EXPECT_EQ(plan_of(result).provenance.model_fingerprint, fingerprint(profile.model));
  EXPECT_NE(plan_of(result).provenance.version, "");
}

TEST(MakePlan, EqualInputGivesAnEqualPlan) {
  const Profile profile = two_blocks();
  const auto once = make_plan(profile, free_cluster(4, 7000), options_for("pipetransformer"));
  const auto again = make_plan(profile, free_cluster(4, 7000), options_for("pipetransformer"));
  EXPECT_EQ(to_json(plan_of(once)), to_json(plan_of(again)));
}

TEST(MakePlan, RefusesWhatMeansNothing) {
  const Profile profile = two_blocks();
  const Cluster cluster = free_cluster(2);
  PlanOptions options = options_for("fastest");
  EXPECT_THROW(make_plan(profile, cluster, options), InvalidInput);
  options = options_for("static");
  options.partitioner = "best";
  EXPECT_THROW(make_plan(profile, cluster, options), InvalidInput);
  options = options_for("static");
  options.global_batch_size = 0;
  EXPECT_THROW(make_plan(profile, cluster, options), InvalidInput);
  options = options_for("static");
  options.num_steps = 0;
  EXPECT_THROW(make_plan(profile, cluster, options), InvalidInput);
  options = options_for("static");
  options.tokens = 0;  // and the profile has no workload
  EXPECT_THROW(make_plan(profile, cluster, options), InvalidInput);
}

TEST(MakePlan, TakesTheLengthOfTheWorkloadWhereNoneIsGiven) {
  Profile profile = two_blocks();
  profile.workload = {.name = "w",
                      .num_samples = 80,
                      .tokens = test::kSyntheticTokens,
                      .longest_tokens = test::kSyntheticTokens,
                      .global_batch_size = 8};
  PlanOptions options = options_for("static");
  options.tokens = 0;
  const auto result = make_plan(profile, free_cluster(2), options);
  EXPECT_EQ(plan_of(result).phases[0].tokens, test::kSyntheticTokens);
}

// Samples of 8 +- 1 tokens, at most 16, 7 in a mini-batch: at most 56 + 6 sqrt(7) = 72 tokens, in m micro-batches at
// most (72 + 16 (m - 1)) / m each. 2 samples are in the largest for m = 4, 5, 6, of 15, 14 and 13 tokens on average.
TEST(MakePlan, MemoryIsThatOfTheLongestMiniBatchOfARandomOrder) {
  SyntheticLayer layer;  // 6 of them: 9600 bytes of weights and moments, 60 bytes a token in a micro-batch
  layer.parameter_count = 100;
  layer.output_activation_bytes = 0;
  layer.stashed_bytes = 10 * test::kSyntheticTokens;
  Profile profile = synthetic_profile(2, {layer});
  for (std::size_t i = 0, measured = profile.measurements.size(); i < measured; ++i) {
    Measurement longer = profile.measurements[i];
    longer.key.tokens *= 2;
    longer.cost.stashed_bytes *= 2;
    profile.measurements.push_back(longer);
  }
  std::ranges::sort(profile.measurements, {}, &Measurement::key);
  profile.workload = {.name = "w",
                      .num_samples = 70,
                      .tokens = test::kSyntheticTokens,
                      .tokens_deviation = 1,
                      .longest_tokens = 2 * test::kSyntheticTokens,
                      .global_batch_size = 7};
  PlanOptions options = options_for("static");
  options.global_batch_size = 7;
  const auto planned = [&](Bytes limit) {
    return plan_of(make_plan(profile, free_cluster(1, limit), options)).phases[0];
  };
  Phase phase = planned(9600 + 60 * 2 * 14);
  EXPECT_EQ(phase.num_micro_batches, 5);  // all take as long, 4 do not fit
  EXPECT_EQ(phase.largest_micro_batch_tokens, (72 + 16 * 4) / 5);
  EXPECT_EQ(phase.predicted.peak_memory_bytes, (std::vector<Bytes>{9600 + 60 * 2 * 14}));
  phase = planned(9600 + 60 * 2 * 13);
  EXPECT_EQ(phase.num_micro_batches, 6);
  EXPECT_EQ(phase.predicted.peak_memory_bytes, (std::vector<Bytes>{9600 + 60 * 2 * 13}));
  profile.workload->tokens_deviation.reset();  // all may be the longest
  phase = planned(9600 + 60 * 2 * 14);
  EXPECT_EQ(phase.num_micro_batches, 7);
  EXPECT_EQ(phase.predicted.peak_memory_bytes, (std::vector<Bytes>{9600 + 60 * 1 * 16}));
}

/// Costs of one layer over an iteration, written down anew.
std::vector<Nanoseconds> iteration_cost(const Profile& profile, int samples, int micro_batches, int first_trainable) {
  std::vector<Nanoseconds> cost;
  for (int layer = 0; layer < static_cast<int>(profile.model.layers.size()); ++layer) {
    Nanoseconds sum = layer < first_trainable ? 0 : update_cost_of(profile, layer, "cpu", "float32", "adamw");
    for (int i = 0; i < micro_batches; ++i) {
      const int size = samples / micro_batches + (i < samples % micro_batches ? 1 : 0);
      const LayerCost one =
          cost_of(profile, {.layer = layer, .micro_batch_size = size, .tokens = test::kSyntheticTokens});
      if (layer < first_trainable) {
        sum += one.frozen_forward_ns;
      } else {
        sum += one.forward_ns + one.weight_gradient_ns + (layer > first_trainable ? one.input_gradient_ns : 0);
      }
    }
    cost.push_back(sum);
  }
  return cost;
}

TEST(BestPhase, IsAtLeastAsFastAsEveryScheduleAndNumberOfMicroBatches) {
  std::mt19937 random(7);
  for (int round = 0; round < 10; ++round) {
    std::vector<SyntheticLayer> layers(8);
    for (auto& layer : layers) {
      layer = {.forward_ns = 10 + static_cast<Nanoseconds>(random() % 50),
               .input_gradient_ns = static_cast<Nanoseconds>(random() % 50),
               .weight_gradient_ns = static_cast<Nanoseconds>(random() % 50),
               .frozen_forward_ns = static_cast<Nanoseconds>(random() % 20),
               .update_ns = static_cast<Nanoseconds>(random() % 200)};
    }
    const Profile profile = synthetic_profile(3, layers);
    Cluster cluster = free_cluster(4);
    cluster.intra_node.point_to_point.latency_ns = static_cast<Nanoseconds>(random() % 100);
    PlanOptions options = options_for("static");
    options.global_batch_size = 24;
    const int first_trainable = first_trainable_layer(profile.model, static_cast<int>(random() % 4));
    const auto result = best_phase(profile, cluster, options, 2, first_trainable);
    Nanoseconds best = std::numeric_limits<Nanoseconds>::max();
    for (const char* schedule : {"GPipe", "1F1B"}) {
      for (int m = 1; m <= 12; ++m) {
        Phase phase = std::get<Phase>(result);
        phase.schedule = schedule;
        phase.num_micro_batches = m;
        phase.partition = partition_exact(iteration_cost(profile, 12, m, first_trainable), 2);
        best = std::min(best, simulated_iteration_ns(phase, 24, "adamw", "float32", profile, cluster));
      }
    }
    EXPECT_LE(std::get<Phase>(result).predicted.iteration_ns, best);
  }
}

TEST(BestPhase, IsCloseToTheBestOfAllPartitions) {
  std::mt19937 random(8);
  for (int round = 0; round < 4; ++round) {
    std::vector<SyntheticLayer> layers(10);
    for (auto& layer : layers) {
      layer = {.forward_ns = 900 + static_cast<Nanoseconds>(random() % 200),
               .input_gradient_ns = 900 + static_cast<Nanoseconds>(random() % 200),
               .weight_gradient_ns = 900 + static_cast<Nanoseconds>(random() % 200),
               .frozen_forward_ns = 800 + static_cast<Nanoseconds>(random() % 200),
               .update_ns = static_cast<Nanoseconds>(random() % 3000)};
    }
    layers.front().forward_ns /= 4;  // an embedding is light
    const Profile profile = synthetic_profile(4, layers);
    const Cluster cluster = free_cluster(2);
    PlanOptions options = options_for("static");
    options.global_batch_size = 16;
    const Phase chosen = std::get<Phase>(
        best_phase(profile, cluster, options, 2, first_trainable_layer(profile.model, static_cast<int>(random() % 4))));
    Nanoseconds best = chosen.predicted.iteration_ns;
    for (const char* schedule : {"GPipe", "1F1B"}) {
      for (int m = 1; m <= 16; ++m) {
        for (int cut = 1; cut < 10; ++cut) {
          Phase phase = chosen;
          phase.schedule = schedule;
          phase.num_micro_batches = m;
          phase.partition = {{0, cut}, {cut, 10}};
          best = std::min(best, simulated_iteration_ns(phase, 16, "adamw", "float32", profile, cluster));
        }
      }
    }
    EXPECT_LE(static_cast<double>(chosen.predicted.iteration_ns), 1.02 * static_cast<double>(best));
  }
}

TEST(BestPhase, GivesUpBalanceForMemory) {
  // Equal times, but the embedding has ten times the parameters: 16000 bytes. Balanced in time is 3 + 3 (19200 bytes).
  std::vector<SyntheticLayer> layers(6);
  for (auto& layer : layers) {
    layer.parameter_count = 100;
    layer.output_activation_bytes = 0;
  }
  layers[0].parameter_count = 1000;
  const Profile profile = synthetic_profile(2, layers);
  const auto partition_with = [&](Bytes limit) {
    return std::get<Phase>(best_phase(profile, free_cluster(2, limit), options_for("static"), 2, 0)).partition;
  };
  EXPECT_EQ(partition_with(20000), (Partition{{0, 3}, {3, 6}}));
  EXPECT_EQ(partition_with(18000), (Partition{{0, 2}, {2, 6}}));
  EXPECT_EQ(partition_with(16500), (Partition{{0, 1}, {1, 6}}));
  const auto none = best_phase(profile, free_cluster(2, 15000), options_for("static"), 2, 0);
  EXPECT_THAT(std::get<Infeasible>(none).reason, AllOf(HasSubstr("p = 2"), HasSubstr("stage 0"), HasSubstr("[0,1)")));
}

TEST(BestPhase, SkipsMicroBatchesThatWereNotMeasured) {
  // Measured up to 4 samples, so priced up to 8: one rank pair can only cut 64 samples into 8 or more.
  Profile profile = two_blocks();
  std::erase_if(profile.measurements, [](const Measurement& m) { return m.key.micro_batch_size > 4; });
  PlanOptions options = options_for("static");
  options.global_batch_size = 64;
  const auto result = best_phase(profile, free_cluster(2), options, 2, 0);
  EXPECT_GE(std::get<Phase>(result).num_micro_batches, 8);
  std::erase_if(profile.measurements,
                [](const Measurement& m) { return m.key.micro_batch_size < 4; });  // one size is left
  options.global_batch_size = 3;                                                   // never as many
  EXPECT_THROW(best_phase(profile, free_cluster(2), options, 2, 0), InvalidInput);
}

TEST(BestPhase, SaysThatLayersOrRanksAreTooFew) {
  const auto ranks = best_phase(two_blocks(), free_cluster(2), options_for("static"), 3, 0);
  EXPECT_EQ(std::get<Infeasible>(ranks).reason, "p = 3: the cluster has 2 ranks");
  const auto layers = best_phase(two_blocks(), free_cluster(8), options_for("static"), 7, 0);
  EXPECT_EQ(std::get<Infeasible>(layers).reason, "p = 7: the model has 6 layers");
}

// More ranks make more replicas of the same samples: only what lacks memory may be helped by them.
TEST(MakePlan, SaysWhetherMemoryIsWhatLacks) {
  PlanOptions options = options_for("data-parallel");
  options.global_batch_size = 4;
  const auto samples = std::get<Infeasible>(make_plan(two_blocks(), free_cluster(6), options));
  EXPECT_EQ(samples.reason,
            "p = 1: 4 samples are too few for 1 micro-batch on each of 6 replicas (that takes a global batch of 6, or "
            "fewer replicas: fewer ranks or a longer pipeline)");
  EXPECT_FALSE(samples.lacks_memory);
  for (const std::string& method : plan_methods()) {
    if (method == "ptd-p") continue;  // takes the limit for that of a whole GPU
    const PlanResult made = make_plan(two_blocks(), free_cluster(2, 1000), options_for(method));
    ASSERT_TRUE(std::holds_alternative<Infeasible>(made)) << method;
    EXPECT_TRUE(std::get<Infeasible>(made).lacks_memory) << method << ": " << std::get<Infeasible>(made).reason;
  }
  const auto none = make_auto_plan(two_blocks(), free_cluster(2, 1000), options_for("auto"));
  EXPECT_TRUE(std::get<Infeasible>(none).lacks_memory);
}

TEST(BestPhase, ThePublishedPartitionerMayLeaveAStageEmpty) {
  // The embedding dwarfs the rest: the greedy gives stage 0 nothing.
  std::vector<SyntheticLayer> layers(6);
  for (auto& layer : layers) layer.parameter_count = 1'000'000;
  layers[0].parameter_count = 30'000'000;
  const Profile profile = synthetic_profile(2, layers);
  PlanOptions options = options_for("static");
  options.partitioner = "pipetransformer-greedy";
  options.ignore_memory_limit = true;
  const std::vector<double> in_millions{30, 1, 1, 1, 1, 1};
  const Partition published = partition_pipetransformer_greedy(in_millions, 4);
  const bool has_empty =
      std::any_of(published.begin(), published.end(), [](const LayerRange& r) { return r.begin == r.end; });
  ASSERT_TRUE(has_empty);
  EXPECT_THAT(std::get<Infeasible>(best_phase(profile, free_cluster(4), options, 4, 0)).reason,
              AllOf(HasSubstr("p = 4"), HasSubstr("pipetransformer-greedy"), HasSubstr("empty")));
}

TEST(BestPhase, ThePublishedPartitionerKeepsFrozenLayersOnTheFirstStage) {
  SyntheticLayer layer;
  layer.parameter_count = 1'000'000;
  const Profile profile = synthetic_profile(2, {layer});
  PlanOptions options = options_for("static");
  options.partitioner = "pipetransformer-greedy";
  const auto result = best_phase(profile, free_cluster(2), options, 2, /*first_trainable_layer=*/3);
  // Three equal layers left, mean 1.5: the first of them stays with the frozen ones.
  EXPECT_EQ(std::get<Phase>(result).partition, (Partition{{0, 4}, {4, 6}}));
}

}  // namespace
}  // namespace frostpipe
