#include "cli/profiling/profile_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/command_line.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;

TEST(ProfileOptionsOfTheCommand, AreRead) {
  CLI::App app;
  ProfileOptions options;
  add_profile_options(app, options);
  EXPECT_EQ(test::parse(app,
                        "--model folder --data d.tsv -o p.json --cluster c.json --nproc-per-node 4 "
                        "--threads-per-rank 2 --memory-limit 384MiB --quick --micro-batch-sizes 1,8 --tokens 16 "
                        "--held-out 0.1 --seed 7 --dtype bfloat16 --frozen-dtype bfloat16 --global-batch 32"),
            "");
  EXPECT_EQ(options.model, "folder");
  EXPECT_EQ(options.output, "p.json");
  EXPECT_EQ(options.num_ranks, 4);
  EXPECT_EQ(options.measure.threads_per_rank, 2);
  EXPECT_EQ(options.memory_limit, "384MiB");
  EXPECT_TRUE(options.measure.quick);
  EXPECT_THAT(options.measure.micro_batch_sizes, ElementsAre(1, 8));
  EXPECT_THAT(options.measure.tokens, ElementsAre(16));
  EXPECT_EQ(options.measure.held_out, 0.1);
  EXPECT_EQ(options.measure.seed, 7U);
  EXPECT_EQ(options.measure.dtype, DType::kBFloat16);
  EXPECT_EQ(options.measure.frozen_dtype, DType::kBFloat16);
  EXPECT_EQ(options.measure.global_batch_size, 32);
}

TEST(ProfileOptionsOfTheCommand, OfEstimatesAreRead) {
  CLI::App app;
  ProfileOptions options;
  add_profile_options(app, options);
  EXPECT_EQ(test::parse(app, "--like vit-b16 --hardware A100 --nodes 2 --samples 1000 --tensor-parallel 1,2 -o p.json"),
            "");
  EXPECT_EQ(options.like, "vit-b16");
  EXPECT_EQ(options.hardware, "A100");
  EXPECT_EQ(options.num_nodes, 2);
  EXPECT_EQ(options.estimate.num_samples, 1000);
  EXPECT_THAT(options.estimate.tensor_parallel_sizes, ElementsAre(1, 2));
}

TEST(ProfileOptionsOfTheCommand, AreRefusedBesideASourceThatDoesNotUseThem) {
  for (const char* const wrong :
       {"--like vit-b16 -o p --quick", "--like vit-b16 -o p --threads-per-rank 2",
        "--like vit-b16 -o p --frozen-dtype bfloat16", "--like vit-b16 -o p --interface lo", "--like vit-b16",
        "--model m -o p --memory-limit much --cluster c", "--model m -o p --held-out 1",
        "--model m --like vit-b16 -o p", "--model m -o p --hardware A100", "--model m -o p --memory-limit 1GiB",
        "--import g -o p --tokens 4"}) {
    CLI::App app;
    ProfileOptions options;
    add_profile_options(app, options);
    EXPECT_NE(test::parse(app, wrong), "") << wrong;
  }
}

}  // namespace
}  // namespace frostpipe
