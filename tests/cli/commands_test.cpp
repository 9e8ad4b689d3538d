// Oracle: command lines and files of the test, and a schedule made by hand.
#include "cli/commands/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tests/cli/command_line.h"

namespace frostpipe {
namespace {

using testing::ElementsAre;

/// Each function and the name of its command.
const std::vector<std::pair<Command (*)(CLI::App&), std::string>> kCommands{
    {add_profile_command, "profile"}, {add_plan_command, "plan"},         {add_simulate_command, "simulate"},
    {add_train_command, "train"},     {add_evaluate_command, "evaluate"}, {add_compare_command, "compare"},
    {add_report_command, "report"},   {add_schedule_command, "schedule"}, {add_inspect_command, "inspect"},
    {add_bench_program, "bench"},     {add_launch_command, "launch"},     {add_serving_commands, "serving"},
    {add_nets_commands, "nets"},      {add_serving_program, "serving"},   {add_nets_program, "nets"}};

TEST(Commands, AMemberOfAGroupIsRunByItsGroup) {
  CLI::App app;
  const Command group = add_serving_commands(app);
  EXPECT_EQ(test::parse(app, "serving inspect no-plan.json"), "");
  EXPECT_THAT([&] { group.run(); }, testing::Throws<InvalidInput>(
                                        testing::Property(&InvalidInput::what, testing::HasSubstr("no-plan.json"))));
}

TEST(Commands, EachAddsOneWordToTheCommandLine) {
  for (const auto& [add, word] : kCommands) {
    CLI::App app;
    const Command command = add(app);
    EXPECT_THAT(app.get_subcommands(nullptr), ElementsAre(command.parsed));
    EXPECT_EQ(command.parsed->get_name(), word);
    EXPECT_FALSE(command.parsed->parsed());
  }
}

TEST(Commands, EvaluateLimitsOnlyCompletionsThatItWrites) {
  CLI::App app;
  add_evaluate_command(app);
  const std::string scored = "evaluate --model m --data d --max-new-tokens 4";
  EXPECT_THAT(test::parse(app, scored), testing::HasSubstr("--predictions"));
  EXPECT_EQ(test::parse(app, scored + " --predictions p"), "");
}

/// A command and options for it; their files do not exist, since parsing does not look for them.
TEST(Commands, ParsingDoesNoWork) {
  struct Line {
    Command (*add)(CLI::App&);
    std::string words, missing;
  };
  for (const Line& line : {
           Line{add_simulate_command, "simulate no-plan.json", "no-plan.json"},
           Line{add_inspect_command, "inspect no-run", "no-run"},
           Line{add_compare_command, "compare no-plan.json no-run", "no-run"},
       }) {
    CLI::App app;
    const Command command = line.add(app);
    EXPECT_EQ(test::parse(app, line.words), "");
    EXPECT_TRUE(command.parsed->parsed());
    try {
      command.run();
      ADD_FAILURE() << line.words << " ran";
    } catch (const InvalidInput& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(line.missing));
    }
  }
}

/// GPipe: all forwards, then all backwards.
TEST(Commands, RunWithTheOptionsThatWereParsed) {
  CLI::App app;
  const Command command = add_schedule_command(app);
  ASSERT_EQ(test::parse(app, "schedule GPipe --pp 2 --micro-batches 2 --format text"), "");
  testing::internal::CaptureStdout();
  EXPECT_EQ(command.run(), 0);
  const std::string said = testing::internal::GetCapturedStdout();
  EXPECT_EQ(said, "rank 0: 0F0 0F1 0B0 0B1\nrank 1: 1F0 1F1 1B0 1B1\n");
}

}  // namespace
}  // namespace frostpipe
