#include "executor/data/text_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "profiles/error.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

Split split_of(const TextData& data, double fraction, std::uint64_t seed) { return hold_out(data.labels, static_cast<int>(data.label_names.size()), fraction, seed); }

using Strings = std::vector<std::string>;
using Ints = std::vector<int>;

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

// ---- Splitting ----------------------------------------------------------------------------------

/// sizes[l] samples of label l, one label after the other.
TextData with_labels(const std::vector<int>& sizes) {
  TextData data;
  for (std::size_t label = 0; label < sizes.size(); ++label) {
    data.label_names.push_back(std::to_string(label));
    data.labels.insert(data.labels.end(), static_cast<std::size_t>(sizes[label]), static_cast<int>(label));
  }
  data.texts.resize(data.labels.size());
  return data;
}

/// How many of each label.
Ints counts(const TextData& data, const Ints& samples) {
  Ints result(data.label_names.size());
  for (const int sample : samples) ++result[static_cast<std::size_t>(data.labels[static_cast<std::size_t>(sample)])];
  return result;
}

void expect_partition(const TextData& data, const Split& split) {
  EXPECT_TRUE(std::is_sorted(split.train.begin(), split.train.end()));
  EXPECT_TRUE(std::is_sorted(split.test.begin(), split.test.end()));
  Ints all = split.train;
  all.insert(all.end(), split.test.begin(), split.test.end());
  std::sort(all.begin(), all.end());
  Ints expected(data.labels.size());
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

TEST(HoldOut, TakesOfEachLabelInProportion) {
  const TextData data = with_labels({100, 50, 30, 20});
  const Split split = split_of(data, 0.1, 7);
  expect_partition(data, split);
  EXPECT_EQ(counts(data, split.test), (Ints{10, 5, 3, 2}));
}

TEST(HoldOut, LargestRemaindersGetTheRest) {
  // Quotas 2.5, 1.25, 1.25 of round(5.0) = 5: rounded down 2, 1, 1; the largest remainder is the first label's.
  const TextData data = with_labels({10, 5, 5});
  EXPECT_EQ(counts(data, split_of(data, 0.25, 1).test), (Ints{3, 1, 1}));
  // Ten labels of four at a tenth: 0.4 each, 4 in all; the earlier labels give them.
  const TextData many = with_labels(Ints(10, 4));
  EXPECT_EQ(counts(many, split_of(many, 0.1, 1).test), (Ints{1, 1, 1, 1, 0, 0, 0, 0, 0, 0}));
}

TEST(HoldOut, LeavesEveryLabelASampleForTraining) {
  const TextData data = with_labels({1, 2, 97});
  const Split split = split_of(data, 0.99, 3);
  expect_partition(data, split);
  EXPECT_EQ(counts(data, split.train), (Ints{1, 1, 1}));
  EXPECT_EQ(counts(with_labels({3, 3}), split_of(with_labels({3, 3}), std::nextafter(1.0, 0.0), 3).train),
            (Ints{1, 1}));
}

TEST(HoldOut, AnyFractionAboveZeroTakesAtLeastOne) {
  const TextData data = with_labels({3, 3});
  EXPECT_EQ(split_of(data, 0.0, 1).test, Ints{});
  EXPECT_EQ(split_of(data, 1e-9, 1).test.size(), 1u);
  EXPECT_THROW(split_of(with_labels({1, 1}), 0.5, 1), InvalidInput);
  EXPECT_EQ(split_of(with_labels({1, 1}), 0.0, 1).train, (Ints{0, 1}));
  for (const double fraction : {-0.1, 1.0, 2.0, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(split_of(data, fraction, 1), InvalidInput) << fraction;
}

TEST(HoldOut, DependsOnTheSeedAlone) {
  const TextData data = with_labels({50, 50});
  EXPECT_EQ(split_of(data, 0.2, 5), split_of(data, 0.2, 5));
  EXPECT_NE(split_of(data, 0.2, 5), split_of(data, 0.2, 6));
}

// Worked out by a second program in another language (mt19937_64, splitmix64 and Fisher-Yates written out).
TEST(HoldOut, IsTheSameOnEveryPlatform) {
  TextData alternating = with_labels({10, 10});
  for (std::size_t i = 0; i < 20; ++i) alternating.labels[i] = static_cast<int>(i % 2);
  EXPECT_EQ(split_of(alternating, 0.2, 42).test, (Ints{4, 9, 13, 18}));
}

TEST(HoldOut, ChoosesEverySampleAboutEquallyOften) {
  const TextData data = with_labels({10, 20});
  Ints chosen(30);
  for (std::uint64_t seed = 0; seed < 2000; ++seed)
    for (const int sample : split_of(data, 0.3, seed).test) ++chosen[static_cast<std::size_t>(sample)];
  // Expected 600; standard deviation sqrt(2000 * 0.3 * 0.7) = 20.5.
  EXPECT_GT(*std::min_element(chosen.begin(), chosen.end()), 600 - 5 * 21);
  EXPECT_LT(*std::max_element(chosen.begin(), chosen.end()), 600 + 5 * 21);
}

TEST(EpochOrder, IsTheSameOnEveryPlatform) {
  // As above, from a second program.
  EXPECT_EQ(epoch_order(10, 0, 0), (Ints{6, 1, 2, 4, 7, 5, 3, 0, 9, 8}));
  EXPECT_EQ(epoch_order(10, 0, 1), (Ints{7, 4, 3, 6, 9, 5, 2, 8, 0, 1}));
  EXPECT_EQ(epoch_order(10, 1, 0), (Ints{5, 0, 8, 7, 3, 1, 9, 6, 4, 2}));
  EXPECT_EQ(epoch_order(10, std::numeric_limits<std::uint64_t>::max(), 7), (Ints{5, 4, 1, 6, 9, 0, 8, 3, 2, 7}));
}

TEST(EpochOrder, IsAPermutation) {
  for (const int num_samples : {0, 1, 2, 3, 1000}) {
    Ints order = epoch_order(num_samples, 11, 4);
    std::sort(order.begin(), order.end());
    Ints expected(static_cast<std::size_t>(num_samples));
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(order, expected);
  }
}

TEST(EpochOrder, DiffersBetweenEpochsAndSeeds) {
  std::vector<Ints> orders;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (int epoch = 0; epoch < 10; ++epoch) orders.push_back(epoch_order(50, seed, epoch));
  std::sort(orders.begin(), orders.end());
  EXPECT_EQ(std::unique(orders.begin(), orders.end()), orders.end());
}

TEST(EpochOrder, EveryPermutationOfThreeIsAboutEquallyLikely) {
  std::vector<int> seen(27);
  for (int epoch = 0; epoch < 6000; ++epoch) {
    const Ints order = epoch_order(3, 2024, epoch);
    ++seen[static_cast<std::size_t>(9 * order[0] + 3 * order[1] + order[2])];
  }
  // Expected 1000 of each; standard deviation sqrt(6000 / 6 * 5 / 6) = 28.9.
  for (const int count : seen) EXPECT_TRUE(count == 0 || (count > 1000 - 150 && count < 1000 + 150)) << count;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 0), 27 - 6);
}

}  // namespace
}  // namespace frostpipe
