#pragma once
#include <optional>
#include <string>

#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe {

/// Describes a profile: mean times of its layers by kind, its updates, its data, and the links. Without `cluster` it
/// says how to get the links.
std::string profile_text(const Profile& profile, const std::optional<Cluster>& cluster);

}  // namespace frostpipe
