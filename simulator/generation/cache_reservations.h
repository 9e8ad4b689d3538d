#pragma once
#include <cstdint>
#include <vector>

#include "simulator/generation/request_paths.h"

namespace frostpipe {

/// What requests in flight are expected to need of the machines' caches, in tokens of a layer.
class CacheReservations {
 public:
  explicit CacheReservations(const GenerationCluster& cluster);
  void add(const std::vector<PathLeg>& path, std::int64_t tokens);
  void remove(const std::vector<PathLeg>& path, std::int64_t tokens) { add(path, -tokens); }
  /// If the request used all layers of the machine, at most `part` of its cache would be reserved.
  bool has_room(int machine, std::int64_t tokens, double part) const;
  /// Of the layer for which it is the most: the part of the cache of all machines that hold the layer.
  double fullest_layer() const;

 private:
  const GenerationCluster& cluster_;
  std::vector<std::int64_t> reserved_;  // by machine, of all its layers together
};

}  // namespace frostpipe
