#include "executor/data/image_transforms.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/error.h"
#include "executor/data/random_numbers.h"

namespace frostpipe {
namespace {

std::size_t num_pixels(const Image& image) {
  return static_cast<std::size_t>(image.height) * static_cast<std::size_t>(image.width);
}

void require_whole(const Image& image) {
  FROSTPIPE_CHECK(image.height > 0 && image.width > 0 && image.pixels.size() == 3 * num_pixels(image),
                  "an image has three channels of its size");
}

// ---- Resizing -----------------------------------------------------------------------------------

/// Weights are fixed-point integers with this many fraction bits, so that sums are exact in any order: 255 x 2^22 fits
/// 31 bits.
constexpr int kPlaces = 22;

/// A new pixel is the sum of the old pixels from `first` on, times these weights.
struct Blend {
  std::size_t first = 0;
  std::vector<std::int32_t> weights;
};

/// Returns a Blend for each new pixel of a row or column.
std::vector<Blend> blends(int old_size, int new_size) {
  const double scale = static_cast<double>(old_size) / new_size;
  const double reach = std::max(scale, 1.0);
  std::vector<Blend> blends;
  for (int i = 0; i < new_size; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = static_cast<int>(std::max(centre - reach + 0.5, 0.0));
    const int end = std::min(static_cast<int>(centre + reach + 0.5), old_size);
    std::vector<double> heights;
    double sum = 0;
    for (int x = first; x < end; ++x) {
      heights.push_back(std::max(1 - std::abs(x + 0.5 - centre) / reach, 0.0));
      sum += heights.back();
    }
    Blend& blend = blends.emplace_back(Blend{.first = static_cast<std::size_t>(first), .weights = {}});
    for (const double height : heights)
      blend.weights.push_back(static_cast<std::int32_t>(std::lround(height / sum * (1 << kPlaces))));
  }
  return blends;
}

std::uint8_t rounded(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp((sum + (1 << (kPlaces - 1))) >> kPlaces, 0, 255));
}

Image with_width(const Image& image, int width) {
  if (width == image.width) return image;
  Image result{.height = image.height, .width = width, .pixels = {}};
  result.pixels.resize(3 * num_pixels(result));
  const std::vector<Blend> columns = blends(image.width, width);
  std::uint8_t* target = result.pixels.data();
  for (std::size_t row = 0; row < 3 * static_cast<std::size_t>(image.height); ++row) {
    const std::uint8_t* const source = image.pixels.data() + row * static_cast<std::size_t>(image.width);
    for (const Blend& blend : columns) {
      std::int32_t sum = 0;
      for (std::size_t i = 0; i < blend.weights.size(); ++i) sum += blend.weights[i] * source[blend.first + i];
      *target++ = rounded(sum);
    }
  }
  return result;
}

Image with_height(const Image& image, int height) {
  if (height == image.height) return image;
  Image result{.height = height, .width = image.width, .pixels = {}};
  result.pixels.resize(3 * num_pixels(result));
  const auto width = static_cast<std::size_t>(image.width);
  const std::vector<Blend> rows = blends(image.height, height);
  std::vector<std::int32_t> sums(width);
  std::uint8_t* target = result.pixels.data();
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const std::uint8_t* const channel_pixels = image.pixels.data() + channel * num_pixels(image);
    for (const Blend& blend : rows) {
      std::fill(sums.begin(), sums.end(), 0);
      const std::uint8_t* source = channel_pixels + blend.first * width;
      for (const std::int32_t weight : blend.weights) {
        for (std::size_t x = 0; x < width; ++x) sums[x] += weight * source[x];
        source += width;
      }
      target = std::transform(sums.begin(), sums.end(), target, rounded);
    }
  }
  return result;
}

// ---- Random numbers -----------------------------------------------------------------------------

/// Returns a number that is uniform below `bound` if `value` is uniform below 2^64. The lowest 2^64 mod bound values
/// are mixed again, since they would make some results more likely than others.
std::int64_t uniform_below(std::uint64_t bound, std::uint64_t value) {
  const std::uint64_t num_rejected = (0 - bound) % bound;
  while (value < num_rejected) value = mixed(value);
  return static_cast<std::int64_t>(value % bound);
}

}  // namespace

Image resize(const Image& image, int height, int width) {
  require_whole(image);
  FROSTPIPE_CHECK(height > 0 && width > 0, "callers validate the size of images");
  return with_height(with_width(image, width), height);
}

Image augment(const Image& image, const Augmentation& augmentation, std::uint64_t seed, int epoch, int sample) {
  require_whole(image);
  FROSTPIPE_CHECK(augmentation.crop_padding >= 0 && epoch >= 0 && sample >= 0,
                  "callers validate the padding and count epochs and samples from zero");
  // Seed, epoch and sample are mixed one after another, so that sample 1 of epoch 0 differs from sample 0 of epoch 1.
  const std::uint64_t key =
      mixed(mixed(mixed(seed) + static_cast<std::uint64_t>(epoch)) + static_cast<std::uint64_t>(sample));
  const std::int64_t padding = augmentation.crop_padding;
  const auto num_offsets = static_cast<std::uint64_t>(2 * padding + 1);
  const bool is_mirrored = augmentation.flip && mixed(key) % 2 == 1;
  const std::int64_t top = uniform_below(num_offsets, mixed(key + 1)) - padding;
  const std::int64_t left = uniform_below(num_offsets, mixed(key + 2)) - padding;

  // The columns [first, end) of the window that lie inside the picture; the others stay zero.
  const std::int64_t first = std::clamp<std::int64_t>(-left, 0, image.width);
  const std::int64_t end = std::clamp<std::int64_t>(image.width - left, first, image.width);
  Image result{.height = image.height, .width = image.width, .pixels = std::vector<std::uint8_t>(image.pixels.size())};
  for (std::int64_t channel = 0; channel < 3; ++channel) {
    for (std::int64_t y = 0; y < image.height; ++y) {
      if (y + top < 0 || y + top >= image.height || first == end) continue;
      const auto source = image.pixels.begin() + (channel * image.height + y + top) * image.width + left + first;
      const auto target = result.pixels.begin() + (channel * image.height + y) * image.width;
      std::copy(source, source + (end - first), target + first);
      if (is_mirrored) std::reverse(target, target + image.width);
    }
  }
  return result;
}

void normalise(const Image& image, std::array<float, 3> mean, std::array<float, 3> deviation, std::span<float> out) {
  require_whole(image);
  FROSTPIPE_CHECK(out.size() == image.pixels.size(), "the caller sets a float per pixel and channel aside");
  for (std::size_t channel = 0; channel < 3; ++channel) {
    std::array<float, 256> value_of;
    for (std::size_t level = 0; level < 256; ++level)
      value_of[level] = (static_cast<float>(level) / 255 - mean[channel]) / deviation[channel];
    const std::size_t first = channel * num_pixels(image);
    for (std::size_t i = first; i < first + num_pixels(image); ++i) out[i] = value_of[image.pixels[i]];
  }
}

}  // namespace frostpipe
