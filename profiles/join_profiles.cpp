#include "profiles/join_profiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace frostpipe {
namespace {

std::set<std::string> device_types_of(const Profile& profile) {
  std::set<std::string> types;
  for (const Measurement& measurement : profile.measurements) types.insert(measurement.key.device_type);
  return types;
}

std::set<DType> types_of(const Profile& profile) {
  std::set<DType> types;
  for (const Measurement& measurement : profile.measurements) types.insert(measurement.key.dtype);
  return types;
}

void require_joinable(const NamedProfile& first, const NamedProfile& next) {
  if (next.profile.model != first.profile.model)
    throw InvalidInput(next.name + ": model",
                       fmt::format("must be that of {}, {}", first.name, first.profile.model.name),
                       next.profile.model.name);
  if (types_of(next.profile) != types_of(first.profile) || next.profile.frozen_dtype != first.profile.frozen_dtype)
    throw InvalidInput(fmt::format("{}: is measured in other dtypes than {}", next.name, first.name));
}

}  // namespace

Profile join_profiles(std::vector<NamedProfile> profiles) {
  Profile joined = profiles.front().profile;
  std::set<std::string> known = device_types_of(joined);
  for (std::size_t i = 1; i < profiles.size(); ++i) {
    require_joinable(profiles.front(), profiles[i]);
    const Profile& next = profiles[i].profile;
    for (const std::string& type : device_types_of(next)) {
      if (!known.insert(type).second)
        throw InvalidInput(profiles[i].name + ": measurements: device_type",
                           "must be one that the profiles before it have not measured", type);
    }
    joined.measurements.insert(joined.measurements.end(), next.measurements.begin(), next.measurements.end());
    joined.updates.insert(joined.updates.end(), next.updates.begin(), next.updates.end());
    joined.quick = joined.quick || next.quick;
    if (next.forward_flops != joined.forward_flops) joined.forward_flops.reset();
  }
  std::ranges::sort(joined.measurements, {}, &Measurement::key);
  return joined;
}

}  // namespace frostpipe
