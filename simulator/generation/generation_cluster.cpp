#include "simulator/generation/generation_cluster.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "profiles/error.h"

namespace frostpipe {

Nanoseconds BatchTimes::at(int size) const {
  FROSTPIPE_CHECK(!points.empty(), "a batch was measured");
  const auto after =
      std::ranges::lower_bound(points, size, {}, [](const std::pair<int, Nanoseconds>& point) { return point.first; });
  if (after == points.begin()) return after->second;
  const auto [size0, time0] = *(after - 1);
  if (after == points.end()) return std::llround(static_cast<double>(time0) * size / size0);
  const double part = static_cast<double>(size - size0) / (after->first - size0);
  return time0 + std::llround(part * static_cast<double>(after->second - time0));
}

BatchTimes without_falls(std::vector<std::pair<int, Nanoseconds>> measured) {
  struct Level {
    double mean = 0;
    int num_points = 0;
  };
  std::vector<Level> levels;
  for (const auto& [size, time_ns] : measured) {
    Level level{.mean = static_cast<double>(time_ns), .num_points = 1};
    for (; !levels.empty() && levels.back().mean > level.mean; levels.pop_back()) {
      const Level& before = levels.back();
      const int both = before.num_points + level.num_points;
      level = {.mean = (before.mean * before.num_points + level.mean * level.num_points) / both, .num_points = both};
    }
    levels.push_back(level);
  }
  auto point = measured.begin();
  for (const Level& level : levels)
    for (int i = 0; i < level.num_points; ++i) (point++)->second = std::llround(level.mean);
  return {std::move(measured)};
}

std::vector<std::vector<int>> successors(const GenerationCluster& cluster) {
  std::vector<std::vector<int>> next(cluster.machines.size() + 1);
  for (int from = 0; from <= cluster.coordinator(); ++from) {
    const int layer = from == cluster.coordinator() ? 0 : cluster.machines[from].end_layer;
    if (layer == cluster.num_layers) next[from] = {cluster.coordinator()};
    for (int to = 0; to < cluster.coordinator(); ++to) {
      const GenerationMachine& machine = cluster.machines[to];
      const bool holds_layer = machine.first_layer <= layer && layer < machine.end_layer;
      if (holds_layer && (cluster.joins_in_middles || machine.first_layer == layer)) next[from].push_back(to);
    }
  }
  return next;
}

bool has_way(const GenerationCluster& cluster) {
  const auto next = successors(cluster);
  std::vector<char> is_reached(next.size());
  std::vector<int> reached = {cluster.coordinator()};
  while (!reached.empty()) {
    const int from = reached.back();
    reached.pop_back();
    for (const int to : next[from]) {
      if (to == cluster.coordinator()) return true;
      if (!std::exchange(is_reached[to], 1)) reached.push_back(to);
    }
  }
  return false;
}

}  // namespace frostpipe
