#include "serving/server/worker/batch_buffer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/error.h"

namespace frostpipe {
namespace {

const BatchShape kShape{
    .max_requests = 3, .max_tokens = 5, .pixels = 7, .heads = 2, .activation_bytes = 10, .answer_size = 2};

Descriptor another(const BatchBuffer& buffer) { return Descriptor(dup(buffer.descriptor())); }

TEST(BatchBuffer, HasRoomForEachPartOfTheLargestBatch) {
  BatchBuffer buffer = BatchBuffer::make(kShape);
  EXPECT_EQ(buffer.tokens().size(), 3 * 5);
  EXPECT_EQ(buffer.pixels().size(), 3 * 7);
  EXPECT_EQ(buffer.activation(0).size(), 3 * 5 * 10);
  EXPECT_EQ(buffer.activation(1).size(), 3 * 5 * 10);
  EXPECT_EQ(buffer.answers().size(), 3 * 2 * 2);
}

TEST(BatchBuffer, TwoProcessesShareItAndItsPartsDoNotOverlap) {
  BatchBuffer ours = BatchBuffer::make(kShape), theirs = BatchBuffer::open(another(ours), kShape);
  std::iota(ours.tokens().begin(), ours.tokens().end(), 1);
  std::iota(ours.pixels().begin(), ours.pixels().end(), 100.0f);
  std::ranges::fill(theirs.activation(0), std::byte{42});
  std::ranges::fill(theirs.activation(1), std::byte{43});
  std::iota(theirs.answers().begin(), theirs.answers().end(), -3.0);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(theirs.tokens()[i], 1 + i);
  for (int i = 0; i < 21; ++i) EXPECT_EQ(theirs.pixels()[i], 100.0f + i);
  EXPECT_TRUE(std::ranges::all_of(ours.activation(0), [](std::byte byte) { return byte == std::byte{42}; }));
  EXPECT_TRUE(std::ranges::all_of(ours.activation(1), [](std::byte byte) { return byte == std::byte{43}; }));
  for (int i = 0; i < 12; ++i) EXPECT_EQ(ours.answers()[i], -3.0 + i);
}

TEST(BatchBuffer, MemoryThatIsTooSmallIsRefused) {
  const BatchBuffer buffer = BatchBuffer::make(kShape);
  BatchShape larger = kShape;
  larger.max_tokens *= 1000;
  EXPECT_THROW(BatchBuffer::open(another(buffer), larger), RuntimeFailure);
}

}  // namespace
}  // namespace frostpipe
