#include "operators/plan/net_run.h"

#include <gtest/gtest.h>

namespace frostpipe::test {
namespace {

TEST(NetRun, ComesBackFromItsFile) {
  const NetRun run{
      .name = "mine",
      .net = "resnet",
      .method = OperatorMethod::pipeline,
      .batch = 12,
      .num_iterations = 34,
      .wall_seconds = 5.5,
      .devices = {{"cpu", 100, 90}, {"cpu / 2", 50, 40}},
      .epochs = {
          {.frozen_layers = 0, .predicted_iteration_ns = 7, .iteration_ns = 8, .loss = 2.5},
          {.frozen_layers = 3, .predicted_iteration_ns = 5, .iteration_ns = 6, .loss = 1.5, .test_accuracy = 0.25}}};
  EXPECT_EQ(net_run_from_json(to_json(run), "run"), run);
}

}  // namespace
}  // namespace frostpipe::test
