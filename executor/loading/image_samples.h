#pragma once
#include "executor/data/image_transforms.h"
#include "executor/data/images.h"
#include "executor/loading/samples.h"
#include "executor/models/folder/preprocessor_config.h"

namespace frostpipe {

/// The conversion of pictures to a model's input.
struct ImageInput {
  int size = 224;    // height and width; other pictures are resized
  int tokens = 197;  // of a picture in the layers
  Normalisation normalisation;
  Augmentation augmentation;  // for training
  std::uint64_t seed = 1;
};

/// Labelled pictures; test pictures follow those to train on.
class ImageSamples final : public Samples {
 public:
  ImageSamples(std::vector<ImageData> parts, ImageInput input);
  int size() const override { return static_cast<int>(place_.size()); }
  int tokens(int) const override { return input_.tokens; }
  /// Returns a hash of the sample's number and label, which suffices because a run's pictures do not change. With
  /// augmentation the model's input changes, so the key must not be used.
  std::uint64_t key(int sample) const override;
  std::vector<std::int64_t> distinct_tokens(std::span<const int>) const override { return {}; }
  std::uint64_t fingerprint() const override;
  MicroBatch load(const MiniBatch& batch, std::span<const int> samples, at::ScalarType type,
                  bool with_input) const override;

 private:
  Image picture(int sample) const;

  std::vector<ImageData> parts_;
  std::vector<std::pair<int, int>> place_;  // part, number in it
  ImageInput input_;
};

}  // namespace frostpipe
