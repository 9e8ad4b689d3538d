#include "base/range_maximum.h"

#include <gtest/gtest.h>

#include <random>

namespace frostpipe {
namespace {

// Oracle: the largest of the range, looked for.
TEST(RangeMaximum, IsTheLargestOfEveryRange) {
  std::mt19937 numbers(1);
  for (const int size : {1, 2, 3, 8, 37}) {
    std::vector<std::int64_t> values(size);
    for (std::int64_t& value : values) value = static_cast<std::int64_t>(numbers() % 100) - 50;
    const RangeMaximum maximum(values);
    for (int begin = 0; begin < size; ++begin)
      for (int end = begin + 1; end <= size; ++end)
        EXPECT_EQ(maximum.of(begin, end), *std::max_element(values.begin() + begin, values.begin() + end))
            << begin << " to " << end << " of " << size;
  }
}

}  // namespace
}  // namespace frostpipe
