#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "executor/data/question_windows.h"
#include "executor/data/tokenizers/tokenizer.h"
#include "tests/fuzz/mutations.h"

namespace frostpipe {
namespace {

using test::fuzz;
using test::Mutator;
using test::num_cases;
using test::ScratchFolder;

constexpr const char* kWordPieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nfine\nfilm\n##s\n,\n";

void fuzz_tokenizer(const std::string& valid, const char* name) {
  const ScratchFolder folder;
  fuzz(valid, [&](const std::string& text) {
    folder.write(name, text);
    const Tokenizer tokenizer(folder.path());
    tokenizer.decode(tokenizer.encode("A fine film, s\xc3\xbc\xc3\x9f \xff", {.max_tokens = 16}));
  });
}

TEST(Fuzz, Vocabularies) { fuzz_tokenizer(kWordPieces, "vocab.txt"); }

TEST(Fuzz, TokenizerFiles) {
  fuzz_tokenizer(
      R"({"version":"1.0","normalizer":{"type":"BertNormalizer","lowercase":true},"model":{"type":"WordPiece",
       "unk_token":"[UNK]","continuing_subword_prefix":"##",)"
      R"("max_input_chars_per_word":100,"vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"[MASK]":4,"a":5,"fine":6,
       "film":7,"##s":8,",":9}}})",
      "tokenizer.json");
}

TEST(Fuzz, AnyTextThroughATokenizer) {
  const ScratchFolder folder;
  folder.write("vocab.txt", kWordPieces);
  const Tokenizer tokenizer(folder.path());
  Mutator mutate(9);
  for (int i = 0; i < num_cases(); ++i) {
    const std::vector<std::int32_t> ids = tokenizer.encode(
        mutate("A fine film, s\xc3\xbc\xc3\x9f and \xe4\xb8\xad\xe6\x96\x87 dull"), {.max_tokens = 16});
    ASSERT_LE(ids.size(), 16u);
    for (const std::int32_t id : ids) ASSERT_TRUE(id >= 0 && id < 10);
  }
}

/// GPT-2's files with a vocabulary of the 256 bytes, one merge and the end of text.
std::string byte_level_vocabulary() {
  std::string json = "{";
  for (int byte = 0, other = 0; byte < 256; ++byte) {
    const bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int c = plain ? byte : 256 + other++;
    std::string character = c < 0x80
                                ? std::string(1, static_cast<char>(c))
                                : std::string{static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    if (character == "\"" || character == "\\") character = "\\" + character;
    json += "\"" + character + "\":" + std::to_string(byte) + ",";
  }
  return json + R"("ab":256,"<|endoftext|>":257})";
}

void use(const Tokenizer& tokenizer) {
  const std::string text = "ab cab \xc3\xbc\xff's <|endoftext|>";
  const std::vector<std::int32_t> ids = tokenizer.encode(text);
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= tokenizer.vocabulary_size()) throw std::logic_error("an id outside the vocabulary");
  }
  tokenizer.decode(ids);
}

TEST(Fuzz, ByteLevelVocabularies) {
  const ScratchFolder folder;
  folder.write("merges.txt", "#version: 0.2\na b\n");
  fuzz(byte_level_vocabulary(), [&](const std::string& text) {
    folder.write("vocab.json", text);
    use(Tokenizer(folder.path()));
  });
}

TEST(Fuzz, ByteLevelMerges) {
  const ScratchFolder folder;
  folder.write("vocab.json", byte_level_vocabulary());
  fuzz("#version: 0.2\na b\n", [&](const std::string& text) {
    folder.write("merges.txt", text);
    use(Tokenizer(folder.path()));
  });
}

TEST(Fuzz, ByteLevelTokenizerFiles) {
  const ScratchFolder folder;
  fuzz(R"({"model":{"type":"BPE","vocab":)" + byte_level_vocabulary() +
           R"(,"merges":["a b"]},"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)"
           R"("added_tokens":[{"id":257,"content":"<|endoftext|>","special":true}]})",
       [&](const std::string& text) {
         folder.write("tokenizer.json", text);
         use(Tokenizer(folder.path()));
       });
}

