#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "executor/data/image_files.h"

namespace frostpipe {

/// Resizes a picture. Each new pixel is a mean of the pixels around its position, weighted by a triangle that reaches
/// one pixel of the coarser of the two sizes to each side (bilinear with antialiasing: Pillow's BILINEAR). Columns are
/// resized first and rounded to 8 bits before the rows. Neither size may be 0; the aspect ratio may change.
Image resize(const Image& image, int height, int width);

/// Random changes of training pictures.
struct Augmentation {
  /// Pads the picture with this many zero pixels on each side and cuts out a random window of the original size. 4 is
  /// usual for CIFAR.
  int crop_padding = 0;
  /// Mirrors each picture with probability 1/2.
  bool flip = false;

  bool operator==(const Augmentation&) const = default;
};

/// Returns a changed picture of the same size. It depends only on the arguments, on every platform, so that every
/// parallel layout and every resumed run uses the same pixels. Epochs and samples are counted from 0. Whether a sample
/// is mirrored does not depend on crop_padding.
Image augment(const Image& image, const Augmentation& augmentation, std::uint64_t seed, int epoch, int sample);

/// Computes out = (pixel / 255 - mean) / deviation with the values of the pixel's channel; image and out are [channel,
/// height, width].
void normalise(const Image& image, std::array<float, 3> mean, std::array<float, 3> deviation, std::span<float> out);

}  // namespace frostpipe
