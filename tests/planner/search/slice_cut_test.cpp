// Oracle: brute force over all cuts of a sample of 8 tokens, with the simulator's costs.
#include "planner/search/slice_cut.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "base/error.h"
#include "plan/token_slices.h"
#include "planner/auto_plan.h"
#include "planner/make_plan.h"
#include "planner/plan_request.h"
#include "planner/search/best_phase.h"
#include "simulator/cost_model.h"
#include "simulator/simulate.h"
#include "tests/planner/two_blocks.h"

namespace frostpipe {
namespace {

using test::free_cluster;
using test::kSyntheticTokens;
using test::options_for;
using test::synthetic_profile;
using test::with_slices;
using testing::HasSubstr;

/// Each bit says whether a slice ends after that token.
std::vector<std::vector<int>> all_cuts() {
  std::vector<std::vector<int>> cuts;
  for (int bits = 0; bits < 1 << (kSyntheticTokens - 1); ++bits) {
    std::vector<int> lengths{1};
    for (int token = 1; token < kSyntheticTokens; ++token) {
      if (bits >> (token - 1) & 1)
        lengths.push_back(1);
      else
        ++lengths.back();
    }
    cuts.push_back(std::move(lengths));
  }
  return cuts;
}

test::SliceTimes random_times(std::mt19937& random) {
  const auto below = [&](int limit) { return static_cast<int>(random() % limit); };
  return {.a0 = 1 + below(30), .a1 = 1 + below(20), .a2 = below(5), .a3 = below(4)};
}

Phase two_stages(int num_micro_batches) {
  Phase phase;
  phase.layout.pipeline_parallel_size = 2;
  phase.partition = {{0, 2}, {2, 6}};
  phase.num_micro_batches = num_micro_batches;
  phase.schedule = "TeraPipe";
  phase.tokens = kSyntheticTokens;
  return phase;
}

TEST(CutForSlowestStage, IsTheBestOfAllCutsOfTheStageThatTakesLongest) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    const Profile profile = with_slices(synthetic_profile(2, {{.frozen_forward_ns = 1}}), random_times(random));
    Phase phase = two_stages(1 << random() % 3);
    if (round % 3 == 0) phase.recompute = RecomputeMode::layers;
    if (round % 4 == 0) phase.first_trainable_layer = 1;
    PlanOptions options = options_for(PlanMethod::terapipe);
    LayerCosts costs(profile, DType::kFloat32);
    const Cluster cluster = free_cluster(2);
    const TokenSlices found = cut_for_slowest_stage(phase, {profile, cluster, options}, costs);
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    for (const std::vector<int>& lengths : all_cuts()) {
      phase.token_slices = lengths;
      const ProfileCostModel prices(phase, {.global_batch_size = options.global_batch_size}, profile, cluster);
      Nanoseconds sum = 0, longest = 0;
      for (int slice = 0; slice < num_slices(phase); ++slice) {
        Nanoseconds time = 0;
        for (const ActionKind kind : {ActionKind::forward, ActionKind::backward}) {
          Action action{.kind = kind, .stage = 1, .micro_batch = 0};
          if (num_slices(phase) > 1) action.slice = slice;
          time += prices.segments(action, 1, 0).front().duration_ns;
        }
        sum += time;
        longest = std::max(longest, time);
      }
      const Nanoseconds objective = phase.num_micro_batches * sum + longest;
      least = std::min(least, objective);
      if (lengths == found.lengths) {
        EXPECT_EQ(found.time_ns, objective) << round;
      }
    }
    EXPECT_EQ(found.time_ns, least) << round;
  }
}

TEST(CutForSlowestStage, LeavesTheRestOfTheLongestSampleToTheLastSlice) {
  const Profile profile = with_slices(synthetic_profile(2, {{}}), {.a0 = 1, .a1 = 10, .a3 = 3});
  Phase phase = two_stages(1);
  const PlanOptions options = options_for(PlanMethod::terapipe);
  LayerCosts costs(profile, DType::kFloat32);
  const Cluster cluster = free_cluster(2);
  std::vector<int> lengths = cut_for_slowest_stage(phase, {profile, cluster, options}, costs).lengths;
  lengths.back() += 5;
  phase.longest_tokens = kSyntheticTokens + 5;
  EXPECT_EQ(cut_for_slowest_stage(phase, {profile, cluster, options}, costs).lengths, lengths);
}

