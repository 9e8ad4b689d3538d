#include "plan/run_length.h"

#include <limits>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::message_of;
using examples::two_phase_plan;
using testing::AllOf;
using testing::HasSubstr;

/// A plan with mini-batches of 64 samples.
TrainingPlan plan_of(int num_steps, int epochs) {
  TrainingPlan plan = two_phase_plan();
  plan.num_steps = num_steps;
  plan.epochs = epochs;
  return plan;
}

TEST(RunLength, AnEpochsLastMiniBatchMayBeShort) {
  EXPECT_EQ(steps_per_epoch(640, 64), 10);
  EXPECT_EQ(steps_per_epoch(641, 64), 11);
  EXPECT_EQ(steps_per_epoch(0, 64), 1);
  EXPECT_EQ(steps_per_epoch(std::numeric_limits<int>::max(), 64), 1 << 25);
}

TEST(RunLength, APlanByStepsIsForAnyData) {
  for (const int num_samples : {1, 640, 1'000'000})
    EXPECT_NO_THROW(require_length(plan_of(2, 0), num_samples, "p.json"));
}

TEST(RunLength, APlanByEpochsIsForDataOfItsSize) {
  // 30 steps are 3 epochs of 640 samples. With a few samples more or less, as in another split, 3 is still nearest.
  for (const int num_samples : {600, 640, 700}) EXPECT_NO_THROW(require_length(plan_of(30, 3), num_samples, "p.json"));
  EXPECT_THAT(message_of([] { require_length(plan_of(30, 3), 6400, "p.json"); }),
              AllOf(HasSubstr("p.json: is a plan of 3 epochs in 30 steps"),
                    HasSubstr("0.3 epochs of this data (6400 samples"), HasSubstr("--steps")));
  EXPECT_THAT(message_of([] { require_length(plan_of(30, 3), 320, "p.json"); }), HasSubstr("6 epochs"));
}

TEST(RunLength, AsText) {
  EXPECT_EQ(epochs_text(3), "3 epochs");
  EXPECT_EQ(epochs_text(1), "1 epoch");
  EXPECT_EQ(epochs_text(1.001), "1 epoch");
  EXPECT_EQ(epochs_text(0.2), "0.2 epochs");
  EXPECT_EQ(epochs_text(50.0 / 17), "2.94 epochs");
  EXPECT_EQ(epochs_text(2000), "2000 epochs");
}

}  // namespace
}  // namespace frostpipe
