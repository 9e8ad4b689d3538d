#include "executor/data/text_data.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using ::testing::HasSubstr;
using Strings = std::vector<std::string>;

class ReadTexts : public test::ScratchFolderTest {
 protected:
  std::filesystem::path file(std::string_view content) const { return ScratchFolderTest::file("data.tsv", content); }
  std::string message_for(std::string_view content) const {
    return message_of([&] { read_texts(file(content)); });
  }
};

TEST_F(ReadTexts, ReadsTextsAndNumbersTheirLabels) {
  EXPECT_EQ(
      read_texts(file("text\tlabel\ngood film\tpositive\nbad film\tnegative\nfine\tpositive\n")),
      (TextData{
          .texts = {"good film", "bad film", "fine"}, .labels = {1, 0, 1}, .label_names = {"negative", "positive"}}));
}

TEST_F(ReadTexts, TakesTheFormOfSst2) {
  EXPECT_EQ(read_texts(file(
                "sentence\tlabel\nhide new secretions from the parental units \t0\nthat loves its characters \t1\n")),
            (TextData{.texts = {"hide new secretions from the parental units ", "that loves its characters "},
                      .labels = {0, 1},
                      .label_names = {"0", "1"}}));
}

TEST_F(ReadTexts, FindsItsColumnsByNameAndIgnoresOthers) {
  const TextData data = read_texts(file("index\tlabel\tsource\ttext\n7\ta\tx\tone\n8\tb\t\ttwo\n"));
  EXPECT_EQ(data.texts, (Strings{"one", "two"}));
  EXPECT_EQ(data.label_names, (Strings{"a", "b"}));
  EXPECT_EQ(data.notes, (Strings{(folder_ / "data.tsv").string() + ": the field \"source\" is not used"}));
}

TEST_F(ReadTexts, OfPairsOneMustBeNamed) {
  const std::string table = "sentence1,sentence2,label\na,b c,0\nd,e f,1\n";
  EXPECT_EQ(message_for(table),
            "data.tsv:1: the header must name one text: pairs of texts are not supported (--text-column NAME trains on "
            "one of them), is \"sentence1,sentence2,label\"");
  const TextData data = read_texts(file(table), ColumnNames{.text = "sentence2", .label = {}});
  EXPECT_EQ(data.texts, (Strings{"b c", "e f"}));
  EXPECT_EQ(data.notes, (Strings{(folder_ / "data.tsv").string() + ": the field \"sentence1\" is not used"}));
  const auto path = ScratchFolderTest::file("data.jsonl", R"({"text": "a", "hypothesis": "b", "label": 0})");
  EXPECT_EQ(message_of([&] { read_texts(path); }),
            "data.jsonl:1: must have one text: pairs of texts are not supported (--text-column NAME trains on one of "
            "them), is an object with \"hypothesis\", \"label\", \"text\"");
}

TEST_F(ReadTexts, QuotesAndBackslashesAreCharacters) {
  EXPECT_EQ(read_texts(file("text\tlabel\n\"open\ta\n\"a \"\"b\"\"\"\tb\n\\t\ta\n")).texts,
            (Strings{"\"open", "\"a \"\"b\"\"\"", "\\t"}));
}

TEST_F(ReadTexts, ToleratesByteOrderMarkWindowsLineEndsAndEmptyLinesAtTheEnd) {
  const TextData expected{.texts = {"é", "e"}, .labels = {0, 1}, .label_names = {"a", "b"}};
  EXPECT_EQ(read_texts(file("text\tlabel\né\ta\ne\tb")), expected);
  EXPECT_EQ(read_texts(file("\xEF\xBB\xBFtext\tlabel\r\né\ta\r\ne\tb\r\n\r\n")), expected);
  EXPECT_EQ(read_texts(file("text\tlabel\né\ta\ne\tb\n\n\n")), expected);
}

