// Oracle: folders written with this number of equal layers.
#include "serving/server/transformer/shared_layers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/serving/server/transformer/heads.h"

namespace frostpipe {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

class SharedLayers : public test::HeadFoldersTest {
 protected:
  /// The shared layers of folders and `one`, which has random weights of seed 1.
  std::string refusal_of(const std::vector<std::string>& others, int shared_layers) const {
    std::vector<ModelFolder> folders = {open_model_folder(folder_ / "one")};
    for (const std::string& other : others) folders.push_back(open_model_folder(folder_ / other));
    return message_of([&] { require_shared_layers(folders, shared_layers); });
  }
  std::string refusal(const std::string& other, int shared_layers = 1) const {
    return refusal_of({other}, shared_layers);
  }
};

TEST_F(SharedLayers, AreCountedUpToTheFirstThatDiffers) {
  for (const Family family : {Family::bert, Family::vit, Family::gpt2}) {
    SCOPED_TRACE(to_string(family));
    write_head("one", family, 8, 1);
    for (int shared = 1; shared < 8; ++shared) {
      write_head("other", family, shared, 2);
      EXPECT_EQ(refusal("other", shared), "no InvalidInput");
      // A language model's head has the embedding's matrix, but is not shared, since its norm differs.
      EXPECT_THAT(refusal("other", 8), EndsWith(fmt::format("only the first {0}; plan with --heads 2,{0}", shared)));
    }
    EXPECT_EQ(refusal("one", 8), "no InvalidInput");
  }
}

TEST_F(SharedLayers, MustBeAsManyAsThePlanHas) {
  write_head("one", Family::bert, 8, 1);
  write_head("other", Family::bert, 5, 2);
  write_head("stranger", Family::bert, 0, 2);
  EXPECT_EQ(refusal("other", 5), "no InvalidInput");
  EXPECT_THAT(refusal("other", 6), HasSubstr("other: must have the first 6 layers of "));
  EXPECT_THAT(refusal("other", 6), HasSubstr("one, which the plan computes once, and shares only the first 5; plan "
                                             "with --heads 2,5"));
  EXPECT_THAT(refusal("stranger", 6), HasSubstr("which the plan computes once, and shares none"));
}

TEST_F(SharedLayers, AreAdvisedToBeThoseOfAllModels) {
  write_head("one", Family::bert, 8, 1);
  write_head("more", Family::bert, 6, 2);
  write_head("fewer", Family::bert, 3, 2);
  EXPECT_THAT(refusal_of({"more", "fewer"}, 7), AllOf(HasSubstr("fewer: must have the first 7 layers of "),
                                                      EndsWith("only the first 3; plan with --heads 3,3")));
  EXPECT_EQ(refusal_of({"more", "fewer"}, 3), "no InvalidInput");
}

TEST_F(SharedLayers, AreOfModelsOfOneShapeThatReadRequestsAlike) {
  write_head("one", Family::bert, 8, 1);
  write_head("family", Family::gpt2, 8, 1);
  write_head("wide", Family::bert, 8, 1, {{"intermediate_size", 32}});
  write_head("norm", Family::bert, 8, 1, {{"layer_norm_eps", 1e-5}});
  write_head("vocabulary", Family::bert, 8, 1);
  EXPECT_THAT(refusal("family"), HasSubstr("family: family: must be bert, as in "));
  EXPECT_THAT(refusal("wide"), HasSubstr("wide: intermediate_size: must be 24, as in "));
  EXPECT_THAT(refusal("norm"), HasSubstr("norm: layer_norm_eps: must be 1e-12, as in "));
  file("vocabulary/vocab.txt", "[UNK]\n");
  EXPECT_THAT(refusal("vocabulary"),
              AllOf(HasSubstr("vocabulary: has vocab.txt, but "), EndsWith("one, whose layers it shares, lacks it")));
  file("one/vocab.txt", "[PAD]\n");
  EXPECT_THAT(refusal("vocabulary"), HasSubstr("vocabulary: vocab.txt: must be the tokenizer's file, as in "));
  write_head("bare", Family::bert, 8, 1);
  EXPECT_THAT(refusal("bare"),
              AllOf(HasSubstr("bare: lacks vocab.txt, but "), EndsWith("one, whose layers it shares, has it")));
  std::filesystem::remove(folder_ / "one/vocab.txt");
  for (const std::string name : {"special_tokens_map.json", "added_tokens.json"}) {
    file("bare/" + name, "{}");
    EXPECT_THAT(refusal("bare"), HasSubstr("bare: has " + name + ", but "));
    std::filesystem::remove(folder_ / "bare" / name);
  }
  write_head("one", Family::vit, 8, 1);
  write_head("dark", Family::vit, 8, 1);
  file("dark/preprocessor_config.json", R"({"image_mean": [0, 0, 0], "image_std": [1, 1, 1]})");
  EXPECT_THAT(refusal("dark"), HasSubstr("dark: preprocessor_config.json: must be of the same image_mean"));
  const nlohmann::json classes = {"GPT2ForSequenceClassification"};
  write_head("one", Family::gpt2, 8, 1, {{"architectures", classes}, {"pad_token_id", 3}});
  write_head("padded", Family::gpt2, 8, 1, {{"architectures", classes}, {"pad_token_id", 4}});
  EXPECT_THAT(refusal("padded"), HasSubstr("padded: pad_token_id: must be 3, as in "));
}

}  // namespace
}  // namespace frostpipe
