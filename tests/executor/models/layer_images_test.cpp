// Oracle: the stored tensors, bitwise.
#include "executor/models/layer_images.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "executor/checkpoint/safetensors.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

constexpr int kLayer = 3;

/// Weights 1, 2, 3, 4; if it is trainable, moments 10 and 100 times as large.
LayerState layer(bool trains, int num_moments = 2) {
  LayerState state = make_layer_state({{.names = {}, .shape = {2, 2}, .matrix = true}}, {at::kFloat, at::kFloat},
                                      at::kCPU, trains, num_moments);
  state.weights.detach().copy_(at::arange(1, 5, at::kFloat));
  if (!trains) return state;
  state.moments.first.copy_(at::arange(1, 5, at::kFloat) * 10);
  if (num_moments > 1) state.moments.second.copy_(at::arange(1, 5, at::kFloat) * 100);
  return state;
}

LayerImage own_image_of(const LayerState& state) {
  return image_of(kLayer, stored_values(state), !state.trains(), /*changes=*/state.trains());
}

at::Tensor numbers_times(double factor) { return at::arange(1, 5, at::kFloat) * factor; }

class LayerImagesTest : public test::ScratchFolderTest {
 protected:
  /// A checkpoint with only this layer.
  Checkpoint written(const LayerImage& image) const {
    std::vector<SafetensorsWriter::Entry> entries;
    for (const ImageTensor& tensor : image.tensors) entries.push_back({tensor.name, tensor.dtype, {tensor.count}});
    const std::filesystem::path path = folder_ / layer_file_name(image.layer);
    SafetensorsWriter writer(path, entries);
    for (const ImageTensor& tensor : image.tensors) writer.write(tensor.data);
    writer.finish();
    const SafetensorsFile file(path);
    Checkpoint checkpoint;
    checkpoint.folder = folder_;
    checkpoint.files = {{.name = layer_file_name(image.layer),
                         .bytes = static_cast<Bytes>(file.content().size()),
                         .hash = fmt::format("{:016x}", hash_bytes(file.content()))}};
    return checkpoint;
  }
};

TEST_F(LayerImagesTest, ATrainingLayerComesBackWithItsMoments) {
  const Checkpoint checkpoint = written(own_image_of(layer(/*trains=*/true)));
  LayerState restored = layer(true);
  for (at::Tensor* tensor : {&restored.weights, &restored.moments.first, &restored.moments.second})
    tensor->detach().zero_();
  std::map<int, OffloadedMoments> offloaded;
  restore_layer(checkpoint, kLayer, /*num_moments=*/2, restored, offloaded);
  EXPECT_TRUE(at::equal(restored.weights, numbers_times(1)));
  EXPECT_TRUE(at::equal(restored.moments.first, numbers_times(10)));
  EXPECT_TRUE(at::equal(restored.moments.second, numbers_times(100)));
  EXPECT_TRUE(offloaded.empty());
}

TEST_F(LayerImagesTest, TheMomentumComesBackToALayerThatTrainsAndToOneThatIsFrozen) {
  const Checkpoint checkpoint = written(own_image_of(layer(/*trains=*/true, /*num_moments=*/1)));
  LayerState restored = layer(/*trains=*/true, /*num_moments=*/1), frozen = layer(/*trains=*/false);
  restored.moments.first.zero_();
  std::map<int, OffloadedMoments> offloaded;
  restore_layer(checkpoint, kLayer, /*num_moments=*/1, restored, offloaded);
  EXPECT_TRUE(at::equal(restored.moments.first, numbers_times(10)));
  restore_layer(checkpoint, kLayer, /*num_moments=*/1, frozen, offloaded);
  EXPECT_TRUE(at::equal(offloaded[kLayer].moments.first, numbers_times(10)));
  EXPECT_FALSE(offloaded[kLayer].moments.second.defined());
}

TEST_F(LayerImagesTest, BothVersionsOfTheWeightsComeBack) {
  LayerState delayed = layer(true);
  keep_older_weights(delayed);
  delayed.older.weights.copy_(numbers_times(0.5));
  const Checkpoint checkpoint = written(own_image_of(delayed));
  std::map<int, OffloadedMoments> offloaded;
  for (const bool trains : {true, false}) {
    LayerState restored = layer(trains);
    restored.weights.detach().zero_();
    restore_layer(checkpoint, kLayer, /*num_moments=*/2, restored, offloaded);
    EXPECT_TRUE(at::equal(restored.weights, numbers_times(1)));
    EXPECT_EQ(restored.older.weights.defined(), trains);
    EXPECT_TRUE(!trains || at::equal(restored.older.weights, numbers_times(0.5)));
  }
}

TEST_F(LayerImagesTest, MomentsThatAFrozenLayerDoesNotUseAreOffloaded) {
  const Checkpoint checkpoint = written(own_image_of(layer(/*trains=*/true)));
  LayerState restored = layer(/*trains=*/false);
  restored.weights.zero_();
  std::map<int, OffloadedMoments> offloaded;
  restore_layer(checkpoint, kLayer, /*num_moments=*/2, restored, offloaded);
  EXPECT_TRUE(at::equal(restored.weights, numbers_times(1)));
  ASSERT_TRUE(offloaded.contains(kLayer));
  EXPECT_TRUE(at::equal(offloaded[kLayer].moments.first, numbers_times(10)));
  EXPECT_TRUE(at::equal(offloaded[kLayer].moments.second, numbers_times(100)));
  EXPECT_TRUE(at::equal(offloaded[kLayer].weights, numbers_times(1)));
  offloaded.clear();
  restore_layer(checkpoint, kLayer, /*num_moments=*/0, restored, offloaded);
  EXPECT_TRUE(offloaded.empty()) << "SGD has none";
}

TEST_F(LayerImagesTest, ValuesThatTrainingChangesAreCopied) {
  LayerState state = layer(/*trains=*/true);
  const LayerImage image = own_image_of(state);
  EXPECT_FALSE(image.frozen);
  state.weights.detach().zero_();
  LayerState restored = layer(/*trains=*/false);
  std::map<int, OffloadedMoments> offloaded;
  restore_layer(written(image), kLayer, 0, restored, offloaded);
  EXPECT_TRUE(at::equal(restored.weights, numbers_times(1)));
}

TEST_F(LayerImagesTest, AnotherTypeIsRefused) {
  LayerImage image = own_image_of(layer(/*trains=*/false));
  EXPECT_TRUE(image.frozen);
  image.tensors[0].dtype = "I32";
  const Checkpoint checkpoint = written(image);
  LayerState restored = layer(/*trains=*/false);
  std::map<int, OffloadedMoments> offloaded;
  EXPECT_EQ(message_of([&] { restore_layer(checkpoint, kLayer, 0, restored, offloaded); }),
            "layer-003.safetensors: tensor weights: must have dtype F32, is I32");
}

}  // namespace
}  // namespace frostpipe