/// With equal stages the simulated time is TeraPipe's objective, and the cut must be the fastest of all by simulation.
TEST(TeraPipeMethod, IsTheFastestOfAllCutsOnEqualStages) {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    const Profile profile = with_slices(synthetic_profile(2, {{.input_gradient_ns = 0}}), random_times(random));
    PlanOptions options = options_for(PlanMethod::terapipe);
    options.pipeline_parallel_size = 2;
    options.num_micro_batches = 1 << random() % 3;
    const Cluster cluster = free_cluster(2);
    const auto made = make_plan({profile, cluster, options});
    ASSERT_TRUE(std::holds_alternative<TrainingPlan>(made));
    const TrainingPlan& plan = std::get<TrainingPlan>(made);
    validate(plan, profile.model, "plan");
    EXPECT_EQ(plan.method, PlanMethod::terapipe);
    Phase phase = plan.phases.front();
    EXPECT_EQ(phase.schedule, "TeraPipe");
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    for (const std::vector<int>& lengths : all_cuts()) {
      phase.token_slices = lengths;
      least = std::min(
          least, simulated_iteration_ns(phase, {.global_batch_size = options.global_batch_size}, profile, cluster));
    }
    EXPECT_EQ(plan.phases.front().predicted.iteration_ns, least) << round;
  }
}

TEST(TeraPipeMethod, KeepsToTheMemoryLimit) {
  test::SyntheticLayer layer;
  layer.saved_activation_bytes = 1000;
  const Profile profile = with_slices(synthetic_profile(2, {layer}), {.a0 = 50, .a1 = 1});
  PlanOptions options = options_for(PlanMethod::terapipe);
  options.pipeline_parallel_size = 2;
  const auto peak_of = [&](std::optional<Bytes> limit) {
    const Cluster cluster = free_cluster(2, limit);
    const auto made = make_plan({profile, cluster, options});
    if (const auto* none = std::get_if<Infeasible>(&made)) return none->reason;
    const Phase& phase = std::get<TrainingPlan>(made).phases.front();
    return fmt::format("{}", *std::ranges::max_element(phase.predicted.peak_memory_bytes));
  };
  const std::string peak = peak_of(std::nullopt);
  EXPECT_EQ(peak_of(std::stoll(peak)), peak);
  EXPECT_THAT(peak_of(100), HasSubstr("p = 2: stage 0 needs"));
}

