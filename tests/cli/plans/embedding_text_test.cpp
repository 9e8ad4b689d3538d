#include "cli/plans/embedding_text.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

TEST(EmbeddingWhatIf, SaysWhatItWouldBring) {
  const WhatIf what_if = embedding_what_if(
      "static_pipeline", {.parameter_share = 0.4, .baseline_iteration_ns = 20'000'000, .iteration_ns = 15'000'000});
  EXPECT_EQ(what_if.name, "freezing the embedding alone, static_pipeline");
  EXPECT_EQ(what_if.iteration_ns, 15'000'000);
  EXPECT_EQ(what_if.baseline_iteration_ns, 20'000'000);
  EXPECT_EQ(what_if.sentence,
            "The embedding holds 40 % of the parameters; freezing it and nothing else would take an iteration of the "
            "best static pipeline from 20.0 ms to 15.0 ms (-25 %).");
}

}  // namespace
}  // namespace frostpipe
