#include "cli/plans/schedule_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/shared/usage_error.h"
#include "tests/cli/command_line.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;

constexpr UniformCosts kUnits{.forward_ns = 1, .input_gradient_ns = 1, .weight_gradient_ns = 1};

using ScheduleChoices = test::ScratchFolderTest;

ScheduleChoice choice_of(const std::string& name, int ranks, int micro_batches) {
  return {.name = name, .shape = {.pipeline_parallel_size = ranks, .num_micro_batches = micro_batches}};
}

std::string refused(const ScheduleChoice& choice) {
  try {
    chosen_schedule(choice, kUnits);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST_F(ScheduleChoices, AreNamesInAnyCase) {
  EXPECT_EQ(chosen_schedule(choice_of("1f1b", 3, 5), kUnits),
            one_f_one_b({.pipeline_parallel_size = 3, .num_micro_batches = 5}));
  EXPECT_THAT(known_schedules(), HasSubstr("1F1B"));
  EXPECT_THAT(known_schedules(), HasSubstr(", AutoZeroBubble"));
}

TEST_F(ScheduleChoices, AutoZeroBubbleKeepsToItsMemory) {
  ScheduleChoice choice = choice_of("autozerobubble", 2, 6);
  EXPECT_EQ(weight_gradient_share_of(choice_of("GPipe", 2, 6)), 1);
  EXPECT_LT(weight_gradient_share_of(choice), 1);
  EXPECT_EQ(num_pipeline_ranks(chosen_schedule(choice, kUnits)), 2);
}

TEST_F(ScheduleChoices, ThatMeanNothingAreWrongUse) {
  EXPECT_THAT(refused(choice_of("nothing", 2, 2)), HasSubstr("nothing"));
  EXPECT_THAT(refused(choice_of("ZB-H2", 8, 8)), HasSubstr("must be >= 2 p - 1"));
  ScheduleChoice limited = choice_of("GPipe", 2, 2);
  limited.max_in_flight = 3;
  EXPECT_EQ(refused(limited), "--max-in-flight: must be left out for GPipe; only AutoZeroBubble has it");
}

TEST_F(ScheduleChoices, MayBeAFileThatSaysAll) {
  const Schedule written = gpipe({.pipeline_parallel_size = 2, .num_micro_batches = 3});
  const std::string file = this->file("mine.csv", to_csv(written)).string();
  ScheduleChoice choice;
  choice.name = file;
  EXPECT_EQ(chosen_schedule(choice, kUnits).body, written.body);
  EXPECT_EQ(checked_schedule(choice).body, written.body);
  choice.shape.num_micro_batches = 5;
  EXPECT_THAT(refused(choice), HasSubstr("says itself how many ranks, micro-batches and stages there are"));
}

TEST_F(ScheduleChoices, AFileThatIsWrongIsRefused) {
  // 1F0 never gets its input, since 0F0 is missing.
  const std::string file = this->file("wrong.csv", "1F0,1B0\n").string();
  EXPECT_NE(message_of([&] { checked_schedule({.name = file}); }), "no InvalidInput");
}

TEST_F(ScheduleChoices, ShapesAreOptions) {
  CLI::App app;
  ScheduleChoice choice;
  add_shape_options(app, choice);
  EXPECT_EQ(test::parse(app, "--pp 8 --micro-batches 24 --virtual-stages 2 --token-slices 3 --max-in-flight 16"), "");
  EXPECT_EQ(
      choice.shape,
      (ScheduleShape{.pipeline_parallel_size = 8, .num_micro_batches = 24, .virtual_stages = 2, .token_slices = 3}));
  EXPECT_EQ(choice.max_in_flight, 16);
  EXPECT_NE(test::parse(app, "--pp 0"), "");
  EXPECT_NE(test::parse(app, "--pp 4097"), "");
}

}  // namespace
}  // namespace frostpipe
