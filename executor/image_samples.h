#pragma once
#include <array>

#include "executor/data/image_transforms.h"
#include "executor/data/images.h"
#include "executor/samples.h"

namespace frostpipe {

/// How pixels become a model's input.
struct ImageInput {
  int size = 224;  // pictures of another size are resized
  int tokens = 197;
  std::array<float, 3> mean{0.5f, 0.5f, 0.5f}, deviation{0.5f, 0.5f, 0.5f};
  Augmentation augmentation;  // in training
  std::uint64_t seed = 1;
};

/// image_mean and image_std of preprocessor_config.json; 0.5 without one, as ViT's own. Throws InvalidInput naming the
/// file and the field.
void read_normalisation(const std::filesystem::path& model_folder, ImageInput& input);

/// preprocessor_config.json for transformers: what was computed here, and whatever else the folder's own says.
std::string preprocessor_config(const std::filesystem::path& model_folder, std::int64_t image_size);

/// Labelled pictures, the test's behind those to train on.
class ImageSamples final : public Samples {
 public:
  ImageSamples(std::vector<ImageData> parts, ImageInput input);
  int size() const override { return static_cast<int>(place_.size()); }
  int tokens(int) const override { return input_.tokens; }
  /// Of the sample's number and label: a run's pictures do not change. Not where they are changed at random: a cache
  /// cannot hold them then.
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
