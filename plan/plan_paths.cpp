#include "plan/plan_paths.h"

namespace frostpipe {

namespace fs = std::filesystem;

fs::path path_in_plan(const std::string& path, const std::string& plan_path) {
  return (fs::path(plan_path).parent_path() / path).lexically_normal();
}

std::string path_for_plan(const fs::path& path, const std::string& plan_path) {
  if (path.empty() || plan_path.empty()) return "";
  const fs::path folder = fs::absolute(plan_path).parent_path();
  std::error_code error;
  const fs::path relative = fs::relative(fs::absolute(path), folder, error);
  return error || relative.empty() ? fs::absolute(path).lexically_normal().string() : relative.string();
}

Provenance provenance_for(Provenance provenance, const std::string& from, const std::string& to) {
  for (std::string* const path : {&provenance.model_path, &provenance.profile_path, &provenance.cluster_path})
    if (!path->empty()) *path = path_for_plan(path_in_plan(*path, from), to);
  return provenance;
}

}  // namespace frostpipe
