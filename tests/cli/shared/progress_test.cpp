#include "cli/shared/progress.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

TEST(Progress, HasALineAtTheStartAndAtTheEndWhenPiped) {
  // Progress less than 2 s after the last line is left out.
  testing::internal::CaptureStderr();
  {
    ProgressDisplay display("train mine");
    display.show(0, "step 0");
    display.show(0.5, "step 5");
    display.show(1, "step 10");
    display.show(1, "step 10 again");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "train mine   0 %  step 0\ntrain mine 100 %  step 10\n");
}

TEST(Progress, KeepsToItsBounds) {
  testing::internal::CaptureStderr();
  ProgressDisplay("below").show(-1, "x");
  ProgressDisplay("above").show(7, "y");
  ProgressDisplay("nowhere").show(0.0 / 0.0, "z");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "below   0 %  x\nabove 100 %  y\nnowhere   0 %  z\n");
}

}  // namespace
}  // namespace frostpipe
