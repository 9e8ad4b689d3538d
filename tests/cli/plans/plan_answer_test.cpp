#include "cli/plans/plan_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The plan takes 12 ms with a bound of 10 ms; the next best takes 15 ms.
AutoPlan example_answer() {
  Phase phase;
  phase.layout.pipeline_parallel_size = 2;
  phase.partition = {{0, 3}, {3, 6}};
  phase.num_micro_batches = 4;
  phase.predicted.iteration_ns = 12'000'000;
  AutoPlan answer;
  answer.plan.method = PlanMethod::static_pipeline;
  answer.plan.phases = {phase};
  answer.lower_bound_ns = 10'000'000;
  phase.layout = {.data_parallel_size = 2, .tensor_parallel_size = 3};
  phase.predicted.iteration_ns = 15'000'000;
  phase.recompute = RecomputeMode::layers;
  answer.alternatives = {phase};
  return answer;
}

TEST(PlanAnswer, SaysHowFarItIsFromTheBound) {
  const std::string text = plan_answer_text(example_answer(), {});
  EXPECT_THAT(text, HasSubstr("an iteration below 10.0 ms; the first phase is 20.0 % above\n"));
  EXPECT_THAT(text, HasSubstr("1 x 2 x 3"));
  EXPECT_THAT(text, HasSubstr("  layers               15.0        25.0\n")) << "15 ms are 25 % slower than 12";
}

TEST(PlanAnswer, SaysForWhichChoicesTheBoundHolds) {
  EXPECT_THAT(plan_answer_text(example_answer(), {}),
              HasSubstr("no fixed layout that auto looks at has an iteration below 10.0 ms;"));
  EXPECT_THAT(plan_answer_text(example_answer(), {"--fix pp=2", "--schedule GPipe"}),
              HasSubstr("looks at with --fix pp=2 --schedule GPipe has an iteration below 10.0 ms;"));
}

/// Oracle: what make_auto_plan keeps of the options, and what iteration_lower_bound_ns ignores.
TEST(PlanAnswer, TheBoundOfAutoIsForWhatWasChosen) {
  using Strings = std::vector<std::string>;
  PlanCommandOptions options;
  EXPECT_EQ(choices_of_bound(options), Strings{});
  options.limits.fixed = {"pp=2", "slices=4"};
  options.limits.pins = {"head=1"};
  options.plan.schedule = "Seq1F1B";
  options.recompute = "layers";
  options.plan.sequence_parallel = true;
  options.plan.max_devices = 4;
  EXPECT_EQ(choices_of_bound(options), (Strings{"--fix pp=2", "--fix slices=4", "--pin head=1", "--schedule Seq1F1B",
                                                "--recompute layers", "--sequence-parallel", "--max-devices 4"}));
  const Strings of_all{"--fix slices=4", "--sequence-parallel", "--max-devices 4"};
  options.plan.schedule = "AutoZeroBubble";
  EXPECT_EQ(choices_of_bound(options), of_all);
  options.method = "static";
  EXPECT_EQ(choices_of_bound(options), of_all);
}

TEST(PlanAnswer, SaysWhatBeatsTheBoundOfAllThatAutoLooksAt) {
  AutoPlan answer = example_answer();
  answer.lower_bound_ns = 16'000'000;
  EXPECT_THAT(plan_answer_text(answer, {}),
              HasSubstr("the first phase is 25.0 % below, by a layout or a schedule that auto does not look at\n"));
}

TEST(PlanAnswer, SaysNothingOfWhatIsNotKnown) {
  AutoPlan answer = example_answer();
  answer.lower_bound_ns = 0;
  answer.alternatives.clear();
  EXPECT_EQ(plan_answer_text(answer, {}), "");
}

