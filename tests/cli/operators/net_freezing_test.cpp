#include "cli/operators/net_freezing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/shared/usage_error.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Property;
using ::testing::Throws;

TEST(NetFreezePolicy, IsThatOfThePlanOrOfFixedEpochs) {
  EXPECT_EQ(net_freeze_policy("plan").rule, FreezePolicy::Rule::plan);
  EXPECT_THAT(net_freeze_policy("fixed:5,5,9").fixed_layers, ElementsAre(5, 5, 9));
}

TEST(NetFreezePolicy, RefusesNumbersThatFallAndRulesThatDecideDuringTheRun) {
  for (const char* const text : {"fixed:5,3", "fixed:", "cap", "never"})
    EXPECT_THAT([&] { net_freeze_policy(text); },
                Throws<UsageError>(Property(&UsageError::what, HasSubstr("none less than the one before"))))
        << text;
}

TEST(FreezesThatNeverHappen, AreThoseAfterTheLastEpoch) {
  EXPECT_EQ(freezes_that_never_happen("plan", 1), "");
  EXPECT_EQ(freezes_that_never_happen("fixed:2,4", 3), "");
  EXPECT_EQ(freezes_that_never_happen("fixed:2,2", 2), "") << "they are frozen already";
  EXPECT_EQ(freezes_that_never_happen("fixed:2,4,6,8", 2),
            "--freeze fixed:2,4,6,8: the run ends after 2 epochs, so that it never freezes 4, 6, 8 layers");
  EXPECT_EQ(freezes_that_never_happen("fixed:2", 1),
            "--freeze fixed:2: the run ends after 1 epoch, so that it never freezes 2 layers");
}

}  // namespace
}  // namespace frostpipe
