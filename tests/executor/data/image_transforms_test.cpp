#include "executor/data/image_transforms.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/executor/data/reference_pictures.h"
#include "tests/support/reference_data.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;
using test::image_of;
using test::largest_difference;

// ---- Resizing -----------------------------------------------------------------------------------

/// The same as picture() in scripts/reference/images.py, with many details.
Image picture(int height, int width) {
  Image image{.height = height, .width = width};
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        image.pixels.push_back(static_cast<std::uint8_t>(x * x * 3 + y * y * 5 + x * y * 7 + c * 83));
  return image;
}

TEST(ImageTransforms, ResizesAsPillowDoes) {
  for (const Json& resized : test::reference_data("images_reference.json")["resized"]) {
    const int height = resized["new"][0], width = resized["new"][1];
    const Image result = resize(picture(resized["old"][0], resized["old"][1]), height, width);
    EXPECT_LE(largest_difference(result, image_of(height, width, resized["pixels"])), 1)
        << resized["old"] << " to " << resized["new"];
  }
}

TEST(ImageTransforms, HalvingWeighsTheNeighboursToo) {
  // A triangle of width 4 around the middle of two pixels: 1/8, 3/8, 3/8, 1/8; at the border 3/7, 3/7, 1/7.
  const Image row{.height = 1,
                  .width = 6,
                  .pixels = {80, 0, 0, 0, 0, 0,  // red
                             0, 0, 80, 0, 0, 0,  // green
                             0, 80, 0, 0, 0, 70}};
  EXPECT_EQ(resize(row, 1, 3).pixels, (std::vector<std::uint8_t>{34, 0, 0, 11, 30, 0, 34, 10, 30}));
}

TEST(ImageTransforms, ResizingKeepsOneColour) {
  const Image grey{.height = 7, .width = 5, .pixels = std::vector<std::uint8_t>(105, 255)};
  for (const auto& [height, width] : {std::pair(1, 1), std::pair(3, 50), std::pair(200, 2), std::pair(7, 6)})
    EXPECT_EQ(resize(grey, height, width).pixels,
              std::vector<std::uint8_t>(static_cast<std::size_t>(3 * height * width), 255));
}

// ---- Augmentation -------------------------------------------------------------------------------

/// top, left, mirrored: the position of a picture's window.
using Change = std::tuple<int, int, bool>;

/// The definition of an augmentation, written as simply as possible.
Image changed(const Image& image, const Change& change) {
  const auto [top, left, is_mirrored] = change;
  Image result{.height = image.height, .width = image.width};
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < image.height; ++y)
      for (int x = 0; x < image.width; ++x) {
        const int from_y = y + top, from_x = (is_mirrored ? image.width - 1 - x : x) + left;
        const bool is_inside = from_y >= 0 && from_y < image.height && from_x >= 0 && from_x < image.width;
        const int at = (c * image.height + from_y) * image.width + from_x;
        result.pixels.push_back(is_inside ? image.pixels[static_cast<std::size_t>(at)] : 0);
      }
  return result;
}

/// All pixels are different and none is zero, so that the result shows the change.
Image numbered() {
  Image image{.height = 8, .width = 9};
  for (int i = 0; i < 3 * 8 * 9; ++i) image.pixels.push_back(static_cast<std::uint8_t>(i + 1));
  return image;
}

Change change_of(const Image& result, int padding) {
  for (int top = -padding; top <= padding; ++top)
    for (int left = -padding; left <= padding; ++left)
      for (const bool is_mirrored : {false, true})
        if (result == changed(numbered(), {top, left, is_mirrored})) return {top, left, is_mirrored};
  ADD_FAILURE() << "neither crop nor mirror image";
  return {};
}

TEST(ImageTransforms, WithoutAugmentationAnImageStaysAsItIs) {
  EXPECT_EQ(augment(numbered(), {}, 1, 2, 3), numbered());
}

// Worked out by a second program in another language.
TEST(ImageTransforms, AugmentationIsTheSameOnEveryPlatform) {
  const auto change = [](std::uint64_t seed, int epoch, int sample) {
    return change_of(augment(numbered(), {.crop_padding = 4, .flip = true}, seed, epoch, sample), 4);
  };
  EXPECT_EQ(change(42, 0, 0), Change(-3, -4, true));
  EXPECT_EQ(change(42, 0, 1), Change(-3, 1, true));
  EXPECT_EQ(change(42, 0, 2), Change(4, 2, true));
  EXPECT_EQ(change(42, 0, 3), Change(2, 1, false));
  EXPECT_EQ(change(42, 1, 0), Change(-2, 2, false));
  EXPECT_EQ(change(42, 1, 1), Change(2, -2, true));
  EXPECT_EQ(change(~std::uint64_t{0}, 7, 49999), Change(4, -3, false));
}

TEST(ImageTransforms, EveryWindowIsAboutEquallyLikelyAndHalfAreMirrored) {
  std::map<Change, int> seen;
  for (int epoch = 0; epoch < 10; ++epoch)
    for (int sample = 0; sample < 500; ++sample)
      ++seen[change_of(augment(numbered(), {.crop_padding = 2, .flip = true}, 5, epoch, sample), 2)];
  // 5 x 5 windows, mirrored or not. Expected 100 of each; standard deviation sqrt(5000 / 50 * 49 / 50) = 9.9.
  EXPECT_EQ(seen.size(), 50u);
  for (const auto& [change, count] : seen) EXPECT_NEAR(count, 100, 5 * 10);
}

TEST(ImageTransforms, MirroringAndCroppingDoNotAlterEachOther) {
  for (int sample = 0; sample < 50; ++sample) {
    const auto change = [&](const Augmentation& augmentation) {
      return change_of(augment(numbered(), augmentation, 9, 0, sample), augmentation.crop_padding);
    };
    const auto [top, left, is_mirrored] = change({.crop_padding = 3, .flip = true});
    EXPECT_EQ(change({.crop_padding = 3, .flip = false}), Change(top, left, false));
    EXPECT_EQ(change({.crop_padding = 0, .flip = true}), Change(0, 0, is_mirrored));
  }
}

TEST(ImageTransforms, PaddingMayBeLargerThanTheImage) {
  const Augmentation far{.crop_padding = 1'000'000'000, .flip = true};
  EXPECT_EQ(augment(numbered(), far, 1, 0, 0).pixels, std::vector<std::uint8_t>(numbered().pixels.size(), 0));
  for (int sample = 0; sample < 500; ++sample)
    change_of(augment(numbered(), {.crop_padding = 10, .flip = true}, 1, 0, sample), 10);
}

TEST(ImageTransforms, NormalisesEveryChannelByItsOwnNumbers) {
  const Image image{.height = 1, .width = 2, .pixels = {0, 255, 51, 102, 255, 0}};
  std::array<float, 6> out{};
  normalise(image, {0.5F, 0.2F, 0.0F}, {0.5F, 0.1F, 2.0F}, out);
  const std::array<float, 6> expected = {-1, 1, 0, 2, 0.5F, 0};
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-6);
}

}  // namespace
}  // namespace frostpipe
