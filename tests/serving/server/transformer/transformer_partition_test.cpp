// Oracle: each folder served alone, in one partition; LibTorch counts the functions.
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "serving/server/worker/partition_compute.h"
#include "tests/serving/server/transformer/heads.h"

namespace frostpipe {
namespace {

constexpr int kSharedLayers = 5;  // embedding and two blocks of 8 layers
const std::vector<std::int64_t> kLengths = {3, 7, 4};

struct Load {
  std::vector<std::string> folders;
  std::vector<int> layers;
};

BatchShape shape_of(Family family, int heads) {
  return {.max_requests = 3,
          .max_tokens = 12,
          .pixels = family == Family::vit ? 3 * 6 * 6 : 0,
          .heads = heads,
          .activation_bytes = 16 * sizeof(double),  // room for either dtype
          .answer_size = family == Family::gpt2 ? 3 : 2};
}

PartitionLoad partition_of(const Load& load, int partition, DType dtype) {
  return {.folders = load.folders,
          .shared_layers = load.folders.size() > 1 ? kSharedLayers : 0,
          .layers = load.layers,
          .partition = partition,
          .dtype = dtype};
}

/// The answers, [requests, heads, answer_size], of a fixed batch that goes through all partitions.
std::vector<double> answers_of(Family family, const Load& load, DType dtype = DType::kFloat32) {
  BatchBuffer buffer = BatchBuffer::make(shape_of(family, static_cast<int>(load.folders.size())));
  for (std::size_t i = 0; i < buffer.tokens().size(); ++i) buffer.tokens()[i] = static_cast<int>(1 + i * 7 % 39);
  for (std::size_t i = 0; i < buffer.pixels().size(); ++i)
    buffer.pixels()[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  BatchOrder order{.lengths = kLengths};
  if (family == Family::vit) order.lengths.assign(kLengths.size(), 10);
  for (int partition = 0; partition + 1 < static_cast<int>(load.layers.size()); ++partition)
    load_partition(partition_of(load, partition, dtype))->compute(order, buffer);
  return {buffer.answers().begin(), buffer.answers().end()};
}

class TransformerPartition : public test::HeadFoldersTest {
 protected:
  std::vector<std::string> write_heads(Family family) const {
    return {write_head("one", family, kSharedLayers, 2), write_head("two", family, kSharedLayers, 3),
            write_head("three", family, kSharedLayers, 4)};
  }
};

// Cuts before, at and after the end of the shared layers.
TEST_F(TransformerPartition, HeadsBehindSharedLayersAnswerAsEachFolderAlone) {
  const std::vector<std::vector<int>> cuts = {{0, 8}, {0, 3, 8}, {0, 5, 8}, {0, 6, 8}, {0, 2, 4, 5, 6, 7, 8}};
  for (const Family family : {Family::bert, Family::vit, Family::gpt2}) {
    SCOPED_TRACE(to_string(family));
    const std::vector<std::string> folders = write_heads(family);
    const auto size = static_cast<std::size_t>(shape_of(family, 1).answer_size);
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      std::vector<std::vector<double>> alone;
      for (const std::string& folder : folders) alone.push_back(answers_of(family, {{folder}, {0, 8}}, dtype));
      EXPECT_NE(alone[0], alone[1]);
      EXPECT_NE(alone[1], alone[2]);
      std::vector<double> expected;
      for (std::size_t request = 0; request < kLengths.size(); ++request)
        for (const std::vector<double>& answers : alone)
          expected.insert(expected.end(), &answers[request * size], &answers[request * size] + size);
      for (const auto& layers : cuts) EXPECT_EQ(answers_of(family, {folders, layers}, dtype), expected);
    }
  }
}

/// The numbers of gelu, tanh and norms that a partition computes.
std::int64_t num_functions(const Load& load, int partition) {
  static std::int64_t count = 0;
  BatchBuffer buffer = BatchBuffer::make(shape_of(Family::bert, static_cast<int>(load.folders.size())));
  std::ranges::fill(buffer.tokens(), 1);
  std::ranges::fill(buffer.activation(), std::byte{0});
  const auto compute = load_partition(partition_of(load, partition, DType::kFloat32));
  const auto counted = [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
    const std::string name = function.name();
    if (name == "aten::gelu" || name == "aten::tanh" || name == "aten::native_layer_norm") ++count;
    return nullptr;
  };
  count = 0;
  const at::CallbackHandle handle =
      at::addGlobalCallback(at::RecordFunctionCallback(counted).scopes({at::RecordScope::FUNCTION}));
  compute->compute({.lengths = kLengths}, buffer);
  at::removeCallback(handle);
  return count;
}

// A norm in the embedding and in each half of a block, gelu in the second half, tanh in the head: 1 + 3 + 3 + 3 + 1.
TEST_F(TransformerPartition, SharedLayersAreComputedOnceForAllHeads) {
  const std::vector<std::string> folders = write_heads(Family::bert);
  EXPECT_EQ(num_functions({{folders[0]}, {0, 8}}, 0), 11);
  EXPECT_EQ(num_functions({folders, {0, 8}}, 0), 7 + 3 * 4);
  EXPECT_EQ(num_functions({folders, {0, 5, 8}}, 0), 7);
  EXPECT_EQ(num_functions({folders, {0, 5, 8}}, 1), 3 * 4);
}

}  // namespace
}  // namespace frostpipe
