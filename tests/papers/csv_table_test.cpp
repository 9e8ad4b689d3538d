#include "papers/csv_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CsvTables : public test::ScratchFolderTest {
 protected:
  CsvTable table_of(const std::string& content) {
    write_file_atomically(folder_ / "table.csv", content);
    return CsvTable(folder_ / "table.csv");
  }
};

TEST_F(CsvTables, HasFieldsByRowAndColumn) {
  const CsvTable table = table_of("name,count,share\nfirst,3,0.5\nsecond,,1e2\n");
  ASSERT_EQ(table.num_rows(), 2U);
  EXPECT_EQ(table.text(1, "name"), "second");
  EXPECT_EQ(table.integer(0, "count"), 3);
  EXPECT_TRUE(table.is_empty(1, "count"));
  EXPECT_FALSE(table.is_empty(0, "count"));
  EXPECT_DOUBLE_EQ(table.number(1, "share"), 100);
}

TEST_F(CsvTables, MayBeginWithAByteOrderMark) {
  EXPECT_EQ(table_of("\xEF\xBB\xBFname,count\nfirst,3\n").text(0, "name"), "first");
}

TEST_F(CsvTables, HasTextsInQuotesAndOneOfSomeWords) {
  const CsvTable table = table_of("note,count\n\"sum, added here\",7\n");
  EXPECT_EQ(table.text(0, "note"), "sum, added here");
  EXPECT_EQ(table.word(0, "count", {"6", "7"}), "7");
  EXPECT_THAT(message_of([&] { table.word(0, "count", {"6", "8"}); }), HasSubstr("table.csv:2: count: must be 6 or 8"));
  EXPECT_EQ(table.integer(0, "count"), 7);
}

TEST_F(CsvTables, SaysFileLineAndColumn) {
  const CsvTable table = table_of("name,count\nfirst,-1\nsecond,1.5\nthird,3 \n");
  const auto number_at = [&](std::size_t row) { return message_of([&] { table.number(row, "count"); }); };
  EXPECT_THAT(number_at(0), AllOf(HasSubstr("table.csv:2: count"), HasSubstr("must be a number from 0")));
  EXPECT_THAT(number_at(2), AllOf(HasSubstr("table.csv:4: count"), HasSubstr("3 ")));
  EXPECT_THAT(message_of([&] { table.integer(1, "count"); }), HasSubstr("table.csv:3: count"));
  EXPECT_THAT(message_of([&] { table.number(1, "count", 2); }), HasSubstr("must be a number from 2"));
  EXPECT_THAT(message_of([&] { table.text(0, "size"); }), AllOf(HasSubstr("table.csv:1"), HasSubstr("size")));
  EXPECT_THAT(message_of([&] { table_of("name,count\nfirst\n"); }),
              AllOf(HasSubstr("table.csv:2"), HasSubstr("2 comma-separated fields")));
}

}  // namespace
}  // namespace frostpipe
