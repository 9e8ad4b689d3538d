#include "cli/plans/plan_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/shared/usage_error.h"
#include "tests/plan/examples.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Layers: embedding, block.0.attention, block.0.mlp, ..., head: 10.
const Model& model_of_four_blocks() {
  static const Model model = examples::chain_model(4);
  return model;
}

TEST(ParsePins, NamesLayersOrCountsThem) {
  EXPECT_THAT(parse_pins({"8=1", "block.0.mlp=0"}, model_of_four_blocks()),
              ElementsAre(LayerPin{2, 0}, LayerPin{8, 1}));
}

TEST(ParsePins, RefusesWhatNoPartitionKeeps) {
  const auto refusal = [](const std::vector<std::string>& pins) {
    return examples::message_of<UsageError>([&] { parse_pins(pins, model_of_four_blocks()); });
  };
  EXPECT_THAT(refusal({"3"}), HasSubstr("must be LAYER=STAGE"));
  EXPECT_THAT(refusal({"3=x"}), HasSubstr("must be LAYER=STAGE"));
  EXPECT_THAT(refusal({"attic=1"}), HasSubstr("embedding to head, or 0 to 9"));
  EXPECT_THAT(refusal({"10=1"}), HasSubstr("0 to 9"));
  EXPECT_THAT(refusal({"5=0", "3=1"}), HasSubstr("must leave a layer for every stage, in order, after 3=1"));
  EXPECT_THAT(refusal({"3=0", "4=2"}), HasSubstr("must leave a layer for every stage")) << "stage 1 would be empty";
}

TEST(ApplyFixed, SetsWhatIsFixed) {
  PlanOptions options;
  apply_fixed({"pp=4", "dp=2", "m=8"}, options);
  EXPECT_EQ(options.pipeline_parallel_size, 4);
  EXPECT_EQ(options.data_parallel_size, 2);
  EXPECT_EQ(options.num_micro_batches, 8);
  EXPECT_TRUE(options.any_tensor_parallel_size);
  apply_fixed({"tp=2"}, options);
  EXPECT_EQ(options.tensor_parallel_size, 2);
  EXPECT_FALSE(options.any_tensor_parallel_size);
}

TEST(ApplyFixed, RefusesAPartThatIsGivenTwice) {
  PlanOptions options;
  EXPECT_EQ(examples::message_of<UsageError>([&] {
              apply_fixed({"pp=2", "m=4", "pp=4"}, options);
            }),
            "--fix: must give pp once, is pp=2 and pp=4");
}

TEST(ApplyFixed, RefusesAnythingElse) {
  EXPECT_EQ(check_fixed("m=8"), "");
  for (const char* const wrong : {"pp=0", "stages=2", "pp", "pp=", "pp=2x", "pp=1000001"})
    EXPECT_THAT(check_fixed(wrong), StartsWith("must be pp=P")) << wrong;
}

using ParseForecast = test::ScratchFolderTest;

TEST_F(ParseForecast, IsTheRulesTheUsersOrAFiles) {
  const auto forecast = [](const std::string& text) {
    return parse_forecast(text, model_of_four_blocks(), 100, FreezeOptions{});
  };
  EXPECT_EQ(forecast("cap"), std::nullopt);
  EXPECT_EQ(forecast("fixed:1,3"), forecast_fixed(std::vector<int>{1, 3}, 100, FreezeOptions{}));
  const auto plan = file("plan.json", to_json(examples::two_phase_plan()));  // 2 blocks frozen from step 40 of 100
  EXPECT_THAT(forecast(plan.string()).value(), ElementsAre(FreezeEvent{.from_step = 40, .frozen_blocks = 2}));
  for (const char* const wrong : {"fixed:3,1", "fixed:5", "fixed:", "fixed:x"})
    EXPECT_THAT(examples::message_of<UsageError>([&] { forecast(wrong); }), HasSubstr("ascending, at most 4")) << wrong;
}

}  // namespace
}  // namespace frostpipe
