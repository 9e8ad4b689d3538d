// Oracle: results computed by hand, with a tool that writes files instead of training and advances a clock.
#include "bench/training/run_suite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RunSuiteTest : public test::ScratchFolderTest {
 protected:
  BenchResult run(const BenchOrder& order) {
    const auto call = [this](const std::vector<std::string>& arguments, const std::filesystem::path& log) {
      return take(arguments, log);
    };
    return run_suite(suite_, order,
                     {.run = call,
                      .clock = [this] { return now_; },
                      .show = [this](double, const std::string& line) { shown_.push_back(line); },
                      .note = [this](const std::string& failure) { noted_.push_back(failure); }});
  }

  BenchResult run(int num_seeds) { return run(BenchOrder{.folder = folder_, .num_seeds = num_seeds}); }

  /// The calls of `train`, as "CONFIGURATION SEED".
  std::vector<std::string> trained() const {
    std::vector<std::string> runs;
    for (const std::vector<std::string>& call : calls_)
      if (call[0] == "train") runs.push_back(call[5] + " " + call[3]);
    return runs;
  }

  BenchSuite suite_{.title = "a suite",
                    .epochs = 3,
                    .configurations = {{.name = "fast", .plan = {"--fix", "pp=1"}, .train = {"--freeze", "cap"}},
                                       {.name = "slow", .plan = {}, .train = {}}},
                    .data = {{.name = "texts", .profile = {"--model", "m"}, .plan = {"--tokens", "8"}, .train = {}}}};
  std::map<std::string, double> seconds_{{"fast", 10}, {"slow", 50}};  // of a configuration's training
  std::string fails_;                                                  // this configuration
  std::vector<std::vector<std::string>> calls_;                        // paths without the test's folder
  std::vector<std::string> shown_, noted_;

 private:
  int take(const std::vector<std::string>& arguments, const std::filesystem::path& log) {
    std::vector<std::string>& call = calls_.emplace_back();
    for (const std::string& argument : arguments)
      call.push_back(argument.starts_with(folder_.string()) ? argument.substr(folder_.string().size() + 1) : argument);
    if (call[0] == "profile") write_file_atomically(arguments[2], "{}");
    if (call[0] != "train") return 0;
    const std::string &name = call[5], &folder = arguments[7];
    now_ += seconds_.at(name);
    if (name == fails_) {
      write_file_atomically(log, "begins\nmodel: is missing\n\n");
      return 3;
    }
    write_file_atomically(std::filesystem::path(folder) / "summary.json",
                          to_json(RunSummary{.name = name, .samples_per_second = 1 / seconds_.at(name)}));
    return 0;
  }

  double now_ = 1000;
};

TEST_F(RunSuiteTest, ARunIsAPlanAndATrainingOfAProfileThatIsTakenOnce) {
  EXPECT_EQ(run(1).rows.size(), 2U);
  ASSERT_EQ(calls_.size(), 5U);
  const auto text = [&](int call) { return fmt::format("{}", fmt::join(calls_[call], " ")); };
  EXPECT_EQ(text(0), "profile -o texts/profile.json --cluster texts/cluster.json --model m");
  EXPECT_EQ(text(1),
            "plan --profile texts/profile.json --cluster texts/cluster.json --epochs 3 -o texts/fast/plan.json "
            "--tokens 8 --fix pp=1");
  EXPECT_EQ(text(2), "train texts/fast/plan.json --seed 1 --name fast -o texts/fast/seed-1 --freeze cap");
  EXPECT_EQ(calls_[3][0], "plan");
  EXPECT_EQ(calls_[4][0], "train");
  EXPECT_THAT(shown_, ElementsAre("run 1 of 2: texts/fast seed 1", "run 2 of 2: texts/slow seed 1, about 10.0 s"));
}

TEST_F(RunSuiteTest, SeedsAreOutermostAndTheOtherFreezeSpeedsComeLast) {
  suite_.configurations[0].is_frontier = true;
  run(2);
  EXPECT_THAT(trained(), ElementsAre("slow 1", "slow 2", "fast 1", "fast 2"));
}

TEST_F(RunSuiteTest, FinishedRunsAreNotTrainedAgain) {
  run(1);
  calls_.clear();
  const BenchResult again = run(2);
  EXPECT_THAT(trained(), ElementsAre("fast 2", "slow 2"));
  ASSERT_EQ(again.rows.size(), 2U);
  EXPECT_EQ(again.rows[0].num_seeds, 2);
}

TEST_F(RunSuiteTest, NothingStartsThatShouldEndAfterTheBudget) {
  // fast 1 ends at 10; slow 1, of which the mean is expected, at 60; fast 2 at 70; slow 2 would end at 120; fast 3
  // at 80.
  const BenchResult result = run({.folder = folder_, .num_seeds = 3, .budget_seconds = 100});
  EXPECT_THAT(trained(), ElementsAre("fast 1", "slow 1", "fast 2", "fast 3"));
  EXPECT_THAT(result.left_out, ElementsAre("texts/slow seed 2", "texts/slow seed 3"));
}

TEST_F(RunSuiteTest, AFailedRunIsReportedWithItsLastLineAndTheOthersGoOn) {
  fails_ = "fast";
  const BenchResult result = run(1);
  const std::string log = (folder_ / "texts/fast/seed-1/train.log").string();
  EXPECT_THAT(result.failed, ElementsAre("texts/fast seed 1: model: is missing (exit code 3, " + log + ")"));
  EXPECT_EQ(noted_, result.failed);
  ASSERT_EQ(result.rows.size(), 1U);
  EXPECT_EQ(result.rows[0].configuration, "slow");
  EXPECT_THAT(result.left_out, IsEmpty());
}

}  // namespace
}  // namespace frostpipe
