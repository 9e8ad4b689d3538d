#include "profiles/device_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/error.h"

namespace frostpipe {
namespace {

constexpr std::string_view kTimes = " x ";

bool divides_every_node(const Cluster& cluster, int threads) {
  std::map<int, int> devices;  // by node
  for (const Device& device : cluster.devices) ++devices[device.node];
  return std::all_of(devices.begin(), devices.end(), [&](const auto& node) { return node.second % threads == 0; });
}

/// Requires that `threads` divides the devices of every node.
bool has_groups_of_one_type(const Cluster& cluster, int threads) {
  const std::size_t size = static_cast<std::size_t>(threads);
  for (std::size_t i = 0; i < cluster.devices.size(); ++i) {
    if (cluster.devices[i].type != cluster.devices[i - i % size].type) return false;
  }
  return true;
}

}  // namespace

std::string device_type_with_threads(std::string_view type, int threads) {
  return threads == 1 ? std::string(type) : fmt::format("{}{}{}", type, kTimes, threads);
}

int threads_of(std::string_view device_type) {
  const std::size_t place = device_type.rfind(kTimes);
  if (place == std::string_view::npos) return 1;
  const std::string_view digits = device_type.substr(place + kTimes.size());
  int threads = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), threads);
  return error == std::errc() && end == digits.data() + digits.size() && threads > 0 && threads <= kMaxThreads ? threads
                                                                                                               : 1;
}

Cluster with_threads_per_rank(const Cluster& cluster, int threads) {
  if (threads == 1) return cluster;
  if (!divides_every_node(cluster, threads))
    throw InvalidInput(cluster.name,
                       "must have on every node a number of devices that is a multiple of the threads per rank",
                       fmt::format("{} threads per rank, {} devices", threads, cluster.devices.size()));
  Cluster result = cluster;
  result.devices.clear();
  for (std::size_t first = 0; first < cluster.devices.size(); first += static_cast<std::size_t>(threads)) {
    Device joined = cluster.devices[first];
    for (std::size_t i = first + 1; i < first + static_cast<std::size_t>(threads); ++i) {
      const Device& device = cluster.devices[i];
      if (device.type != cluster.devices[first].type)
        throw InvalidInput(fmt::format("{}: devices[{}].type", cluster.name, i),
                           fmt::format("must be {}, like the first device of its rank", cluster.devices[first].type),
                           device.type);
      if (joined.memory_limit_bytes && device.memory_limit_bytes) {
        *joined.memory_limit_bytes += *device.memory_limit_bytes;
      } else {
        joined.memory_limit_bytes = std::nullopt;
      }
    }
    joined.type = device_type_with_threads(joined.type, threads);
    result.devices.push_back(std::move(joined));
  }
  return result;
}

std::vector<int> measured_threads(const Profile& profile, const Cluster& cluster) {
  std::set<std::string> measured, wanted;
  std::set<int> candidates{1};
  for (const Measurement& one : profile.measurements) {
    if (measured.insert(one.key.device_type).second) candidates.insert(threads_of(one.key.device_type));
  }
  for (const Device& device : cluster.devices) wanted.insert(device.type);
  std::vector<int> result;
  for (const int threads : candidates) {
    const bool is_measured = std::all_of(wanted.begin(), wanted.end(), [&](const std::string& type) {
      return measured.contains(device_type_with_threads(type, threads));
    });
    if (is_measured && divides_every_node(cluster, threads) && has_groups_of_one_type(cluster, threads))
      result.push_back(threads);
  }
  return result;
}

}  // namespace frostpipe
