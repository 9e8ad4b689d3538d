#include "planner/recorded_forecast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Phase recorded_phase(int step, int first_trainable_layer) {
  Phase phase;
  phase.from_step = step;
  phase.first_trainable_layer = first_trainable_layer;
  return phase;
}

TEST(RecordedForecast, FreezesAtTheSameFractions) {
  // Blocks are layers 1-2, 3-4, ... The phase at step 60 changes the layout but freezes nothing more.
  TrainingPlan recorded;
  recorded.num_steps = 100;
  recorded.phases = {recorded_phase(0, 0), recorded_phase(41, 3), recorded_phase(60, 3), recorded_phase(80, 5)};
  EXPECT_THAT(
      recorded_forecast(recorded, examples::chain_model(4), 50),
      ElementsAre(FreezeEvent{.from_step = 20, .frozen_blocks = 1}, FreezeEvent{.from_step = 40, .frozen_blocks = 2}));
}

TEST(RecordedForecast, OfARunThatFreezesNothingIsEmpty) {
  TrainingPlan recorded;
  recorded.num_steps = 100;
  recorded.phases = {recorded_phase(0, 0), recorded_phase(50, 0)};
  EXPECT_THAT(recorded_forecast(recorded, examples::chain_model(4), 1000), IsEmpty());
}

}  // namespace
}  // namespace frostpipe
