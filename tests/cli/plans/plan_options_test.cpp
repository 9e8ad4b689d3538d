#include "cli/plans/plan_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/command_line.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kNeeded = "--profile p --cluster c --global-batch 8 -o plan.json ";

/// The options that a command line sets, or its error.
std::pair<PlanCommandOptions, std::string> parsed(const std::string& words) {
  CLI::App app;
  PlanCommandOptions options;
  add_plan_options(app, options);
  const std::string fault = test::parse(app, words);
  return {options, fault};
}

TEST(PlanOptionsOfTheCommand, HaveTheirDefaults) {
  const auto [options, fault] = parsed(kNeeded);
  EXPECT_EQ(fault, "");
  EXPECT_EQ(options.method, "auto");
  EXPECT_EQ(options.plan.global_batch_size, 8);
  EXPECT_EQ(options.plan.cache.memory_bytes, Bytes{1} << 30);
  EXPECT_EQ(options.memory_reserve, kMemoryReserve);
  EXPECT_EQ(options.limits.forecast, "cap");
  EXPECT_EQ(options.epochs, 3);
  EXPECT_TRUE(options.plan.any_tensor_parallel_size);
}

TEST(PlanOptionsOfTheCommand, AreRead) {
  const auto [options, fault] =
      parsed(kNeeded +
             "--method pipetransformer --steps 100 --tokens 32 --pp 4 --recompute layers --cache off "
             "--threads-per-rank 2 --pin 3=0 --pin 5=1 --fix m=4 --deadline 90min --explain "
             "--memory-reserve 0.1 --ignore-memory-limit --freeze-alpha 0.25");
  EXPECT_EQ(fault, "");
  EXPECT_EQ(options.method, "pipetransformer");
  EXPECT_EQ(options.num_steps, 100);
  EXPECT_EQ(options.tokens, 32);
  EXPECT_EQ(options.plan.pipeline_parallel_size, 4);
  EXPECT_EQ(options.recompute, "layers");
  EXPECT_EQ(options.cache, "off");
  EXPECT_EQ(options.threads_per_rank, 2);
  EXPECT_THAT(options.limits.pins, ElementsAre("3=0", "5=1"));
  EXPECT_THAT(options.limits.fixed, ElementsAre("m=4"));
  EXPECT_EQ(options.deadline, "90min");
  EXPECT_TRUE(options.explain);
  EXPECT_EQ(options.memory_reserve, 0.1);
  EXPECT_TRUE(options.plan.ignore_memory_limit);
  EXPECT_EQ(options.plan.freeze.alpha, 0.25);
}

TEST(PlanOptionsOfTheCommand, ATensorParallelSizeThatIsGivenStays) {
  EXPECT_FALSE(parsed(kNeeded + "--tp 1").first.plan.any_tensor_parallel_size) << "1 is the default, but given";
  EXPECT_EQ(parsed(kNeeded + "--tp 2").first.plan.tensor_parallel_size, 2);
}

TEST(PlanOptionsOfTheCommand, ThatContradictEachOtherAreRefused) {
  for (const auto& [words, says] :
       {std::pair<std::string, std::string>{"--profile p --global-batch 8 -o x", "--cluster"},
        {kNeeded + "--model bert-large", "--profile"},
        {kNeeded + "--hardware A100", "--model"},
        {kNeeded + "--epochs 2 --steps 10", "--steps"},
        {kNeeded + "--deadline 10s", "--method"},
        {kNeeded + "--method static --deadline soon", "must be a time"},
        {kNeeded + "--method nothing", "nothing"},
        {kNeeded + "--schedule nothing", "nothing"},
        {kNeeded + "--fix stages=2", "must be pp=P"},
        {kNeeded + "--memory-reserve 0.95", "0.95"},
        {kNeeded + "--recompute all", "all"}})
    EXPECT_THAT(parsed(words).second, HasSubstr(says)) << words;
}

}  // namespace
}  // namespace frostpipe
