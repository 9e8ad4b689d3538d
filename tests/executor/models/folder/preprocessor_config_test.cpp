#include "executor/models/folder/preprocessor_config.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Three = std::array<float, 3>;
using Json = nlohmann::json;

class PreprocessorConfigTest : public test::ScratchFolderTest {
 protected:
  std::string refusal_of(const char* content) const {
    file("preprocessor_config.json", content);
    return message_of([&] { read_normalisation(folder_); });
  }
};

TEST_F(PreprocessorConfigTest, WithoutAFileMeansAndDeviationsAreAHalf) {
  EXPECT_EQ(read_normalisation(folder_).mean, (Three{0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(read_normalisation(folder_).deviation, (Three{0.5f, 0.5f, 0.5f}));
}

TEST_F(PreprocessorConfigTest, ChannelsHaveTheirOwn) {
  file("preprocessor_config.json", R"({"image_mean": [0, 0.25, 1], "image_std": [1, 2, 0.5]})");
  EXPECT_EQ(read_normalisation(folder_).mean, (Three{0, 0.25f, 1}));
  EXPECT_EQ(read_normalisation(folder_).deviation, (Three{1, 2, 0.5f}));
}

TEST_F(PreprocessorConfigTest, TheFaultyFieldIsNamed) {
  EXPECT_EQ(refusal_of("[]"), "preprocessor_config.json: must be a JSON object, is something else");
  EXPECT_EQ(refusal_of(R"({"image_mean": [0, 1]})"),
            "preprocessor_config.json: image_mean: must be three numbers, is [0,1]");
  EXPECT_EQ(refusal_of(R"({"image_std": [1, 0, 1]})"),
            "preprocessor_config.json: image_std: must be three numbers > 0, is [1,0,1]");
}

// Oracle: the fields that transformers' ViTImageProcessor reads.
TEST_F(PreprocessorConfigTest, SaysWhatWasComputedAndKeepsTheRest) {
  file("preprocessor_config.json",
       R"({"feature_extractor_type": "X", "do_center_crop": true, "image_std": [1, 2, 4], "custom": "kept"})");
  const Json written = Json::parse(preprocessor_config(folder_, 32));
  EXPECT_EQ(written, (Json{{"image_processor_type", "ViTImageProcessor"},
                           {"do_resize", true},
                           {"do_rescale", true},
                           {"do_normalize", true},
                           {"do_center_crop", false},
                           {"size", {{"height", 32}, {"width", 32}}},
                           {"resample", 2},
                           {"rescale_factor", 1.0 / 255},
                           {"image_mean", {0.5, 0.5, 0.5}},
                           {"image_std", {1, 2, 4}},
                           {"custom", "kept"}}));
}

}  // namespace
}  // namespace frostpipe
