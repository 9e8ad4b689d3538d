// Oracle: times by hand.
#include "base/link_queue.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

TEST(LinkQueue, AMessageWaitsForTheOneBeforeItAndOccupiesTheLinkForItsBytes) {
  LinkQueue link;
  EXPECT_EQ(link.free_at(), 0);
  EXPECT_EQ(link.carry(10, 5), 15);
  EXPECT_EQ(link.free_at(), 15);
  EXPECT_EQ(link.carry(link.free_at(), 7), 22) << "at once behind the first";
  EXPECT_EQ(link.carry(30, 1), 31) << "the link was idle in between";
}

}  // namespace
}  // namespace frostpipe