TEST(TeraPipeMethod, SaysInASentenceWhatItNeeds) {
  const auto error_of = [](const Profile& profile, auto change) -> std::string {
    PlanOptions options = options_for(PlanMethod::terapipe);
    change(options);
    try {
      make_plan({profile, free_cluster(2), options});
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return {};
  };
  const Profile whole = synthetic_profile(2, {{}}), sliced = with_slices(whole, {});
  Profile unmeasured = whole;
  unmeasured.model.is_causal = true;
  EXPECT_EQ(error_of(sliced, [](PlanOptions&) {}), "");
  EXPECT_EQ(error_of(whole, [](PlanOptions&) {}),
            "profile of synthetic: must describe a causal language model, such as GPT-2 or Llama (profile again if it "
            "does), for TeraPipe, "
            "is of another");
  EXPECT_EQ(error_of(unmeasured, [](PlanOptions&) {}),
            "profile of synthetic: must have measured token slices, which the method terapipe cuts (profile again, "
            "without --quick), is without them");
  EXPECT_EQ(error_of(sliced, [](PlanOptions& options) { options.token_slices = 3; }),
            "token slices: must be left to the method terapipe, which cuts them, is 3");
  EXPECT_EQ(error_of(sliced, [](PlanOptions& options) { options.schedule = "Seq1F1B"; }),
            "schedule: must be TeraPipe for the method terapipe, or left open, is Seq1F1B");
}

TEST(SearchOfSlices, TakesCutOnesWhereTheyAreFasterAndTheirNumberIsOpen) {
  // Later slices attend to much more, so equal lengths take very unequal times.
  const Profile profile = with_slices(synthetic_profile(2, {{.input_gradient_ns = 0}}), {.a0 = 4, .a1 = 1, .a3 = 4});
  const Cluster cluster = free_cluster(2);
  for (const std::string schedule : {"TeraPipe", "Seq1F1B"}) {
    PlanOptions options = options_for(PlanMethod::static_pipeline);
    options.schedule = schedule;
    options.num_micro_batches = 1;
    const auto phase_of = [&](int slices) {
      options.token_slices = slices;
      return std::get<TrainingPlan>(make_plan({profile, cluster, options})).phases.front();
    };
    const Phase equal = phase_of(4), open = phase_of(0);
    EXPECT_EQ(equal.token_slices, equal_slices(kSyntheticTokens, 4));
    EXPECT_LT(open.predicted.iteration_ns, equal.predicted.iteration_ns) << schedule;
    EXPECT_NE(open.token_slices, equal.token_slices);
    EXPECT_EQ(open.predicted.iteration_ns,
              simulated_iteration_ns(open, {.global_batch_size = options.global_batch_size}, profile, cluster));
  }
}

/// Samples of 16 tokens were measured, so a slice may have up to 16 context tokens: for 17 tokens all cuts can be
/// priced, for more only those whose last slice is longer. Later tokens attend to much more, so unequal cuts are used
/// where possible.
Profile measured_to_16_tokens() {
  return with_slices(synthetic_profile(2, {{.input_gradient_ns = 0}}), {.a0 = 4, .a1 = 1, .a3 = 4}, 16);
}

PlanOptions options_of_one_micro_batch(PlanMethod method, int tokens) {
  PlanOptions options = options_for(method);
  options.pipeline_parallel_size = 2;
  options.num_micro_batches = 1;
  options.tokens = tokens;
  return options;
}

TEST(SearchOfSlices, KeepsToEqualOnesBeyondWhatWasMeasured) {
  const Profile profile = measured_to_16_tokens();
  const Cluster cluster = free_cluster(2);
  for (const PlanMethod method : {PlanMethod::static_pipeline, PlanMethod::automatic}) {
    for (const std::string schedule : {"TeraPipe", "Seq1F1B"}) {
      for (const int tokens : {16, 17, 18, 20}) {
        PlanOptions options = options_of_one_micro_batch(method, tokens);
        options.schedule = schedule;
        const Phase phase = std::get<AutoPlan>(plan_run(profile, cluster, {.options = options}).answer).plan.phases[0];
        EXPECT_EQ(phase.token_slices == equal_slices(tokens, 4), tokens > 17) << to_string(method) << " " << tokens;
        EXPECT_EQ(phase.predicted.iteration_ns,
                  simulated_iteration_ns(phase, {.global_batch_size = options.global_batch_size}, profile, cluster));
      }
    }
  }
}

/// Oracle: brute force over all partitions into three stages, with the slices that were chosen. A slice takes long for
/// every layer (a0), so fewer slices than the four that the search begins with are faster.
TEST(SearchOfSlices, SeeksThePartitionForTheNumberOfSlicesThatItChooses) {
  std::mt19937 random(11);
  int fewer = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<test::SyntheticLayer> layers(10);
    const auto some_ns = [&] { return Nanoseconds{1} + static_cast<Nanoseconds>(random() % 40); };
    for (auto& layer : layers) layer = {.forward_ns = some_ns(), .weight_gradient_ns = some_ns()};
    const Profile profile =
        with_slices(synthetic_profile(4, layers), {.a0 = static_cast<int>(random() % 4), .a1 = 1, .a3 = 1});
    const Cluster cluster = free_cluster(3);
    PlanOptions options = options_of_one_micro_batch(PlanMethod::automatic, kSyntheticTokens);
    options.pipeline_parallel_size = 3;
    options.num_micro_batches = 1 << random() % 3;
    options.schedule = round % 2 == 0 ? "TeraPipe" : "Seq1F1B";
    const AutoPlan answer = std::get<AutoPlan>(plan_run(profile, cluster, {.options = options}).answer);
    Phase phase = answer.plan.phases.front();
    EXPECT_EQ(answer.lower_bound_ns, 0) << "the bound would hold for four slices only";
    fewer += num_slices(phase) < 4;
    const int n = static_cast<int>(profile.model.layers.size());
    Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
    for (int first = 1; first + 1 < n; ++first) {
      for (int second = first + 1; second < n; ++second) {
        phase.partition = {{0, first}, {first, second}, {second, n}};
        least = std::min(
            least, simulated_iteration_ns(phase, {.global_batch_size = options.global_batch_size}, profile, cluster));
      }
    }
    EXPECT_EQ(answer.plan.phases.front().predicted.iteration_ns, least) << round;
    options.token_slices = num_slices(phase);
    const AutoPlan equal = std::get<AutoPlan>(plan_run(profile, cluster, {.options = options}).answer);
    EXPECT_GT(equal.lower_bound_ns, 0);
    EXPECT_LE(answer.plan.phases.front().predicted.iteration_ns, equal.plan.phases.front().predicted.iteration_ns)
        << round;
  }
  EXPECT_GT(fewer, 5);
}