TEST(PlanAnswer, SaysThatNoBoundCoversTheTokenSlicesThatItChose) {
  AutoPlan answer = example_answer();
  answer.lower_bound_ns = 0;
  answer.plan.phases.front().schedule = "Seq1F1B";
  EXPECT_THAT(
      plan_answer_text(answer, {}),
      HasSubstr("plan chose the number and the lengths of the token slices, and no lower bound covers them all; "
                "--schedule Seq1F1B --fix slices=N plans N equal slices with a bound\n"));
  const auto json = nlohmann::json::parse(plan_answer_json(answer, "{}", Profile(), Cluster()));
  EXPECT_TRUE(json.at("lower_bound_ns").is_null());
  EXPECT_TRUE(json.at("gap").is_null());
}

TEST(PlanAnswer, NamesTheFirstMisses) {
  AutoPlan answer;
  answer.unfit_layouts = {"a", "b", "c", "d", "e", "f", "g"};
  const std::string text = plan_answer_text(answer, {});
  EXPECT_THAT(text, HasSubstr("does not fit: e\n"));
  EXPECT_THAT(text, Not(HasSubstr("does not fit: f\n")));
  EXPECT_THAT(text, HasSubstr("2 more layouts do not fit; --format json names them\n"));
}

TEST(PlanAnswer, IsAddedToThePlansJson) {
  const auto json = nlohmann::json::parse(plan_answer_json(example_answer(), R"({"kept": 1})", Profile(), Cluster()));
  EXPECT_EQ(json.at("kept"), 1);
  EXPECT_EQ(json.at("objective"), "iteration time");
  EXPECT_EQ(json.at("predicted_iteration_ns"), 12'000'000);
  EXPECT_EQ(json.at("lower_bound_ns"), 10'000'000);
  EXPECT_NEAR(json.at("gap").get<double>(), 0.2, 1e-12);
  ASSERT_EQ(json.at("alternatives").size(), 1U);
  EXPECT_EQ(json.at("alternatives")[0].at("tensor_parallel_size"), 3);
  EXPECT_EQ(json.at("alternatives")[0].at("partition"), "[0,3) [3,6)");
  EXPECT_EQ(json.at("alternatives")[0].at("micro_batch_size"), example_answer().plan.global_batch_size / 8.0);
  EXPECT_EQ(json.at("phases")[0].at("micro_batch_size"), example_answer().plan.global_batch_size / 4.0);
  EXPECT_TRUE(json.at("misses").empty());
}

/// By hand: 64 samples of 32 tokens in 12 ms. Samples of 31.5 tokens on average were planned as 32.
TEST(PlanAnswer, HasTheTokensPerSecondOfModelsOfText) {
  AutoPlan answer = example_answer();
  answer.plan.global_batch_size = 64;
  answer.plan.phases.front().tokens = 32;
  const auto phase_of = [&](const Profile& profile) {
    return nlohmann::json::parse(plan_answer_json(answer, R"({"phases": [{}]})", profile, Cluster())).at("phases")[0];
  };
  Profile profile;
  EXPECT_FALSE(phase_of(profile).contains("tokens_per_second"));
  profile.model.vocab_size = 100;
  EXPECT_DOUBLE_EQ(phase_of(profile).at("tokens_per_second"), 64 * 32 / 0.012);
  profile.workload = Workload{.tokens = 31.5};
  EXPECT_DOUBLE_EQ(phase_of(profile).at("tokens_per_second"), 64 * 31.5 / 0.012);
  profile.workload->tokens = 20;
  EXPECT_DOUBLE_EQ(phase_of(profile).at("tokens_per_second"), 64 * 32 / 0.012) << "plan --tokens 32";
}

TEST(PlanAnswer, NamesWhatTheMethodMakesBest) {
  AutoPlan answer = example_answer();
  for (const auto& [method, objective] : {std::pair(PlanMethod::pipetransformer, "run time"),
                                          {PlanMethod::exact, "bound of the slowest stage"},
                                          {PlanMethod::pipedream, "slowest stage"},
                                          {PlanMethod::pipedream_2bw, "throughput without a bubble"}}) {
    answer.plan.method = method;
    EXPECT_EQ(nlohmann::json::parse(plan_answer_json(answer, "{}", Profile(), Cluster())).at("objective"), objective);
  }
}

}  // namespace
}  // namespace frostpipe
