#pragma once
#include <cstdint>

namespace frostpipe {

/// The splitmix64 mixing function (Steele, Lea, Flood 2014): a bijection that maps neighbouring values far apart. It is
/// the same on all platforms, unlike the distributions of the standard library.
constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace frostpipe
