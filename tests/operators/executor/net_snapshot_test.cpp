#include "operators/training/net_snapshot.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace frostpipe::test {
namespace {

/// A checkpoint's file of a layer with two channels, six weights and a batch norm.
class NetSnapshotTest : public ScratchFolderTest {
 protected:
  NetSnapshotTest() {
    whole_.state = {.weights = values(6),
                    .norm = values(4).view({2, 2}),
                    .running_mean = values(2),
                    .running_variance = values(2),
                    .num_batches = 7};
    whole_.momentum = {.weights = values(6), .norm = values(4).view({2, 2})};
  }

  static at::Tensor values(std::int64_t count) { return at::arange(count, at::kFloat); }

  /// Writes the file with `tensor` in `dtype`, whose values take `bytes_per_value`, and reads it again.
  WholeLayer stored_with(const std::string& tensor, const std::string& dtype, std::size_t bytes_per_value) const {
    const LayerImage image = image_of(0, shape_, whole_);
    std::vector<SafetensorsWriter::Entry> entries;
    for (const ImageTensor& one : image.tensors)
      entries.push_back({one.name, one.name == tensor ? dtype : one.dtype, {one.count}});
    SafetensorsWriter writer(folder_ / "layer.safetensors", entries);
    for (const ImageTensor& one : image.tensors)
      if (one.name == tensor)
        writer.write(std::vector<std::byte>(bytes_per_value * static_cast<std::size_t>(one.count)));
      else
        writer.write(one.data);
    writer.finish();
    return stored_layer(SafetensorsFile(folder_ / "layer.safetensors"), "layer", shape_);
  }

  const NetLayer shape_ = {.name = "layer", .in_channels = 3, .out_channels = 2, .batch_norm = true};
  WholeLayer whole_;
};

TEST_F(NetSnapshotTest, ALayerIsReadAsItWasWritten) {
  const WholeLayer read = stored_with("", "", 0);
  EXPECT_TRUE(at::equal(read.state.weights, whole_.state.weights));
  EXPECT_TRUE(at::equal(read.state.norm, whole_.state.norm));
  EXPECT_TRUE(at::equal(read.momentum.norm, whole_.momentum.norm));
  EXPECT_EQ(read.state.num_batches, 7);
}

TEST_F(NetSnapshotTest, TensorsOfAnotherDtypeAreRefused) {
  EXPECT_EQ(message_of([&] { stored_with("weights", "F64", 8); }),
            "layer: tensor weights: must have dtype F32, is F64");
  EXPECT_EQ(message_of([&] { stored_with("num_batches", "I8", 1); }),
            "layer: tensor num_batches: must have dtype I64, is I8");
}

}  // namespace
}  // namespace frostpipe::test
