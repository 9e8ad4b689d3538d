#include "executor/models/folder/generation_config.h"

#include <gtest/gtest.h>

#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Tokens = std::vector<std::int32_t>;

class GenerationConfig : public test::ScratchFolderTest {};

TEST_F(GenerationConfig, EndTokensAreOneOrSeveralAndThoseOfTheModelWhereItSaysNone) {
  EXPECT_EQ(end_tokens_in(folder_), Tokens{});
  file("config.json", R"({"eos_token_id": 2})");
  EXPECT_EQ(end_tokens_in(folder_), Tokens{2});
  file("generation_config.json", R"({"eos_token_id": null})");
  EXPECT_EQ(end_tokens_in(folder_), Tokens{2});
  file("generation_config.json", R"({"eos_token_id": [7, 9]})");
  EXPECT_EQ(end_tokens_in(folder_), (Tokens{7, 9}));
}

TEST_F(GenerationConfig, AnInvalidTokenIsRefused) {
  for (const std::string wrong : {"-1", "[1, \"</s>\"]", "4294967296", "1.5"}) {
    file("generation_config.json", "{\"eos_token_id\": " + wrong + "}");
    EXPECT_TRUE(message_of([&] {
                  end_tokens_in(folder_);
                }).starts_with("generation_config.json: eos_token_id: must be a token's id, or a list of those, is "))
        << wrong;
  }
}

}  // namespace
}  // namespace frostpipe
