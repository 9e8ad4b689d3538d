#pragma once
// Implementation header: JSON keys of Link, shared by cluster.cpp and profile.cpp. Include it from .cpp files only.
#include "profiles/cluster.h"
#include "profiles/json_reader.h"

namespace frostpipe {

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Link>& link) {
  archive("latency_ns", link.latency_ns, json::kDuration);
  archive("bandwidth_bytes_per_second", link.bandwidth_bytes_per_second, json::at_least(0));
}

}  // namespace frostpipe
