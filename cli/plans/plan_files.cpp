#include "cli/plans/plan_files.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "cli/shared/usage_error.h"
#include "plan/plan_paths.h"
#include "plan/planned_work.h"
#include "plan/schedule_rows.h"
#include "planner/search/plan_options.h"
#include "profiles/device_type.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

struct Source {
  std::string path;
  std::string content;
};

/// Reads a file that a plan names, or its override. `what` is "profile" or "cluster".
Source load_source(std::string_view what, const std::string& named, const std::string& expected_fingerprint,
                   const std::string& override_path, const std::string& plan_path) {
  if (!override_path.empty()) return {override_path, read_named_file(override_path)};
  if (named.empty()) {
    throw InvalidInput(fmt::format("{}: provenance.{}_path: names no file; give --{} FILE", plan_path, what, what));
  }
  const std::string path = path_in_plan(named, plan_path).string();
  std::string content;
  try {
    content = read_text_file(path);
  } catch (const InvalidInput& error) {
    throw InvalidInput(fmt::format("{} (named by provenance.{}_path of {}; --{} FILE names another)", error.what(),
                                   what, plan_path, what));
  }
  const std::string actual = fingerprint(content);
  if (!expected_fingerprint.empty() && actual != expected_fingerprint) {
    throw InvalidInput(
        fmt::format("{}: provenance.{}_fingerprint: must be that of {}, {}, is {}: the {} has changed since the plan "
                    "was made; make the plan again, or accept the {} as it is with --{} {}",
                    plan_path, what, path, actual, expected_fingerprint, what, what, what, path));
  }
  return {path, content};
}

}  // namespace

void add_source_options(CLI::App& command, SourceOverrides& sources) {
  command.add_option("--profile", sources.profile, "Profile to use instead of the one that the plan names")
      ->type_name("FILE");
  command.add_option("--cluster", sources.cluster, "Cluster to use instead of the one that the plan names")
      ->type_name("FILE");
}

void refuse_plan_of_net_run(std::string_view json, const std::string& path) {
  bool is_of_net_run = false;
  try {
    if (kind_of_plan(json, path) != PlanKind::training) return;
    const TrainingPlan plan = plan_from_json(json, path);
    is_of_net_run = !plan.phases.empty() && !plan.phases.front().operator_plan.empty();
  } catch (const InvalidInput&) {  // the caller reads the file again and reports the error
  }
  if (is_of_net_run)
    throw UsageError(
        fmt::format("{}: is the plan that a net's run has executed; name the one that `frostpipe nets "
                    "plan` wrote, or the run's summary.json for `frostpipe report`",
                    path));
}

void require_kind(PlanKind kind, std::string_view json, const std::string& path) {
  refuse_plan_of_net_run(json, path);
  PlanKind found = kind;
  try {
    found = kind_of_plan(json, path);
  } catch (const InvalidInput&) {  // the caller reads the file again and reports the error
  }
  if (found == kind) return;
  constexpr std::string_view kCommands[] = {"`frostpipe simulate` and `frostpipe train`",
                                            "`frostpipe serving simulate`, `serving run` and `serving inspect`",
                                            "`frostpipe nets simulate` and `frostpipe nets train`"};
  throw UsageError(fmt::format("{}: is a plan of {}, which {} take", path, to_string(found),
                               kCommands[static_cast<std::size_t>(found)]));
}

TrainingPlan load_plan(const std::string& plan_path) { return load_plan_by_file(plan_path, ""); }

TrainingPlan load_plan_by_file(const std::string& plan_path, const std::string& schedule_file) {
  return plan_by_file(read_named_file(plan_path), plan_path, schedule_file);
}

TrainingPlan plan_by_file(std::string_view plan_json, const std::string& plan_path, const std::string& schedule_file) {
  require_kind(PlanKind::training, plan_json, plan_path);
  TrainingPlan plan = plan_from_json(plan_json, plan_path);
  if (schedule_file.empty()) return plan;
  return with_schedule_of_file(std::move(plan), read_named_file(schedule_file), schedule_file, plan_path);
}

Profile load_profile_of(const TrainingPlan& plan, const std::string& plan_path, const SourceOverrides& overrides) {
  const Source source = load_source("profile", plan.provenance.profile_path, plan.provenance.profile_fingerprint,
                                    overrides.profile, plan_path);
  Profile profile = profile_from_json(source.content, source.path);
  require_same_model(plan, profile.model, plan_path);
  require_planned_frozen_dtype(plan, profile, source.path, plan_path);
  validate(plan, profile.model, plan_path);
  return profile;
}

Cluster load_cluster_of(const TrainingPlan& plan, const std::string& plan_path, const SourceOverrides& overrides) {
  const Source source = load_source("cluster", plan.provenance.cluster_path, plan.provenance.cluster_fingerprint,
                                    overrides.cluster, plan_path);
  Cluster cluster = cluster_from_json(source.content, source.path);
  const int threads = plan.threads_per_rank / threads_of(cluster.devices.front().type);
  if (static_cast<int>(cluster.devices.size()) != plan.world_size * std::max(1, threads)) {
    throw InvalidInput(source.path + ": devices",
                       threads > 1 ? fmt::format("must be {}, for the {} ranks of {} with {} threads each",
                                                 plan.world_size * threads, plan.world_size, plan_path, threads)
                                   : fmt::format("must be {}, the world size of {}", plan.world_size, plan_path),
                       std::to_string(cluster.devices.size()));
  }
  if (threads > 1) cluster = with_threads_per_rank(cluster, threads);
  return cluster;
}

void require_split_backward(const std::vector<Phase>& phases, const Profile& profile, const TrainingPlan& plan,
                            const std::string& plan_path, const SourceOverrides& overrides) {
  try {
    require_split_backward(phases, profile);
  } catch (const InvalidInput& error) {
    const std::string file =
        overrides.profile.empty() ? path_in_plan(plan.provenance.profile_path, plan_path).string() : overrides.profile;
    throw InvalidInput(fmt::format("{}: {}", file, error.what()));
  }
}

std::string file_in(const std::string& path, const char* file) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? (fs::path(path) / file).string() : path;
}

}  // namespace frostpipe
