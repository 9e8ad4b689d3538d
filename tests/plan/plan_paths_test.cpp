#include "plan/plan_paths.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

TEST(PathsInPlans, CountFromThePlansFolder) {
  EXPECT_EQ(path_in_plan("../profile.json", "plans/plan.json"), "profile.json");
  EXPECT_EQ(path_in_plan("profile.json", "plan.json"), "profile.json");
  EXPECT_EQ(path_in_plan("/data/profile.json", "plans/plan.json"), "/data/profile.json");
  EXPECT_EQ(path_for_plan("/data/profile.json", "/data/plans/plan.json"), "../profile.json");
  EXPECT_EQ(path_for_plan("profile.json", "plan.json"), "profile.json");
}

TEST(PathsInPlans, NameTheSameFilesFromAnotherFolder) {
  const Provenance found =
      provenance_for({.model_path = "../model", .profile_path = "profile.json", .cluster_path = "", .version = "1"},
                     "plans/plan.json", "runs/mine/executed_plan.json");
  EXPECT_EQ(found.model_path, "../../model");
  EXPECT_EQ(found.profile_path, "../../plans/profile.json");
  EXPECT_EQ(found.cluster_path, "") << "it names none";
  EXPECT_EQ(found.version, "1");
}

}  // namespace
}  // namespace frostpipe
