#pragma once
#include <filesystem>
#include <string>

#include "plan/plan.h"

namespace frostpipe {

/// Resolves a path that a plan names: relative paths start at the plan's folder.
std::filesystem::path path_in_plan(const std::string& path, const std::string& plan_path);

/// Returns the path by which a plan at `plan_path` should name `path`: relative to its own folder if possible; "" if
/// `path` or `plan_path` is empty (there is no such file, or the plan is not written).
std::string path_for_plan(const std::filesystem::path& path, const std::string& plan_path);

/// Returns the provenance of a plan at `from` for a plan at `to`, which may be in another folder: its paths name the
/// same files.
Provenance provenance_for(Provenance provenance, const std::string& from, const std::string& to);

}  // namespace frostpipe
