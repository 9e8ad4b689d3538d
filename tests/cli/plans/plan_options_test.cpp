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
             "--method pipetransformer --steps 100 --tokens 32 --recompute layers --cache off "
             "--threads-per-rank 2 --pin 3=0 --pin 5=1 --fix m=4 --fix pp=4 --deadline 90min --explain "
             "--memory-reserve 0.1 --ignore-memory-limit --freeze-set alpha=0.25");
  EXPECT_EQ(fault, "");
  EXPECT_EQ(options.method, "pipetransformer");
  EXPECT_EQ(options.num_steps, 100);
  EXPECT_EQ(options.tokens, 32);
  EXPECT_EQ(options.recompute, "layers");
  EXPECT_FALSE(options.plan.use_cache);
  EXPECT_EQ(options.threads_per_rank, 2);
  EXPECT_THAT(options.limits.pins, ElementsAre("3=0", "5=1"));
  EXPECT_THAT(options.limits.fixed, ElementsAre("m=4", "pp=4"));
  EXPECT_EQ(options.deadline, "90min");
  EXPECT_TRUE(options.explain);
  EXPECT_EQ(options.memory_reserve, 0.1);
  EXPECT_TRUE(options.plan.ignore_memory_limit);
  EXPECT_EQ(options.plan.freeze.alpha, 0.25);
}

TEST(PlanOptionsOfTheCommand, TheCacheIsASizeOrOff) {
  const auto [options, fault] = parsed(kNeeded + "--cache 2KiB --cache-disk 1MiB --cache-dtype bfloat16");
  EXPECT_EQ(fault, "");
  EXPECT_EQ(options.plan.cache.memory_bytes, 2048);
  EXPECT_EQ(options.plan.cache.disk_bytes, 1 << 20);
  EXPECT_EQ(options.plan.cache.dtype, DType::kBFloat16);
  EXPECT_TRUE(options.plan.use_cache);
  EXPECT_NE(parsed(kNeeded + "--cache much").second, "");
  EXPECT_NE(parsed(kNeeded + "--cache-dtype float64").second, "");
}

TEST(PlanOptionsOfTheCommand, ThatContradictEachOtherAreRefused) {
  for (const auto& [words, says] :
       {std::pair<std::string, std::string>{"--model bert-large --profile p", "--profile excludes --model"},
        {"--model bert-large --cluster c", "--cluster excludes --model"},
        {"--nodes 2", "--nodes requires --model"},
        {kNeeded + "--method ppipe", "`frostpipe serving plan` makes plans by ppipe"},
        {kNeeded + "--method mtrain-single", "`frostpipe nets plan` makes plans by mtrain-single"},
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
