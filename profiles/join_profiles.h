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

/// Measurements of one model on devices of different types as one profile, for a cluster that mixes them; what is said
/// beside them is the first's. Requires at least one. Throws InvalidInput, with the file's name, where a profile is of
/// another model, of another type of numbers, or measures a device type that one before it has measured.
Profile join_profiles(std::vector<NamedProfile> profiles);

}  // namespace frostpipe