// The same table in both forms, written by Python's csv module with the dialects excel and unix, and with the columns
// in the other order.
TEST_F(ReadTexts, TakesCsv) {
  const TextData expected{
      .texts = {"a, b", "say \"so\"", "two\nlines", "plain"}, .labels = {0, 1, 0, 1}, .label_names = {"x", "y, z"}};
  EXPECT_EQ(read_texts(file(
                "text,label\r\n\"a, b\",x\r\n\"say \"\"so\"\"\",\"y, z\"\r\n\"two\nlines\",x\r\nplain,\"y, z\"\r\n")),
            expected);
  EXPECT_EQ(read_texts(file("\"text\",\"label\"\n\"a, b\",\"x\"\n\"say \"\"so\"\"\",\"y, "
                            "z\"\n\"two\nlines\",\"x\"\n\"plain\",\"y, z\"\n")),
            expected);
  EXPECT_EQ(read_texts(file(
                "id,label,text\n1,x,\"a, b\"\n2,\"y, z\",\"say \"\"so\"\"\"\n3,x,\"two\nlines\"\n4,\"y, z\",plain")),
            expected);
  EXPECT_EQ(message_for("text,label\n\"a\nb\",x\n\"c\",\n"), "data.tsv:4: the label must not be empty, is \"\"")
      << "lines are counted within fields too";
}

TEST_F(ReadTexts, NotesEmptyTextsAndLabelsThatDifferByBlanks) {
  const TextData data =
      read_texts(file("text\tlabel\na\tpos\n\tneg\nb\tpos \n \tneg\nc\tpos\nd\tvery  pos\ne\tvery pos\n"));
  EXPECT_EQ(data.label_names.size(), 5u) << "they stay different";
  ASSERT_EQ(data.notes.size(), 3u);
  const auto without_folder = [&](std::size_t i) { return data.notes[i].substr(folder_.string().size() + 1); };
  EXPECT_EQ(without_folder(0), "data.tsv:3: 2 texts are empty, this being the first");
  EXPECT_EQ(without_folder(1),
            "data.tsv: these labels differ by blanks alone, and count as different ones: \"pos\" (2 times), \"pos \" "
            "(1 time)");
  EXPECT_EQ(without_folder(2),
            "data.tsv: these labels differ by blanks alone, and count as different ones: \"very  pos\" (1 time), "
            "\"very pos\" (1 time)");
  EXPECT_EQ(read_texts(file("text\tlabel\na\tb\n\tc\n")).notes,
            (Strings{(folder_ / "data.tsv").string() + ":3: the text is empty"}));
}

TEST_F(ReadTexts, SaysHowManyLinesAreNoText) {
  EXPECT_EQ(message_for("text\tlabel\na\tx\nna\xEFve\ty\nb\tx\ncaf\xE9\ty\n"),
            "data.tsv:3: must be UTF-8 text (of Latin-1 make it by: iconv -f latin1 -t utf8 OLD > NEW), is something "
            "else in 2 lines, this being the first");
  EXPECT_EQ(message_for("text\tlabel\na\tx\ncaf\xE9\ty\n"),
            "data.tsv:3: must be UTF-8 text (of Latin-1 make it by: iconv -f latin1 -t utf8 OLD > NEW), is something "
            "else in this line");
  EXPECT_EQ(message_for(std::string_view("text\tlabel\na\0\tx\nb\0\0\ty\n", 22)),
            "data.tsv:2: must be text without NUL bytes (drop them by: tr -d '\\0' < OLD > NEW), is with some in 2 "
            "lines, this being the first");
  EXPECT_EQ(message_for(std::string_view("\xFF\xFEt\0e\0", 6)),
            "data.tsv: must be UTF-8 text (iconv -f utf16 -t utf8 OLD > NEW), is UTF-16");
}

