#include "cli/shared/table.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace frostpipe {
namespace {

using enum Table::Align;

TEST(Table, AlignsItsColumnsUnderARule) {
  Table table({{"name", left}, {"ms", right}});
  EXPECT_TRUE(table.empty());
  table.add_row({"a", "1.5"});
  table.add_row({"longer", "10"});
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.to_string(),
            "name     ms\n"
            "------  ---\n"
            "a       1.5\n"
            "longer   10\n");
}

TEST(Table, HasNoTrailingBlanks) {
  Table table({{"a", right}, {"note", left}});
  table.add_row({"1", ""});
  table.add_row({"2", "x"});
  EXPECT_EQ(table.to_string(), "a  note\n-  ----\n1\n2  x\n");
}

TEST(Table, CountsCharactersNotBytes) {
  Table table({{"label", left}, {"n", right}});
  table.add_row({"Käse", "1"});
  table.add_row({"cheese", "2"});
  EXPECT_EQ(table.to_string(), "label   n\n------  -\nKäse    1\ncheese  2\n");
}

TEST(Table, WantsACellForEachColumn) {
  Table table({{"a", left}, {"b", left}});
  EXPECT_ANY_THROW(table.add_row({"1"}));
}

TEST(Cells, GiveShortTimesMoreDecimals) {
  EXPECT_EQ(in_milliseconds(1'234'567), "1.235");
  EXPECT_EQ(in_milliseconds(9'999'999), "10.000");
  EXPECT_EQ(in_milliseconds(10'000'000), "10.0");
  EXPECT_EQ(in_milliseconds(123'456'789), "123.5");
  EXPECT_EQ(in_milliseconds(0), "-") << "nothing measured or predicted";
}

TEST(Cells, GiveMemoryInWholeMebibytes) {
  EXPECT_EQ(in_mebibytes(Bytes{30} << 20), "30");
  EXPECT_EQ(in_mebibytes((Bytes{30} << 20) + (Bytes{3} << 18)), "31");
  EXPECT_EQ(in_mebibytes(std::vector<Bytes>{Bytes{10} << 20, Bytes{20} << 20}), "10 / 20");
  EXPECT_EQ(in_mebibytes(std::vector<Bytes>{}), "-");
  std::vector<Bytes> ascending;
  for (Bytes mebibytes = 101; mebibytes <= 164; ++mebibytes) ascending.push_back(mebibytes << 20);
  EXPECT_EQ(in_mebibytes(ascending), "101 to 164 on 64 ranks");
}

TEST(Cells, GiveLittleMemoryWithOneDecimal) {
  EXPECT_EQ(in_mebibytes(std::vector<Bytes>{Bytes{518} << 10, Bytes{440} << 10}), "0.5 / 0.4");
  EXPECT_EQ(in_mebibytes((Bytes{10} << 20) - (Bytes{1} << 18)), "9.8") << "9.75";
  EXPECT_EQ(in_mebibytes((Bytes{10} << 20) - 1), "10") << "not 10.0";
  EXPECT_EQ(in_mebibytes(Bytes{0}), "0");
}

TEST(Cells, SideBySideCountThreeEqualOnesOrMore) {
  EXPECT_EQ(side_by_side({}), "-");
  EXPECT_EQ(side_by_side({"7"}), "7");
  EXPECT_EQ(side_by_side({"9", "9"}), "9 / 9");
  EXPECT_EQ(side_by_side({"12", "15", "9", "9", "9", "9", "9", "9"}), "12 / 15 / 9 x6");
  EXPECT_EQ(side_by_side({"9", "9", "9", "1", "9"}), "9 x3 / 1 / 9");
}

TEST(Cells, NumbersOfMicroBatchesHaveAtMostTwoDecimals) {
  EXPECT_EQ(in_micro_batches({8, 7.5, 23.0 / 3, 100}), "8 / 7.5 / 7.67 / 100");
  EXPECT_EQ(in_micro_batches({0}), "0");
}

TEST(Cells, ErrorsArePercentOfWhatWasMeasured) {
  EXPECT_EQ(error_percent(104, 100), "+4.0");
  EXPECT_EQ(error_percent(75, 100), "-25.0");
  EXPECT_EQ(error_percent(0, 100), "-");
  EXPECT_EQ(error_percent(100, 0), "-");
}

}  // namespace
}  // namespace frostpipe
