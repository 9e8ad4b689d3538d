#pragma once
#include <optional>
#include <string>

#include "profiles/cluster.h"
#include "profiles/profile.h"

namespace frostpipe {

/// A profile for people: mean times of its layers by kind, its updates, its data, the links. Without `cluster` nothing
/// was kept of the links.
std::string profile_text(const Profile& profile, const std::optional<Cluster>& cluster);

}  // namespace frostpipe
