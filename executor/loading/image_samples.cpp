#include "executor/loading/image_samples.h"

#include <ATen/ops/empty.h>

#include "base/hash.h"

namespace frostpipe {

ImageSamples::ImageSamples(std::vector<ImageData> parts, ImageInput input) : parts_(std::move(parts)), input_(input) {
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    for (int i = 0; i < parts_[part].size(); ++i) place_.emplace_back(static_cast<int>(part), i);
  }
}

Image ImageSamples::picture(int sample) const {
  const auto [part, number] = place_[sample];
  const Image image = parts_[part].load(number);
  return image.height == input_.size && image.width == input_.size ? image : resize(image, input_.size, input_.size);
}

std::uint64_t ImageSamples::key(int sample) const {
  const auto [part, number] = place_[sample];
  const std::array<int, 3> parts{part, number, parts_[part].label(number)};
  return hash_bytes(std::as_bytes(std::span(parts)));
}

std::uint64_t ImageSamples::fingerprint() const {
  StreamHash hash;
  const std::array<int, 3> changes{input_.size, input_.augmentation.crop_padding, input_.augmentation.flip};
  hash.add(std::as_bytes(std::span(changes)));
  hash.add(std::as_bytes(std::span(input_.normalisation.mean)));
  hash.add(std::as_bytes(std::span(input_.normalisation.deviation)));
  for (const ImageData& part : parts_) {
    hash.add(std::as_bytes(std::span(part.fingerprint())));
  }
  for (int sample = 0; sample < size(); ++sample) {
    const std::uint64_t own = key(sample);
    hash.add(std::as_bytes(std::span(&own, 1)));
  }
  return hash.value();
}

MicroBatch ImageSamples::load(const MiniBatch& batch, std::span<const int> samples, at::ScalarType type,
                              bool with_input) const {
  const auto count = static_cast<std::int64_t>(samples.size());
  at::Tensor labels = at::empty({count}, at::kLong);
  at::Tensor pixels = with_input ? at::empty({count, 3, input_.size, input_.size}, at::kFloat) : at::Tensor();
  const std::size_t values = static_cast<std::size_t>(3) * input_.size * input_.size;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto [part, number] = place_[samples[i]];
    labels.data_ptr<std::int64_t>()[i] = parts_[part].label(number);
    if (!with_input) continue;
    Image image = picture(samples[i]);
    if (batch.epoch >= 0) image = augment(image, input_.augmentation, input_.seed, batch.epoch, samples[i]);
    normalise(image, input_.normalisation.mean, input_.normalisation.deviation,
              {pixels.data_ptr<float>() + static_cast<std::size_t>(i) * values, values});
  }
  return {.lengths = std::vector<std::int64_t>(samples.size(), input_.tokens),
          .input = with_input ? pixels.to(type) : pixels,
          .token_types = {},
          .labels = labels,
          .dropout_keys = dropout_keys(batch, samples),
          .type = type};
}

}  // namespace frostpipe
