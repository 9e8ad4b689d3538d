#include "profiles/device_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace frostpipe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Cluster four_devices() {
  Cluster cluster{.name = "two nodes"};
  for (int rank = 0; rank < 4; ++rank)
    cluster.devices.push_back({.type = "cpu", .node = rank / 2, .memory_limit_bytes = Bytes{100} + rank});
  return cluster;
}

TEST(DeviceType, NamesItsThreads) {
  EXPECT_EQ(device_type_with_threads("cpu", 1), "cpu");
  EXPECT_EQ(device_type_with_threads("cpu", 8), "cpu x 8");
  EXPECT_EQ(threads_of("cpu"), 1);
  EXPECT_EQ(threads_of("cpu x 8"), 8);
  EXPECT_EQ(threads_of("GTX x "), 1);  // other types may have any name
  EXPECT_EQ(threads_of("a x b"), 1);
  EXPECT_EQ(threads_of("a x -2"), 1);
  EXPECT_EQ(threads_of("a x 99999999999"), 1);
  EXPECT_EQ(threads_of("a x 1024"), 1024);
  EXPECT_EQ(threads_of("a x 1025"), 1);  // exceeds kMaxThreads
}

TEST(WithThreadsPerRank, NeighbouringDevicesOfANodeAreOneWithTheirMemoryTogether) {
  const Cluster cluster = with_threads_per_rank(four_devices(), 2);
  EXPECT_THAT(cluster.devices, ElementsAre(Device{.type = "cpu x 2", .node = 0, .memory_limit_bytes = Bytes{201}},
                                           Device{.type = "cpu x 2", .node = 1, .memory_limit_bytes = Bytes{205}}));
  EXPECT_EQ(with_threads_per_rank(four_devices(), 1), four_devices());
  Cluster without_limit = four_devices();
  without_limit.devices[1].memory_limit_bytes = std::nullopt;
  EXPECT_EQ(with_threads_per_rank(without_limit, 2).devices[0].memory_limit_bytes, std::nullopt);
}

TEST(WithThreadsPerRank, GroupsStayWithinANodeAndAType) {
  EXPECT_THAT([] { with_threads_per_rank(four_devices(), 4); }, ThrowsMessage<InvalidInput>(HasSubstr("every node")));
  Cluster mixed = four_devices();
  mixed.devices[3].type = "gpu";
  EXPECT_THAT([&] { with_threads_per_rank(mixed, 2); }, ThrowsMessage<InvalidInput>(HasSubstr("devices[3].type")));
}

TEST(MeasuredThreads, AreThoseOfEveryDeviceThatDivideTheNodes) {
  Profile profile;
  for (const char* type : {"cpu", "cpu x 2", "cpu x 3"})
    profile.measurements.push_back({.key = {.device_type = type}, .cost = {}});
  EXPECT_THAT(measured_threads(profile, four_devices()), ElementsAre(1, 2));
  profile.measurements.erase(profile.measurements.begin());
  EXPECT_THAT(measured_threads(profile, four_devices()), ElementsAre(2));
  Cluster mixed = four_devices();
  mixed.devices[3].type = "gpu";
  EXPECT_THAT(measured_threads(profile, mixed), ElementsAre());
}

TEST(MeasuredThreads, AreThoseThatJoinDevicesOfOneType) {
  Profile profile;
  for (const char* type : {"cpu", "cpu x 2", "gpu", "gpu x 2"})
    profile.measurements.push_back({.key = {.device_type = type}, .cost = {}});
  Cluster cluster = four_devices();
  cluster.devices[2].type = cluster.devices[3].type = "gpu";
  EXPECT_THAT(measured_threads(profile, cluster), ElementsAre(1, 2));
  std::swap(cluster.devices[1].type, cluster.devices[2].type);
  EXPECT_THAT(measured_threads(profile, cluster), ElementsAre(1));
}

}  // namespace
}  // namespace frostpipe
