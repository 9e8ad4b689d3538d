#include "executor/data/text_data.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/error.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using Strings = std::vector<std::string>;

class ReadTsv : public test::ScratchFolderTest {
 protected:
  std::filesystem::path file(std::string_view content) const { return ScratchFolderTest::file("data.tsv", content); }
  std::string message_for(std::string_view content) const {
    return message_of([&] { read_tsv(file(content)); });
  }
};

TEST_F(ReadTsv, ReadsTextsAndNumbersTheirLabels) {
  EXPECT_EQ(
      read_tsv(file("text\tlabel\ngood film\tpositive\nbad film\tnegative\nfine\tpositive\n")),
      (TextData{
          .texts = {"good film", "bad film", "fine"}, .labels = {1, 0, 1}, .label_names = {"negative", "positive"}}));
}

TEST_F(ReadTsv, TakesTheFormOfSst2) {
  EXPECT_EQ(read_tsv(file(
                "sentence\tlabel\nhide new secretions from the parental units \t0\nthat loves its characters \t1\n")),
            (TextData{.texts = {"hide new secretions from the parental units ", "that loves its characters "},
                      .labels = {0, 1},
                      .label_names = {"0", "1"}}));
}

TEST_F(ReadTsv, FindsItsColumnsByNameAndIgnoresOthers) {
  const TextData data = read_tsv(file("index\tlabel\tsource\ttext\n7\ta\tx\tone\n8\tb\t\ttwo\n"));
  EXPECT_EQ(data.texts, (Strings{"one", "two"}));
  EXPECT_EQ(data.label_names, (Strings{"a", "b"}));
}

TEST_F(ReadTsv, QuotesAndBackslashesAreCharacters) {
  EXPECT_EQ(read_tsv(file("text\tlabel\n\"open\ta\n\"a \"\"b\"\"\"\tb\n\\t\ta\n")).texts,
            (Strings{"\"open", "\"a \"\"b\"\"\"", "\\t"}));
}

TEST_F(ReadTsv, ToleratesByteOrderMarkWindowsLineEndsAndEmptyLinesAtTheEnd) {
  const TextData expected{.texts = {"é", ""}, .labels = {0, 1}, .label_names = {"a", "b"}};
  EXPECT_EQ(read_tsv(file("text\tlabel\né\ta\n\tb")), expected);
  EXPECT_EQ(read_tsv(file("\xEF\xBB\xBFtext\tlabel\r\né\ta\r\n\tb\r\n\r\n")), expected);
  EXPECT_EQ(read_tsv(file("text\tlabel\né\ta\n\tb\n\n\n")), expected);
}

TEST_F(ReadTsv, OrdersLabelsByNumberOnlyIfAllAreIntegers) {
  const auto names = [&](const Strings& labels) {
    std::string content = "label\ttext\n";
    for (const std::string& label : labels) content += label + "\tx\n";
    return read_tsv(file(content)).label_names;
  };
  EXPECT_EQ(names({"10", "9", "-1", "9"}), (Strings{"-1", "9", "10"}));
  EXPECT_EQ(names({"10", "9", "x"}), (Strings{"10", "9", "x"}));
  EXPECT_EQ(names({"10", "9.5"}), (Strings{"10", "9.5"}));
  EXPECT_EQ(names({"2", "1", "01"}), (Strings{"01", "1", "2"}));
  EXPECT_EQ(names({"99999999999999999999", "5"}),
            (Strings{"5", "99999999999999999999"}));  // no 64-bit integer: by bytes
  EXPECT_EQ(names({"b", "B", "é"}), (Strings{"B", "b", "é"}));
}

TEST_F(ReadTsv, HeaderErrorsQuoteTheHeader) {
  EXPECT_EQ(message_for("good\t1\nbad\t0\n"),
            "data.tsv:1: the header must name one column \"text\" (or \"sentence\"), between tabs, is \"good\t1\"");
  EXPECT_EQ(message_for("text\tclass\na\t1\n"),
            "data.tsv:1: the header must name one column \"label\", between tabs, is \"text\tclass\"");
  EXPECT_EQ(message_for("text label\na\t1\n"),
            "data.tsv:1: the header must name one column \"text\" (or \"sentence\"), between tabs, is \"text label\"");
  EXPECT_EQ(message_for("text\tsentence\tlabel\n"),
            "data.tsv:1: the header must name one column \"text\" (or \"sentence\"), between tabs, is "
            "\"text\tsentence\tlabel\"");
  EXPECT_EQ(message_for(""),
            "data.tsv:1: the header must name one column \"text\" (or \"sentence\"), between tabs, is \"\"");
}

TEST_F(ReadTsv, RowErrorsNameTheLine) {
  EXPECT_EQ(message_for("text\tlabel\na\t1\nno tab here\n"),
            "data.tsv:3: must have 2 fields between tabs, as the header, is \"no tab here\" with 1");
  EXPECT_EQ(message_for("text\tlabel\na\ttab\t1\n"),
            "data.tsv:2: must have 2 fields between tabs, as the header, is \"a\ttab\t1\" with 3");
  EXPECT_EQ(message_for("text\tlabel\na\t1\n\nb\t0\n"),
            "data.tsv:3: must have 2 fields between tabs, as the header, is \"\" with 1");
  EXPECT_EQ(message_for("text\tlabel\na\t1\nb\t\n"), "data.tsv:3: the label must not be empty, is \"\"");
  EXPECT_EQ(message_for("text\tlabel\na\t1\nb\t \r\n"), "data.tsv:3: the label must not be empty, is \" \"");
}

TEST_F(ReadTsv, FileErrorsNameTheFile) {
  EXPECT_EQ(message_for("text\tlabel\n"), "data.tsv: must have a row after the header, is without one");
  EXPECT_EQ(message_for("text\tlabel\na\t1\nb\t1\n"),
            "data.tsv: must have at least two different labels, is all \"1\"");
  EXPECT_NE(message_of([&] { read_tsv(folder_ / "missing.tsv"); }), "no InvalidInput");
}

TEST_F(ReadTsv, EvaluationTakesTheLabelsOfTheModel) {
  const Strings names = {"positive", "neutral", "negative"};
  EXPECT_EQ(read_tsv(file("text\tlabel\na\tnegative\nb\tnegative\n"), names),
            (TextData{.texts = {"a", "b"}, .labels = {2, 2}, .label_names = names}));
  EXPECT_EQ(message_of([&] { read_tsv(file("text\tlabel\na\tneutral\nb\tNeutral\n"), names); }),
            "data.tsv:3: the label must be one that the model knows (\"positive\", \"neutral\", \"negative\"), is "
            "\"Neutral\"");
}

}  // namespace
}  // namespace frostpipe
