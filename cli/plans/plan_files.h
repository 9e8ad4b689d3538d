#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

// A plan names the files that it was made from (Provenance); these functions find and check them.

namespace frostpipe {

/// Files given on the command line in place of those that a plan names; empty = as the plan says.
struct SourceOverrides {
  std::string profile;
  std::string cluster;
};

TrainingPlan load_plan(const std::string& plan_path);

/// The same, with the schedule of a CSV file in its phases; an empty path is none.
TrainingPlan load_plan_by_file(const std::string& plan_path, const std::string& schedule_file);

/// The same where the plan's file has been read.
TrainingPlan plan_by_file(std::string_view plan_json, const std::string& plan_path, const std::string& schedule_file);

/// The profile that the plan was made from, or the override. Checks that the file is still the one that the plan was
/// made from (an override may be any), that plan and profile describe the same model, and that both mean the same type
/// of frozen layers. Throws InvalidInput.
Profile load_profile_of(const TrainingPlan& plan, const std::string& plan_path, const SourceOverrides& overrides);

/// The same for the cluster; its number of devices must be the plan's world size.
Cluster load_cluster_of(const TrainingPlan& plan, const std::string& plan_path, const SourceOverrides& overrides);

/// Throws InvalidInput that names the profile's file where a phase's schedule splits the backward and nothing in the
/// profile, as load_profile_of has found it, has times of I and W.
void require_split_backward(const std::vector<Phase>& phases, const Profile& profile, const TrainingPlan& plan,
                            const std::string& plan_path, const SourceOverrides& overrides);

/// A path that a plan names: relative ones count from the plan's folder.
std::filesystem::path path_in_plan(const std::string& path, const std::string& plan_path);

/// How a plan at `plan_path` should name `path`: relative to its own folder where possible.
std::string path_for_plan(const std::filesystem::path& path, const std::string& plan_path);

}  // namespace frostpipe
