#include "executor/data/tokenizers/tokenizer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/reference_data.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Ids = std::vector<std::int32_t>;
using Json = nlohmann::json;

/// Recorded results of Hugging Face's `tokenizers` library (scripts/record-reference) for tokenizer.json files of all
/// kinds.
class TokenizerReference : public test::ScratchFolderTest {
 protected:
  template <typename Check>
  void for_each_tokenizer(Check check) const {
    const Json& reference = test::reference_data("tokenizers_reference.json");
    EXPECT_GE(reference.at("tokenizers").size(), 15u);
    // The files are used unchanged.
    file("tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
    for (const Json& one : reference.at("tokenizers")) {
      SCOPED_TRACE(one.at("name"));
      file("tokenizer.json", one.at("tokenizer").dump());
      check(Tokenizer(folder_), one, reference.at("texts").get<std::vector<std::string>>());
    }
  }
};

TEST_F(TokenizerReference, HardStringsGetTheIdsOfTheLibrary) {
  for_each_tokenizer([](const Tokenizer& tokenizer, const Json& expected, const std::vector<std::string>& texts) {
    EXPECT_EQ(tokenizer.encode("The model"), expected.at("single").get<Ids>());
    const auto& [before, between, after] = tokenizer.pair_frame();
    Ids pair = before;
    const auto add = [&](const Ids& ids) { pair.insert(pair.end(), ids.begin(), ids.end()); };
    add(tokenizer.encode("The pipeline's model", {.add_special_tokens = false}));
    add(between);
    add(tokenizer.encode("freezes 12 layers", {.add_special_tokens = false}));
    add(after);
    EXPECT_EQ(pair, expected.at("pair").get<Ids>());
    for (std::size_t i = 0; i < texts.size(); ++i)
      EXPECT_EQ(tokenizer.encode(texts[i], {.add_special_tokens = false}), expected.at("ids")[i].get<Ids>())
          << texts[i];
  });
}

TEST_F(TokenizerReference, HardStringsGetTheSpansOfTheLibrary) {
  for_each_tokenizer([](const Tokenizer& tokenizer, const Json& expected, const std::vector<std::string>& texts) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      Ids spans;
      for (const TokenSpan& span : tokenizer.encode_with_spans(texts[i]).spans)
        spans.insert(spans.end(), {span.begin, span.end});
      EXPECT_EQ(spans, expected.at("spans")[i].get<Ids>()) << texts[i];
    }
  });
}

TEST_F(TokenizerReference, IdsAreDecodedAsTheLibraryDecodesThem) {
  for_each_tokenizer([](const Tokenizer& tokenizer, const Json& expected, const std::vector<std::string>& texts) {
    for (std::size_t i = 0; i < texts.size(); ++i)
      EXPECT_EQ(tokenizer.decode(expected.at("ids")[i].get<Ids>()), expected.at("decoded")[i]) << texts[i];
  });
}

TEST_F(TokenizerReference, OneObjectServesManyThreads) {
  for_each_tokenizer([](const Tokenizer& tokenizer, const Json& expected, const std::vector<std::string>& texts) {
    std::vector<std::vector<Ids>> results(4);
    std::vector<std::thread> threads;
    for (std::vector<Ids>& result : results)
      threads.emplace_back([&] {
        for (const std::string& text : texts) result.push_back(tokenizer.encode(text, {.add_special_tokens = false}));
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::vector<Ids>& result : results) EXPECT_EQ(Json(result), expected.at("ids"));
  });
}

}  // namespace
}  // namespace frostpipe
