#pragma once
#include <string>
#include <vector>

#include "profiles/profile.h"

namespace frostpipe {

/// A profile and the file that it was read from.
struct NamedProfile {
  std::string name;
  Profile profile;
};

/// Joins measurements of one model on devices of different types into one profile, for a cluster that mixes them. The
/// result is `quick` if one of them is, and has no forward_flops if theirs differ; all other fields are the first
/// profile's. Requires at least one profile. Throws InvalidInput that names the file if a profile has another model or
/// other dtypes, or measures a device type that an earlier one has measured.
Profile join_profiles(std::vector<NamedProfile> profiles);

}  // namespace frostpipe
