// Oracle: pictures of one value, computed by hand: (p / 255 - 0.5) / 0.5 is 1 for 255 and -1 for 0.
#include "executor/loading/image_samples.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace frostpipe {
namespace {

/// Pictures of side x side pixels of one value each.
ImageData pictures(const std::vector<std::uint8_t>& values, std::vector<int> labels, int side,
                   std::string fingerprint = "f") {
  return {std::move(labels),
          {"a", "b"},
          [values, side](int i) {
            return Image{side, side, std::vector<std::uint8_t>(3 * side * side, values[i])};
          },
          [](int i) { return std::to_string(i); },
          std::move(fingerprint)};
}

std::vector<ImageData> two_parts() { return {pictures({255, 0}, {1, 0}, 2), pictures({255}, {1}, 4)}; }

const std::vector<int> kAll{2, 0, 1};

TEST(ImageSamples, PixelsAreNormalisedAndOtherSizesResized) {
  const ImageSamples samples(two_parts(), {.size = 2, .tokens = 5});
  ASSERT_EQ(samples.size(), 3);
  EXPECT_EQ(samples.tokens(0), 5);
  const MicroBatch batch = samples.load({}, kAll, at::kDouble, /*with_input=*/true);
  EXPECT_EQ(batch.lengths, (std::vector<std::int64_t>{5, 5, 5}));
  ASSERT_EQ(batch.input.sizes(), (std::vector<std::int64_t>{3, 3, 2, 2}));
  EXPECT_EQ(batch.input.scalar_type(), at::kDouble);
  const double expected[] = {1, 1, -1};  // the picture of 4 x 4 first
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(at::equal(batch.input[i], at::full({3, 2, 2}, expected[i], at::kDouble))) << i;
  EXPECT_TRUE(at::equal(batch.labels, at::tensor({1, 1, 0}, at::kLong)));
}

TEST(ImageSamples, ALaterStageGetsLabelsAlone) {
  const ImageSamples samples(two_parts(), {.size = 2});
  const MicroBatch batch = samples.load({}, kAll, at::kFloat, /*with_input=*/false);
  EXPECT_FALSE(batch.input.defined());
  EXPECT_TRUE(at::equal(batch.labels, at::tensor({1, 1, 0}, at::kLong)));
}

TEST(ImageSamples, OnlyPicturesToTrainOnAreChanged) {
  // A window of 2 x 2 is cut at a random position of the picture with 2 zeros around it; among many samples, some have
  // a zero.
  const ImageSamples samples({pictures(std::vector<std::uint8_t>(20, 255), std::vector<int>(20, 0), 2)},
                             {.size = 2, .augmentation = {.crop_padding = 2}});
  std::vector<int> all(20);
  for (int i = 0; i < 20; ++i) all[i] = i;
  const at::Tensor tested = samples.load({.samples = all, .epoch = -1}, all, at::kFloat, true).input;
  EXPECT_EQ(tested.min().item<float>(), 1);
  const at::Tensor trained = samples.load({.samples = all, .epoch = 0}, all, at::kFloat, true).input;
  EXPECT_EQ(trained.min().item<float>(), -1);
  EXPECT_TRUE(at::equal(trained, samples.load({.samples = all, .epoch = 0}, all, at::kFloat, true).input));
  EXPECT_FALSE(at::equal(trained, samples.load({.samples = all, .epoch = 1}, all, at::kFloat, true).input));
}

TEST(ImageSamples, KeysAndFingerprintChangeWithWhatIsShown) {
  const auto samples_of = [](int first_label, int size, const std::string& fingerprint) {
    return ImageSamples({pictures({255, 0}, {first_label, 0}, 2, fingerprint)}, {.size = size});
  };
  const ImageSamples samples = samples_of(0, 2, "f");
  EXPECT_NE(samples.key(0), samples.key(1));
  EXPECT_EQ(samples.key(0), samples_of(0, 2, "f").key(0));
  EXPECT_NE(samples.key(0), samples_of(1, 2, "f").key(0)) << "another label";
  EXPECT_EQ(samples.fingerprint(), samples_of(0, 2, "f").fingerprint());
  EXPECT_NE(samples.fingerprint(), samples_of(1, 2, "f").fingerprint()) << "another label";
  EXPECT_NE(samples.fingerprint(), samples_of(0, 3, "f").fingerprint()) << "another size";
  EXPECT_NE(samples.fingerprint(), samples_of(0, 2, "g").fingerprint()) << "other pixels";
}

}  // namespace
}  // namespace frostpipe