TEST(Fuzz, UnigramTokenizerFiles) {
  const ScratchFolder folder;
  fuzz(R"({"added_tokens":[{"id":0,"content":"<s>","special":true},{"id":5,"content":"ab","normalized":true,
       "lstrip":true,"rstrip":true,"single_word":true}],
       "normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Strip","strip_left":true,
       "strip_right":false},{"type":"Replace","pattern":{"Regex":"\\s{2,}|[^\\w ]+"},"content":"u"},
       {"type":"Precompiled","precompiled_charsmap":"CAAAAAAAAAAAAAAAYQA="}]},
       "pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Punctuation","behavior":"MergedWithNext"},
       {"type":"Digits","individual_digits":true},{"type":"Metaspace","replacement":"_","prepend_scheme":"first"}]},
       "model":{"type":"Unigram","unk_id":1,"byte_fallback":false,
       "vocab":[["<s>",0],["<unk>",0],["_",-2.5],["a",-1],["ca",-3]]},
       "post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},
       {"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B",
       "type_id":1}}],"special_tokens":{"<s>":{"id":"<s>","ids":[0],"tokens":["<s>"]}}},
       "decoder":{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Metaspace","replacement":"_"},
       {"type":"Strip","content":" ","start":1,"stop":0},{"type":"Fuse"}]}})",
       [&](const std::string& text) {
         folder.write("tokenizer.json", text);
         use(Tokenizer(folder.path()));
       });
}

/// Every window fits, and if it marks the answer, it contains the answer.
TEST(Fuzz, WindowsOfAnyText) {
  const ScratchFolder folder, word_pieces;
  folder.write("vocab.json", byte_level_vocabulary());
  folder.write("merges.txt", "#version: 0.2\na b\n");
  word_pieces.write("vocab.txt", kWordPieces);
  const Tokenizer byte_level(folder.path()), word_piece(word_pieces.path());
  Mutator mutate(10);
  for (const PairTokenizer& tokenizer : {pair_tokenizer(word_piece), pair_tokenizer(byte_level)}) {
    for (int i = 0; i < num_cases(); ++i) {
      QuestionSet set{.contexts = {mutate("A fine film, s\xc3\xbc\xc3\x9f and \xe4\xb8\xad\xe6\x96\x87 dull")},
                      .questions = {{.id = "q", .question = mutate("how fine?")}}};
      Question& question = set.questions[0];
      const std::vector<std::size_t> starts = code_point_starts(set.contexts[0]);
      if (starts.size() > 1) {
        question.answer_start = static_cast<int>(mutate.below(starts.size() - 1));
        const std::size_t end = question.answer_start + 1 + mutate.below(starts.size() - 1 - question.answer_start);
        question.answers = {
            set.contexts[0].substr(starts[question.answer_start], starts[end] - starts[question.answer_start])};
      }
      for (const Window& window : windows_of(set, tokenizer, 16, 3)) {
        ASSERT_LE(window.ids.size(), 16u);
        ASSERT_EQ(window.ids.size(), window.num_question_tokens + window.spans.size() + tokenizer.frame.after.size());
        if (window.end_position == 0) continue;
        ASSERT_TRUE(window.num_question_tokens <= window.start_position &&
                    window.start_position <= window.end_position);
        const TokenSpan first = window.spans.at(window.start_position - window.num_question_tokens),
                        last = window.spans.at(window.end_position - window.num_question_tokens);
        ASSERT_TRUE(first.begin <= question.answer_start &&
                    last.end >=
                        question.answer_start + static_cast<int>(code_point_starts(question.answers[0]).size()) - 1);
        answer_text(set, window, window.start_position, window.end_position);
      }
    }
  }
}

}  // namespace
}  // namespace frostpipe
