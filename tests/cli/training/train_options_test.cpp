#include "cli/training/train_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/command_line.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;

TEST(TrainOptionsOfTheCommand, HaveTheirDefaults) {
  CLI::App app;
  TrainCommandOptions options;
  add_train_options(app, options);
  EXPECT_EQ(test::parse(app, "plan.json"), "");
  EXPECT_EQ(options.plan, "plan.json");
  EXPECT_EQ(options.freeze, "plan");
  EXPECT_EQ(options.train.resume, "auto");
  EXPECT_EQ(options.train.checkpoints.every_minutes, 10);
  EXPECT_EQ(options.max_restarts, 3);
  EXPECT_LT(options.accuracy_tolerance, 0) << "not watched";
}

TEST(TrainOptionsOfTheCommand, AreRead) {
  CLI::App app;
  TrainCommandOptions options;
  add_train_options(app, options);
  EXPECT_EQ(test::parse(app,
                        "plan.json --data d.tsv --freeze fixed:1,2 --learning-rate 0.001 --dropout 0.1 "
                        "--checkpoint-every 5 --spares 1 --max-restarts 0 "
                        "--accuracy-guard 1.5 --name mine --cache-dir cache --profile p --overwrite"),
            "");
  EXPECT_EQ(options.data, "d.tsv");
  EXPECT_EQ(options.freeze, "fixed:1,2");
  EXPECT_EQ(options.train.learning_rate, 0.001);
  EXPECT_EQ(options.train.dropout, 0.1);
  EXPECT_EQ(options.train.checkpoints.every_steps, 5);
  EXPECT_EQ(options.train.checkpoints.every_minutes, 0);
  EXPECT_EQ(options.num_spares, 1);
  EXPECT_EQ(options.max_restarts, 0);
  EXPECT_EQ(options.accuracy_tolerance, 1.5);
  EXPECT_EQ(options.train.name, "mine");
  EXPECT_EQ(options.train.cache_folder, "cache");
  EXPECT_EQ(options.sources.profile, "p");
  EXPECT_TRUE(options.overwrite);
}

TEST(TrainOptionsOfTheCommand, CheckpointsComeByTimeOrBySteps) {
  for (const auto& [words, steps, minutes] :
       {std::tuple<std::string, int, double>{"90s", 0, 1.5}, {"2h", 0, 120}, {"500", 500, 0}, {"0", 0, 0}}) {
    CLI::App app;
    TrainCommandOptions options;
    add_train_options(app, options);
    EXPECT_EQ(test::parse(app, "plan.json --checkpoint-every " + words), "");
    EXPECT_EQ(options.train.checkpoints.every_steps, steps) << words;
    EXPECT_EQ(options.train.checkpoints.every_minutes, minutes) << words;
  }
}

TEST(TrainOptionsOfTheCommand, OutOfBoundsAreRefused) {
  for (const char* const wrong :
       {"", "plan.json --dropout 1", "plan.json --learning-rate -1", "plan.json --checkpoint-every soon",
        "plan.json --checkpoint-every 1000000", "plan.json --decay square", "plan.json --group-by-length 1",
        "plan.json --spares -1"}) {
    CLI::App app;
    TrainCommandOptions options;
    add_train_options(app, options);
    EXPECT_NE(test::parse(app, wrong), "") << wrong;
  }
}

}  // namespace
}  // namespace frostpipe
