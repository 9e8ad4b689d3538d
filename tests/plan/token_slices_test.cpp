#include "plan/token_slices.h"

#include <limits>

#include "plan/stages.h"
#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::chain_model;
using examples::message_of;
using examples::two_phase_plan;
using examples::with;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Model causal_model() {
  Model model = chain_model(4);
  model.is_causal = true;
  return model;
}

/// The two-phase plan with token slices in its first phase.
TrainingPlan sliced_plan() {
  TrainingPlan plan = two_phase_plan();
  Phase& phase = plan.phases[0];
  phase.schedule = "Seq1F1B";
  phase.tokens = 5;
  phase.longest_tokens = 9;
  phase.token_slices = {2, 3, 4};
  return plan;
}

TEST(TokenSlices, HaveTokensOfEverySampleInOrderTheLastOneAllThatIsLeft) {
  const Phase phase = sliced_plan().phases[0];
  EXPECT_EQ(num_slices(phase), 3);
  EXPECT_EQ(tokens_of_slice(phase, 1), (TokenRange{2, 5}));
  EXPECT_EQ(tokens_of_slice(phase, 2), (TokenRange{5, std::numeric_limits<std::int64_t>::max()}));
  EXPECT_EQ(tokens_of_slice(phase, 1).of(4), (TokenRange{2, 4}));
  EXPECT_THAT(tokens_of_slices(phase, 3), ElementsAre(2, 1, 0));
  EXPECT_THAT(tokens_of_slices(phase, 100), ElementsAre(2, 3, 95));
  EXPECT_THAT(tokens_of_slices(Phase{}, 7), ElementsAre(7));
  EXPECT_EQ(num_slices(Phase{}), 1);
}

TEST(TokenSlices, EqualOnesDifferByOneTokenAtMost) {
  EXPECT_THAT(equal_slices(8, 4), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(equal_slices(11, 4), ElementsAre(3, 3, 3, 2));
  EXPECT_THAT(equal_slices(1, 1), ElementsAre(1));
}

TEST(TokenSlices, OfAPhaseAreInItsScheduleAndItsText) {
  Phase phase = sliced_plan().phases[0];
  EXPECT_EQ(schedule_of(phase),
            lower(seq_one_f_one_b({.pipeline_parallel_size = 4, .num_micro_batches = 8, .token_slices = 3})));
  EXPECT_EQ(schedule_text(phase), "Seq1F1B, 3 token slices");
  phase.token_slices.clear();
  EXPECT_EQ(schedule_of(phase).num_slices, 1);
}

TEST(TokenSlices, AreOfVersion2AndSurviveTheFile) {
  const std::string text = to_json(sliced_plan());
  EXPECT_THAT(text, testing::StartsWith("{\n \"format\": \"frostpipe.plan\",\n \"version\": 2,\n"));
  EXPECT_THAT(text, HasSubstr("\"token_slices\": [2, 3, 4],\n"));
  EXPECT_EQ(plan_from_json(text, "plan.json"), sliced_plan());
  EXPECT_THAT(to_json(two_phase_plan()), Not(HasSubstr("token_slices")));
  EXPECT_NO_THROW(validate(sliced_plan(), causal_model(), "plan.json"));
}

TEST(TokenSlices, ThatCannotBeAreRefusedInASentence) {
  const auto error_of = [](auto change, const Model& model = causal_model()) {
    TrainingPlan plan = sliced_plan();
    change(plan.phases[0]);
    return message_of([&] { validate(plan, model, "plan.json"); });
  };
  const std::string place = "plan.json: phases[0].";
  EXPECT_EQ(error_of([](Phase& phase) { phase.schedule = "1F1B"; }),
            place + "schedule: schedule 1F1B: token slices: must be 1 (TeraPipe and Seq1F1B have more), is 3");
  EXPECT_EQ(error_of([](Phase& phase) { phase.schedule = "GPipe", phase.token_slices = {9}; }),
            place + "token_slices: must be empty unless the schedule is TeraPipe or Seq1F1B, is 1 slice with GPipe");
  EXPECT_EQ(error_of([](Phase&) {}, chain_model(4)),
            place +
                "token_slices: must be empty: only causal language models, such as GPT-2 and Llama, have them; plan "
                "without slices, is example");
  EXPECT_EQ(error_of([](Phase& phase) {
              phase.token_slices = {2, 0, 7};
            }),
            place + "token_slices[1]: must be >= 1, is 0");
  EXPECT_EQ(error_of([](Phase& phase) {
              phase.token_slices = {2, 3, 3};
            }),
            place + "token_slices: must have at least 9 tokens together, those of the longest sample, is 8");
  EXPECT_EQ(message_of([] { plan_from_json(with(to_json(sliced_plan()), "[2, 3, 4]", "[2, 0, 4]"), "plan.json"); }),
            place + "token_slices[1]: must be >= 1, is 0");
}

}  // namespace
}  // namespace frostpipe
