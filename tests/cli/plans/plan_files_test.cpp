#include "cli/plans/plan_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/one_rank_plan.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;

/// plans/plan.json names profile.json and cluster.json in the folder above it.
class PlanFiles : public test::ScratchFolderTest {
 protected:
  PlanFiles() {
    const Profile profile = test::one_block_profile();
    file("profile.json", to_json(profile));
    file("cluster.json", to_json(test::free_cluster(1)));
    plan.provenance = {.model_name = profile.model.name,
                       .model_fingerprint = fingerprint(profile.model),
                       .profile_path = "../profile.json",
                       .profile_fingerprint = fingerprint(to_json(profile)),
                       .cluster_path = "../cluster.json",
                       .cluster_fingerprint = fingerprint(to_json(test::free_cluster(1))),
                       .version = "0.1.0"};
    path = file("plans/plan.json", to_json(plan)).string();
  }
  TrainingPlan plan = test::one_rank_plan();
  std::string path;
};

TEST_F(PlanFiles, AreFoundFromThePlansFolder) {
  EXPECT_EQ(load_plan(path), plan);
  EXPECT_EQ(load_profile_of(plan, path, {}), test::one_block_profile());
  EXPECT_EQ(load_cluster_of(plan, path, {}), test::free_cluster(1));
}

TEST_F(PlanFiles, ThatHaveChangedAreRefusedUnlessTheyAreGiven) {
  Cluster slower = test::free_cluster(1);
  slower.intra_node.point_to_point.latency_ns = 5;
  const std::string changed = file("cluster.json", to_json(slower)).string();
  EXPECT_THAT(message_of([&] { load_cluster_of(plan, path, {}); }),
              HasSubstr("provenance.cluster_fingerprint: must be that of"));
  EXPECT_EQ(load_cluster_of(plan, path, {.profile = "", .cluster = changed}), slower);
}

TEST_F(PlanFiles, ThatAreNotThereAreNamed) {
  std::filesystem::remove(folder_ / "profile.json");
  EXPECT_THAT(message_of([&] { load_profile_of(plan, path, {}); }),
              HasSubstr("(named by provenance.profile_path of " + path + "; --profile FILE names another)"));
  plan.provenance.profile_path.clear();
  EXPECT_THAT(message_of([&] { load_profile_of(plan, path, {}); }),
              HasSubstr("provenance.profile_path: names no file; give --profile FILE"));
}

TEST_F(PlanFiles, OfAnotherModelAreRefused) {
  const std::string other = file("other.json", to_json(test::synthetic_profile(3, {{}}))).string();
  EXPECT_NE(message_of([&] { load_profile_of(plan, path, {.profile = other, .cluster = ""}); }), "no InvalidInput");
}

TEST_F(PlanFiles, NeedTimesOfASplitBackwardWhereAScheduleHasOne) {
  const auto error_with = [&](const SourceOverrides& overrides) {
    return message_of([&] { require_split_backward(plan.phases, test::one_block_profile(), plan, path, overrides); });
  };
  EXPECT_EQ(error_with({}), "no InvalidInput");
  plan.phases.front().schedule = "ZB-H1";
  const std::string what =
      ": profile of synthetic: must have measured I and W, which ZB-H1 has in place of B (profile again), is without "
      "them";
  EXPECT_THAT(error_with({}), HasSubstr("profile.json" + what));
  EXPECT_EQ(error_with({.profile = "old.json", .cluster = ""}), "old.json" + what);
}

TEST_F(PlanFiles, NeedADevicePerRank) {
  plan.world_size = 2;
  EXPECT_THAT(message_of([&] { load_cluster_of(plan, path, {}); }), HasSubstr("devices: must be 2, the world size of"));
  plan.threads_per_rank = 2;
  EXPECT_THAT(message_of([&] { load_cluster_of(plan, path, {}); }), HasSubstr("with 2 threads each"));
  // Two cores for one rank with two threads.
  plan.world_size = 1;
  const std::string two = file("two.json", to_json(test::free_cluster(2))).string();
  EXPECT_EQ(load_cluster_of(plan, path, {.profile = "", .cluster = two}).devices.size(), 1U);
}

}  // namespace
}  // namespace frostpipe