TEST(SearchOfSlices, HasNoBoundWhereItChoosesThem) {
  const Profile profile = with_slices(synthetic_profile(2, {{}}), {.a1 = 1});
  const Cluster cluster = free_cluster(2);
  const auto bound_of = [&](PlanMethod method, const std::string& schedule, int slices) {
    PlanOptions options = options_for(method);
    options.schedule = schedule;
    options.token_slices = slices;
    return iteration_lower_bound_ns({profile, cluster, options});
  };
  EXPECT_EQ(bound_of(PlanMethod::static_pipeline, "Seq1F1B", 0), 0);
  EXPECT_EQ(bound_of(PlanMethod::terapipe, "", 0), 0);
  EXPECT_GT(bound_of(PlanMethod::static_pipeline, "Seq1F1B", 3), 0);
  EXPECT_GT(bound_of(PlanMethod::static_pipeline, "", 0), 0);
}

TEST(TeraPipeMethod, IsInfeasibleBeyondWhatWasMeasured) {
  const Profile profile = measured_to_16_tokens();
  for (const int tokens : {17, 18, 20}) {
    const auto made = make_plan({profile, free_cluster(2), options_of_one_micro_batch(PlanMethod::terapipe, tokens)});
    ASSERT_EQ(std::holds_alternative<TrainingPlan>(made), tokens == 17) << tokens;
    if (tokens == 17) continue;
    EXPECT_EQ(std::get<Infeasible>(made).reason,
              "p = 2: profile of synthetic: layer 0 on cpu in float32, context 17, tensor-parallel size 1: context "
              "must be a measured one, or within half the smallest and twice the largest of two or more measured ones "
              "(0..8), is 17");
    EXPECT_FALSE(std::get<Infeasible>(made).lacks_memory);
  }
}

/// 8 samples of 16 +- 1 tokens, at most 40: 128 + 6 x 1 x sqrt(8), about 145, in all. The largest micro-batch of one
/// sample may have 40 tokens, of two (145 + 3 x 40) / 4 = 66, or 33 each; up to 32 can be priced, twice 16. Of the
/// others m = 2 has the least objective, 8 sum + 4 longest; all 8 samples together have 8 sum + 8 longest, three
/// micro-batches 9 sum + 3 longest.
TEST(TeraPipeMethod, PassesOverNumbersOfMicroBatchesWhoseLargestWasNotMeasured) {
  Profile profile = with_slices(synthetic_profile(2, {{}}), {.a0 = 1, .a1 = 10}, 16);
  profile.workload = Workload{.tokens = 16, .tokens_deviation = 1, .longest_tokens = 40};
  PlanOptions options = options_of_one_micro_batch(PlanMethod::terapipe, 16);
  const auto planned = [&](int num_micro_batches) {
    options.num_micro_batches = num_micro_batches;
    return make_plan({profile, free_cluster(2), options});
  };
  for (const auto& [m, tokens] : {std::pair(8, "40"), {4, "33"}})
    EXPECT_EQ(std::get<Infeasible>(planned(m)).reason,
              fmt::format("p = 2: profile of synthetic: layer 0 on cpu in float32, context 0, tensor-parallel size 1: "
                          "number of tokens must be a measured one, or within half the smallest and twice the largest "
                          "of two or more measured ones (4..16), is {}",
                          tokens));
  const TrainingPlan plan = std::get<TrainingPlan>(planned(0));
  EXPECT_EQ(plan.phases[0].num_micro_batches, 2);
  EXPECT_EQ(plan, std::get<TrainingPlan>(planned(2)));
}

/// With one micro-batch on two stages nothing else overlaps. By hand: n equal slices of time 1 / n each finish the
/// second stage after 1 + 1 / n.
TEST(SearchOfSlices, IsPartOfTheSearchOfAllSchedulesForCausalModels) {
  Profile profile = with_slices(synthetic_profile(2, {{.input_gradient_ns = 0}}), {.a1 = 16});
  PlanOptions options = options_for(PlanMethod::static_pipeline);
  options.num_micro_batches = 1;
  options.virtual_stages = 1;
  const auto phase_of = [&] {
    return std::get<TrainingPlan>(make_plan({profile, free_cluster(2), options})).phases.front();
  };
  const Phase sliced = phase_of();
  EXPECT_THAT(sliced.schedule, testing::AnyOf("TeraPipe", "Seq1F1B"));
  EXPECT_EQ(sliced.token_slices, equal_slices(kSyntheticTokens, 4));
  EXPECT_LE(iteration_lower_bound_ns({profile, free_cluster(2), options}), sliced.predicted.iteration_ns);
  profile.model.is_causal = false;
  const Phase whole = phase_of();
  EXPECT_TRUE(whole.token_slices.empty());
  EXPECT_LT(sliced.predicted.iteration_ns, whole.predicted.iteration_ns);
}

}  // namespace
}  // namespace frostpipe
