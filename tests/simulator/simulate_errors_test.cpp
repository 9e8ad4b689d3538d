#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const UniformCostModel kCosts({.forward_ns = 1, .input_gradient_ns = 1, .weight_gradient_ns = 1});

Schedule two_stages_of_gpipe() {
  return lower(build_schedule("GPipe", {.pipeline_parallel_size = 2, .num_micro_batches = 1}));
}

TEST(SimulateErrors, ADeadlockNamesTheWaitingActions) {
  Schedule schedule = two_stages_of_gpipe();
  // Stage 0 waits for its gradient before it sends the activation from which the gradient is computed.
  std::vector<Action>& list = schedule.body.at(0);
  const auto send = std::find(list.begin(), list.end(), parse_action("0SEND_F0", "test"));
  const auto receive = std::find(list.begin(), list.end(), parse_action("0RECV_B0", "test"));
  ASSERT_NE(send, list.end());
  ASSERT_NE(receive, list.end());
  std::iter_swap(send, receive);
  try {
    simulate(schedule, ParallelLayout{.pipeline_parallel_size = 2}, kCosts, 1);
    FAIL() << "must not end";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 0 waits in 0RECV_B0"), HasSubstr("rank 1 waits in 1RECV_F0")));
  }
}

TEST(SimulateErrors, RefusesALayoutOfAnotherLengthAndNoIterations) {
  const Schedule schedule = two_stages_of_gpipe();
  EXPECT_THROW(simulate(schedule, ParallelLayout{.pipeline_parallel_size = 3}, kCosts, 1), InvalidInput);
  EXPECT_THROW(simulate(schedule, ParallelLayout{.pipeline_parallel_size = 2}, kCosts, 0), InvalidInput);
}

}  // namespace
}  // namespace frostpipe
