#pragma once
#include <cstdint>

namespace frostpipe {

/// splitmix64 (Steele, Lea, Flood 2014): one-to-one, and neighbouring values end far apart. The standard fixes what its
/// engines yield, but not what its distributions make of it; this is the same everywhere.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace frostpipe
