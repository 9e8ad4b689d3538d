#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace frostpipe {

/// The maxima of all ranges of a fixed sequence, each found in constant time (a sparse table: the maxima of all ranges
/// whose length is a power of two). Construction takes O(n log n) time and memory.
class RangeMaximum {
 public:
  RangeMaximum() = default;
  explicit RangeMaximum(std::vector<std::int64_t> values) {
    const std::size_t n = values.size();
    of_length_.push_back(std::move(values));
    for (std::size_t half = 1; 2 * half <= n; half *= 2) {
      const std::vector<std::int64_t>& shorter = of_length_.back();
      std::vector<std::int64_t> maxima(n - 2 * half + 1);
      for (std::size_t i = 0; i < maxima.size(); ++i) maxima[i] = std::max(shorter[i], shorter[i + half]);
      of_length_.push_back(std::move(maxima));
    }
  }

  /// Returns the largest of the values [begin, end), of which there must be at least one.
  std::int64_t of(std::size_t begin, std::size_t end) const {
    const int power = std::bit_width(end - begin) - 1;
    const std::vector<std::int64_t>& maxima = of_length_[power];
    return std::max(maxima[begin], maxima[end - (std::size_t{1} << power)]);
  }

 private:
  std::vector<std::vector<std::int64_t>> of_length_;  // [i][j]: maximum of the 2^i values from j on
};

}  // namespace frostpipe
