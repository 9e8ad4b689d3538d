#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/plan_kind.h"
#include "profiles/cluster.h"
#include "profiles/profile.h"

// A plan names the files that it was made from (Provenance); these functions find and check them.

namespace CLI {
class App;
}

namespace frostpipe {

/// Files from the command line that replace those a plan names. An empty name keeps the plan's file.
struct SourceOverrides {
  std::string profile;
  std::string cluster;
};

/// Adds --profile and --cluster, in place of the files that a plan names.
void add_source_options(CLI::App& command, SourceOverrides& sources);

/// Throws UsageError if the file is a net's executed_plan.json, which no command takes: `frostpipe nets` takes plans of
/// one iteration.
void refuse_plan_of_net_run(std::string_view json, const std::string& path);

/// Throws UsageError that names the commands for it if a file is a plan of another kind. Refuses as
/// refuse_plan_of_net_run does. Accepts files that are no plans: reading them will say what is wrong.
void require_kind(PlanKind kind, std::string_view json, const std::string& path);

TrainingPlan load_plan(const std::string& plan_path);

/// Reads a plan and puts the schedule of a CSV file into its phases; an empty path leaves the plan as it is.
TrainingPlan load_plan_by_file(const std::string& plan_path, const std::string& schedule_file);

/// Does the same if the plan's file has been read.
TrainingPlan plan_by_file(std::string_view plan_json, const std::string& plan_path, const std::string& schedule_file);

/// Reads the profile that the plan was made from, or the override. Checks that the file is still the one that the plan
/// was made from (an override may be any), that plan and profile describe the same model, and that both mean the same
/// type of frozen layers. Throws InvalidInput.
Profile load_profile_of(const TrainingPlan& plan, const std::string& plan_path, const SourceOverrides& overrides);

/// Reads the cluster in the same way. Its number of devices must be the plan's world size.
Cluster load_cluster_of(const TrainingPlan& plan, const std::string& plan_path, const SourceOverrides& overrides);

/// Throws InvalidInput that names the profile's file if a phase's schedule splits the backward pass and the profile has
/// no times of I and W.
void require_split_backward(const std::vector<Phase>& phases, const Profile& profile, const TrainingPlan& plan,
                            const std::string& plan_path, const SourceOverrides& overrides);

/// Returns the path of `file` in `path` if that is a folder, such as that of a run; else `path`.
std::string file_in(const std::string& path, const char* file);

}  // namespace frostpipe
