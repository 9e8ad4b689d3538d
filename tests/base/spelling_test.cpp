#include "base/spelling.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

const std::vector<std::string> kKnown{"train", "trace", "plan", "profile", "evaluate"};

TEST(NearestSpelling, IsTheNearestWordThatIsNearEnough) {
  EXPECT_EQ(nearest_spelling("tran", kKnown), "train");
  EXPECT_EQ(nearest_spelling("evalaute", kKnown), "evaluate");  // two letters are exchanged: distance 2
  EXPECT_EQ(nearest_spelling("plane", kKnown), "plan");
  EXPECT_EQ(nearest_spelling("fly", kKnown), std::nullopt);
  EXPECT_EQ(nearest_spelling("train", {}), std::nullopt);
}

TEST(NearestSpelling, IsWhatOneWordAloneBeginsWith) {
  EXPECT_EQ(nearest_spelling("eval", kKnown), "evaluate");
  EXPECT_EQ(nearest_spelling("pr", kKnown), "profile");
  EXPECT_EQ(nearest_spelling("p", kKnown), std::nullopt);  // both plan and profile begin with it
}

TEST(EqualIgnoringCase, ComparesWholeTexts) {
  EXPECT_TRUE(equal_ignoring_case("Llama-3-8B", "llama-3-8b"));
  EXPECT_FALSE(equal_ignoring_case("llama-3-8b", "llama-3-8"));
  EXPECT_FALSE(equal_ignoring_case("llama-3-8", "llama-3.8"));
}

}  // namespace
}  // namespace frostpipe
