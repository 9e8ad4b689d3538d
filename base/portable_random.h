#pragma once
#include <cmath>
#include <cstdint>
#include <random>

namespace frostpipe {

/// Random numbers that are the same with every standard library: the standard specifies the output of mt19937_64, but
/// not that of its distributions.
class PortableRandom {
 public:
  explicit PortableRandom(std::uint64_t seed) : bits_(seed) {}
  /// Returns one of 0, ..., end - 1.
  int below(int end) { return static_cast<int>(bits_() % static_cast<std::uint64_t>(end)); }
  /// Returns a number uniform in [0, 1).
  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }

 private:
  std::mt19937_64 bits_;
};

}  // namespace frostpipe
