#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "executor/data/image_files.h"

namespace frostpipe {

/// The picture in another size: each new pixel is a mean of those around its place, weighted by a triangle that reaches
/// one pixel of the coarser of the two sizes to each side (bilinear with antialiasing: Pillow's BILINEAR). Columns come
/// first, and are rounded to 8 bits before the rows. Neither size may be 0; the sides need not keep their proportion.
Image resize(const Image& image, int height, int width);

/// What to change at random in a picture to be trained on.
struct Augmentation {
  /// Pixels of zeros set around the picture, of which a window of its size is then cut out. 4 is usual for CIFAR.
  int crop_padding = 0;
  /// Whether every other picture, by chance, is turned into its mirror image.
  bool flip = false;

  bool operator==(const Augmentation&) const = default;
};

/// A changed picture of the same size. It depends on nothing but the arguments, on every platform, so that every layout
/// of ranks and every resumed run sees the same pixels. Epochs and samples count from 0. Whether a sample is mirrored
/// does not depend on crop_padding.
Image augment(const Image& image, const Augmentation& augmentation, std::uint64_t seed, int epoch, int sample);

/// out = (pixel / 255 - mean) / deviation of the pixel's channel; both are [channel, height, width].
void normalise(const Image& image, std::array<float, 3> mean, std::array<float, 3> deviation, std::span<float> out);

}  // namespace frostpipe