TEST_F(ReadTexts, SaysHowToUnpackGzip) {
  const std::string_view empty("\x1F\x8B\x08\0\0\0\0\0\0\x03\x03\0", 12);
  const std::filesystem::path path = ScratchFolderTest::file("data.tsv.gz", empty);
  EXPECT_EQ(message_of([&] { read_texts(path); }),
            fmt::format("data.tsv.gz: must be text (unpack it by: gunzip -c {} > data.tsv), is packed by gzip",
                        path.string()));
  EXPECT_THAT(message_for(empty), HasSubstr("data.tsv > data.tsv.unpacked), is packed by gzip"));
}

TEST_F(ReadTexts, RefusesAGitLfsPointer) {
  EXPECT_EQ(
      message_for("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
      "data.tsv: must be the file itself, which `git lfs pull` in its folder fetches, is a Git LFS pointer to it");
}

TEST_F(ReadTexts, TextsToLabelNeedNoLabels) {
  const Strings names = {"x", "y"};
  EXPECT_EQ(read_texts_to_label(file("text,label\na,y\n"), names),
            (TextData{.texts = {"a"}, .labels = {1}, .label_names = names}));
  EXPECT_EQ(read_texts_to_label(file("id\ttext\n1\ta\n2\tb\n"), names),
            (TextData{.texts = {"a", "b"}, .labels = {}, .label_names = names}));
  EXPECT_EQ(read_texts_to_label(file("text\na\n\"b, c\"\n"), names).texts, (Strings{"a", "b, c"}));
  EXPECT_EQ(message_of([&] { read_texts_to_label(file("text\na\nb, c\n"), names); }),
            "data.tsv:3: must have 1 comma-separated field, like the header, is \"b, c\" with 2 fields");
  EXPECT_EQ(read_texts_to_label(ScratchFolderTest::file("lines.txt", "a, b\n\n\tc\r\n\n"), names).texts,
            (Strings{"a, b", "", "\tc"}));
  EXPECT_EQ(message_of([&] { read_texts_to_label(ScratchFolderTest::file("none.txt", "\n"), names); }),
            "none.txt: must have a line of text, is without one");
}

TEST_F(ReadTexts, OrdersLabelsByNumberOnlyIfAllAreIntegers) {
  const auto names = [&](const Strings& labels) {
    std::string content = "label\ttext\n";
    for (const std::string& label : labels) content += label + "\tx\n";
    return read_texts(file(content)).label_names;
  };
  EXPECT_EQ(names({"10", "9", "-1", "9"}), (Strings{"-1", "9", "10"}));
  EXPECT_EQ(names({"10", "9", "x"}), (Strings{"10", "9", "x"}));
  EXPECT_EQ(names({"10", "9.5"}), (Strings{"10", "9.5"}));
  EXPECT_EQ(names({"2", "1", "01"}), (Strings{"01", "1", "2"}));
  EXPECT_EQ(names({"99999999999999999999", "5"}),
            (Strings{"5", "99999999999999999999"}));  // no 64-bit integer: by bytes
  EXPECT_EQ(names({"b", "B", "é"}), (Strings{"B", "b", "é"}));
}

TEST_F(ReadTexts, HeaderErrorsQuoteTheHeader) {
  EXPECT_EQ(
      message_for("good\t1\nbad\t0\n"),
      "data.tsv:1: the header must name one column \"text\" (or \"sentence\"), between tabs or commas, is \"good\t1\"");
  EXPECT_EQ(message_for("text\tclass\na\t1\n"),
            "data.tsv:1: the header must name one column \"label\" (or \"labels\"), between tabs or commas, is "
            "\"text\tclass\"");
  EXPECT_EQ(message_for("text label\na\t1\n"),
            "data.tsv:1: the header must name one column \"text\" (or \"sentence\"), between tabs or commas, is \"text "
            "label\"");
  EXPECT_EQ(message_for("text\tsentence\tlabel\n"),
            "data.tsv:1: the header must name one column \"text\" (or \"sentence\"), between tabs or commas, is "
            "\"text\tsentence\tlabel\"");
  EXPECT_EQ(message_for(""),
            "data.tsv:1: the header must name one column \"text\" (or \"sentence\"), between tabs or commas, is \"\"");
}

TEST_F(ReadTexts, RowErrorsNameTheLine) {
  EXPECT_EQ(message_for("text\tlabel\na\t1\nno tab here\n"),
            "data.tsv:3: must have 2 tab-separated fields, like the header, is \"no tab here\" with 1 field");
  EXPECT_EQ(message_for("text\tlabel\na\ttab\t1\n"),
            "data.tsv:2: must have 2 tab-separated fields, like the header, is \"a\ttab\t1\" with 3 fields");
  EXPECT_EQ(message_for("text\tlabel\na\t1\n\nb\t0\n"),
            "data.tsv:3: must have 2 tab-separated fields, like the header, is \"\" with 1 field");
  EXPECT_EQ(message_for("text\tlabel\na\t1\nb\t\n"), "data.tsv:3: the label must not be empty, is \"\"");
  EXPECT_EQ(message_for("text\tlabel\na\t1\nb\t \r\n"), "data.tsv:3: the label must not be empty, is \" \"");
}

TEST_F(ReadTexts, FileErrorsNameTheFile) {
  EXPECT_EQ(message_for("text\tlabel\n"), "data.tsv: must have a row after the header, is without one");
  EXPECT_EQ(message_for("text\tlabel\na\t1\nb\t1\n"),
            "data.tsv: must have at least two different labels, is all \"1\"");
  EXPECT_NE(message_of([&] { read_texts(folder_ / "missing.tsv"); }), "no InvalidInput");
}

TEST_F(ReadTexts, EvaluationTakesTheLabelsOfTheModel) {
  const Strings names = {"positive", "neutral", "negative"};
  EXPECT_EQ(read_texts(file("text\tlabel\na\tnegative\nb\tnegative\n"), names),
            (TextData{.texts = {"a", "b"}, .labels = {2, 2}, .label_names = names}));
  EXPECT_EQ(message_of([&] { read_texts(file("text\tlabel\na\tneutral\nb\tNeutral\n"), names); }),
            "data.tsv:3: the label must be one that the model knows (\"positive\", \"neutral\", \"negative\"), is "
            "\"Neutral\"");
}

// The same samples as a table and in every form of JSON.
TEST_F(ReadTexts, TakesJsonLinesAndArrays) {
  const auto read = [&](const std::string& name, std::string_view content, const ColumnNames& columns = {}) {
    return read_texts(ScratchFolderTest::file(name, content), columns);
  };
  const TextData expected{.texts = {"é\n", "b"}, .labels = {1, 0}, .label_names = {"0", "1"}};
  EXPECT_EQ(read("a.jsonl", "{\"text\": \"é\\n\", \"label\": 1, \"id\": [7]}\r\n\n{\"label\": 0, \"text\": \"b\"}"),
            expected);
  EXPECT_EQ(read("a.ndjson", "{\"sentence\": \"\\u00e9\\n\", \"label\": \"1\"}\n{\"label\": 0, \"sentence\": \"b\"}\n"),
            expected);
  EXPECT_EQ(read("a.json", "[{\"text\": \"é\\n\", \"label\": 1},\n{\"label\": 0, \"text\": \"b\"}]\n"), expected);
  EXPECT_EQ(read("own.jsonl", "{\"t\": \"é\\n\", \"l\": 1}\n{\"t\": \"b\", \"l\": 0}\n", {.text = "t", .label = "l"}),
            expected);
  EXPECT_EQ(read("own.csv", "l,t,text\n1,\"é\n\",7\n0,b,\n", {.text = "t", .label = "l"}), expected);
  EXPECT_EQ(
      read("truths.jsonl", "{\"text\": \"a\", \"label\": true}\n{\"text\": \"b\", \"label\": false}\n").label_names,
      (Strings{"false", "true"}));
  EXPECT_EQ(
      read_texts_to_label(ScratchFolderTest::file("none.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n"), {"0", "1"}),
      (TextData{.texts = {"a", "b"}, .labels = {}, .label_names = {"0", "1"}}));
}

TEST_F(ReadTexts, ErrorsInJsonNameLineAndField) {
  const auto refusal = [&](std::string_view content, const ColumnNames& columns = {}) {
    const std::filesystem::path path = ScratchFolderTest::file("data.jsonl", content);
    return message_of([&] { read_texts_to_label(path, {"0", "1"}, columns); });
  };
  const std::string first = "{\"text\": \"a\", \"label\": 0}\n";
  EXPECT_EQ(refusal(first + "{\"text\": \"a\", \"label\": 2}"),
            "data.jsonl:2: the label must be one that the model knows (\"0\", \"1\"), is \"2\"");
  EXPECT_EQ(refusal(first + "{\"text\": \"a\", \"label\": 0.5}"),
            "data.jsonl:2: label: must be a text, a whole number, true or false, is 0.5");
  EXPECT_EQ(
      refusal(first + "{\"text\": \"a\"}"),
      "data.jsonl:2: must have the field \"label\" (or \"labels\") (--label-column names another), is an object with "
      "\"text\"");
  EXPECT_EQ(refusal(first + "{\"label\": 0, \"body\": \"a\"}"),
            "data.jsonl:2: must have one field \"text\" (or \"sentence\") (--text-column names another), is an object "
            "with \"body\", \"label\"");
  EXPECT_EQ(refusal(first + "{\"text\": 3, \"label\": 0}"), "data.jsonl:2: text: must be a text, is 3");
  EXPECT_EQ(refusal("{\"text\": \"a\"}\n" + first),
            "data.jsonl:2: label: must be there in all lines or in none, is not "
            "in the first");
  EXPECT_EQ(refusal(first, {.text = "body", .label = {}}),
            "data.jsonl:1: must have one field \"body\" (--text-column names another), is an object with \"label\", "
            "\"text\"");
}

using Targets = std::vector<std::vector<double>>;

// The same labels in every form that `datasets` users have: lists of names in JSON and in a table, columns of 0 and 1.
TEST_F(ReadTexts, SeveralLabelsAreListsOfNamesOrColumnsOfOnesAndZeros) {
  const TextData expected{.texts = {"a", "b", "c"},
                          .problem_type = ProblemType::multi_label,
                          .labels = {},
                          .targets = {{1, 0, 1}, {0, 0, 0}, {0, 1, 0}},
                          .label_names = {"joy", "rage", "woe"}};
  const auto read = [&](const std::string& name, std::string_view content,
                        ProblemType otherwise = ProblemType::single_label) {
    return read_texts(ScratchFolderTest::file(name, content), {}, otherwise);
  };
  EXPECT_EQ(read("lists.jsonl", R"({"text": "a", "labels": ["woe", "joy"]}
{"text": "b", "labels": []}
{"text": "c", "labels": ["rage"]})"),
            expected);
  EXPECT_EQ(read("lists.csv", "text,label\na,\"[\"\"woe\"\", \"\"joy\"\"]\"\nb,\nc,rage\n", ProblemType::multi_label),
            expected);
  EXPECT_EQ(read("flags.csv", "id,text,joy,rage,woe\n7,a,1,0,1\n8,b,0,0,0\n9,c,0,1,0\n"), expected);
  EXPECT_EQ(read("flags.jsonl", R"({"text": "a", "joy": 1, "rage": 0, "woe": true, "id": 7}
{"text": "b", "joy": 0, "rage": 0, "woe": false, "id": 1}
{"text": "c", "joy": 0.0, "rage": 1.0, "woe": 0, "id": 0})"),
            expected);
  EXPECT_EQ(read("none_set.tsv", "text\tx\ty\na\t0\t1\nb\t0\t0\n").targets, (Targets{{0, 1}, {0, 0}}))
      << "a label that no text has";
}

TEST_F(ReadTexts, LabelsAreNumbersWhereTheModelOrAFractionSaysSo) {
  const auto read = [&](const std::string& name, std::string_view content,
                        ProblemType otherwise = ProblemType::single_label) {
    return read_texts(ScratchFolderTest::file(name, content), {}, otherwise);
  };
  const TextData expected{.texts = {"a", "b"},
                          .problem_type = ProblemType::regression,
                          .labels = {},
                          .targets = {{2.5}, {-3}},
                          .label_names = {"LABEL_0"}};
  EXPECT_EQ(read("a.csv", "text,label\na,2.5\nb,-3\n", ProblemType::regression), expected);
  EXPECT_EQ(read("a.jsonl", "{\"text\": \"a\", \"label\": 2.5}\n{\"text\": \"b\", \"label\": -3}\n"), expected);
  EXPECT_EQ(read("names.csv", "text,label\na,2.5\nb,-3\n").label_names, (Strings{"-3", "2.5"})) << "in a table: names";
  EXPECT_EQ(
      message_of([&] { read("bad.csv", "text,label\na,1\nb,much\n", ProblemType::regression); }),
      "bad.csv:3: the label must be a number, as config.json (by its problem_type or a single label) or a label with a "
      "fraction asks for regression, is \"much\"");
  EXPECT_EQ(
      message_of([&] { read("bad.jsonl", "{\"text\": \"a\", \"label\": 1.5}\n{\"text\": \"b\", \"label\": true}"); }),
      "bad.jsonl:2: label: the label must be a number, as config.json (by its problem_type or a single label) or a "
      "label with a fraction asks for regression, is true");
}

TEST_F(ReadTexts, ErrorsOfSeveralLabelsAreNamed) {
  const Strings names{"x", "y"};
  const auto refusal = [&](const std::string& name, std::string_view content) {
    const std::filesystem::path path = ScratchFolderTest::file(name, content);
    return message_of([&] { read_texts(path, names, {}, ProblemType::multi_label); });
  };
  EXPECT_EQ(refusal("a.csv", "text,label\na,[x\n"),
            "a.csv:2: the labels must be a list of JSON, such as [\"a\", \"b\"], or one name, is \"[x\"");
  EXPECT_EQ(refusal("a.jsonl", R"({"text": "a", "labels": ["x", 0.5]})"),
            "a.jsonl:1: labels: must be a text, a whole number, true or false, is 0.5");
  EXPECT_EQ(refusal("a.jsonl", R"({"text": "a", "labels": ["z"]})"),
            "a.jsonl:1: the label must be one that the model knows (\"x\", \"y\"), is \"z\"");
  const std::string flags =
      "a.jsonl:1: labels: the labels must be different names; labels as 0 and 1 must be columns, one for each label, "
      "is ";
  EXPECT_EQ(refusal("a.jsonl", R"({"text": "a", "labels": [0, 1, 0]})"), flags + "\"0\" twice");
  EXPECT_EQ(refusal("a.jsonl", R"({"text": "a", "labels": [true, false, true]})"), flags + "\"true\" twice");
  EXPECT_EQ(refusal("a.csv", "text,x,w\na,1,0\n"),
            "a.csv:1: the header must name one column \"label\" (or \"labels\"), between tabs or commas, is "
            "\"text,x,w\"")
      << "y has no column";
  EXPECT_EQ(
      read_texts_to_label(ScratchFolderTest::file("b.csv", "text,x,w\na,1,0\n"), names, {}, ProblemType::multi_label)
          .targets,
      Targets{})
      << "texts to label need no labels";
}

}  // namespace
}  // namespace frostpipe
