#pragma once
// Implementation header: JSON keys of Link. Include it from .cpp files only.
#include "base/json_reader.h"
#include "profiles/cluster.h"

namespace frostpipe {

template <class Archive>
void fields(Archive& archive, json::Value<Archive, BandwidthSpread>& spread) {
  archive("low_bytes_per_second", spread.low_bytes_per_second, json::at_least(0));
  archive("high_bytes_per_second", spread.high_bytes_per_second, json::at_least(0));
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Link>& link) {
  archive("latency_ns", link.latency_ns, json::kDuration);
  archive("bandwidth_bytes_per_second", link.bandwidth_bytes_per_second, json::at_least(0));
  archive("measured_bandwidth", link.measured_bandwidth);
}

}  // namespace frostpipe
