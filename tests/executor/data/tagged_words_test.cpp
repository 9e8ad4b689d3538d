// Oracle: small data by hand, the same in both forms.
#include "executor/data/tagged_words.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Strings = std::vector<std::string>;

class TaggedWordsTest : public test::ScratchFolderTest {
 protected:
  std::string refusal(const std::string& name, std::string_view content, const Strings& known = {}) {
    const std::filesystem::path path = file(name, content);
    try {
      read_tagged_words(path, known);
    } catch (const InvalidInput& error) {
      const std::string text = error.what(), folder = folder_.string() + "/";
      return text.starts_with(folder) ? text.substr(folder.size()) : text;
    }
    return "";
  }
};

const TaggedWords kExpected{
    .sentences = {{.words = {"Ada", "Lovelace", "slept"}, .labels = {0, 1, 2}}, {.words = {"Yes"}, .labels = {2}}},
    .label_names = {"B-PER", "I-PER", "O"}};

TEST_F(TaggedWordsTest, ColumnsAndRecordsAreTheSameSentences) {
  EXPECT_EQ(read_tagged_words(file("a.conll", "Ada NNP B-PER\nLovelace NNP I-PER\nslept VBD O\n\nYes UH O\n"), {}),
            kExpected);
  EXPECT_EQ(read_tagged_words(file("a.txt",
                                   "-DOCSTART- -X- O\n\n\nAda  NNP B-PER\r\nLovelace NNP I-PER\nslept VBD O\n"
                                   "-DOCSTART- -X- O\n \nYes UH O"),
                              {}),
            kExpected);
  EXPECT_EQ(read_tagged_words(file("a.bio", "Ada\tB-PER\nLovelace\tI-PER\nslept\tO\n\nYes\tO\n\n"), {}), kExpected);
  EXPECT_EQ(
      read_tagged_words(file("a.jsonl", R"({"tokens": ["Ada", "Lovelace", "slept"], "ner_tags": ["B-PER", "I-PER", "O"]}
{"tags": ["O"], "tokens": ["Yes"], "id": 3}
{"tokens": [], "tags": []})"),
                        {}),
      kExpected);
  EXPECT_EQ(read_tagged_words(file("own.json", R"([{"w": ["Ada", "Lovelace", "slept"], "t": [0, 1, 2]},
{"w": ["Yes"], "t": [2]}])"),
                              {"B-PER", "I-PER", "O"}, {.text = "w", .label = "t"}),
            kExpected)
      << "numbers of the model's labels";
}

TEST_F(TaggedWordsTest, LabelsAreNumberedAsTheModelsIfItKnowsAll) {
  const auto data = file("a.conll", "a O\nb B-X\n");
  EXPECT_EQ(read_tagged_words(data, {"O", "B-X", "I-X"}).label_names, (Strings{"O", "B-X", "I-X"}));
  EXPECT_EQ(read_tagged_words(data, {"O", "B-X", "I-X"}).sentences[0].labels, (std::vector<int>{0, 1}));
  EXPECT_EQ(read_tagged_words(data, {"O", "B-Y"}).label_names, (Strings{"B-X", "O"}));
}

TEST_F(TaggedWordsTest, ATxtWithLabelsHasColumnsWithOrWithoutABeginOfADocument) {
  const std::string columns = "Ada NNP B-PER\nLovelace NNP I-PER\nslept VBD O\n\nYes UH O\n";
  EXPECT_EQ(read_tagged_words(file("a.txt", columns), {}), kExpected);
  EXPECT_EQ(read_tagged_words_of(file("a.txt", columns), kExpected.label_names), kExpected);
  EXPECT_EQ(refusal("b.txt", "Ada\nslept\n"),
            "b.txt:1: must be a word and its label, between blanks or tabs (an empty line ends a sentence), is "
            "\"Ada\"");
}

TEST_F(TaggedWordsTest, WordsToLabelNeedNoLabels) {
  const Strings names{"B-X", "O"};
  const TaggedWords expected{.sentences = {{.words = {"a", "b"}, .labels = {}}, {.words = {"c"}, .labels = {}}},
                             .label_names = names};
  EXPECT_EQ(read_words_to_label(file("a.conll", "a\nb\n\nc\n"), names), expected);
  EXPECT_EQ(read_words_to_label(file("a.txt", "a b\n\n c\n"), names), expected) << "a sentence per line";
  EXPECT_EQ(read_words_to_label(file("a.jsonl", "{\"tokens\": [\"a\", \"b\"]}\n{\"tokens\": [\"c\"]}"), names),
            expected);
}

TEST_F(TaggedWordsTest, ErrorsNameLineFieldAndRule) {
  EXPECT_EQ(
      refusal("a.conll", "a\n"),
      "a.conll:1: must be a word and its label, between blanks or tabs (an empty line ends a sentence), is \"a\"");
  EXPECT_EQ(refusal("a.conll", "a O\nb x O\n"),
            "a.conll:2: must have as many columns as the first word's line, 2, between blanks or tabs (an empty line "
            "ends a sentence), is \"b x O\"");
  EXPECT_EQ(refusal("a.conll", "a\tO\n\tO\n"), "a.conll:2: the word and its label must not be empty, is \"\tO\"");
  EXPECT_EQ(refusal("a.conll", "\n\n"), "a.conll: must have a word, is without one");
  EXPECT_EQ(refusal("a.conll", "a O\nb O\n"), "a.conll: must have at least two different labels, is all \"O\"");
  EXPECT_EQ(refusal("a.jsonl", R"({"tokens": ["a", "b"], "tags": ["O"]})"),
            "a.jsonl:1: tags: must have a label for each of the 2 words, is 1");
  EXPECT_EQ(refusal("a.jsonl", R"({"tokens": ["a"], "tags": [1]})"),
            "a.jsonl:1: tags[0]: must be a text, such as \"B-PER\" (a number is one of id2label's in the model's "
            "config.json, which names none), is 1");
  EXPECT_EQ(
      refusal("a.jsonl", R"({"tokens": ["a"], "tags": [2]})", {"B-X", "O"}),
      "a.jsonl:1: tags[0]: must be a text, such as \"B-PER\", or the number of one of the model's 2 labels, is 2");
  EXPECT_EQ(refusal("a.jsonl", R"({"tokens": ["a"]})"),
            "a.jsonl:1: must have a list of words \"tokens\" and one of their labels \"ner_tags\", \"tags\" "
            "(--text-column and --label-column name others), is an object with \"tokens\"");
  EXPECT_EQ(refusal("a.jsonl", R"({"tokens": ["a", 3], "tags": ["O", "O"]})"),
            "a.jsonl:1: tokens[1]: must be a text, is 3");
  try {
    read_tagged_words_of(file("test.conll", "a O\nb B-Z\n"), {"B-X", "O"});
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what())
                  .find("test.conll:2: the label must be one that the model knows (\"B-X\", \"O\"), "
                        "is \"B-Z\""),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace frostpipe
