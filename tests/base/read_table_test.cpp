#include "base/read_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace frostpipe {
namespace {

using Table = std::vector<std::vector<std::string>>;

Table fields_of(std::string_view content) {
  Table table;
  for (const TableRow& row : read_table("t", content)) table.push_back(row.fields);
  return table;
}

std::string message_for(std::string_view content) {
  try {
    read_table("t", content);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "no InvalidInput";
}

// The examples of RFC 4180, section 2.
TEST(ReadTable, TakesCsvAsRfc4180HasIt) {
  EXPECT_EQ(fields_of("aaa,bbb,ccc\r\nzzz,yyy,xxx"), (Table{{"aaa", "bbb", "ccc"}, {"zzz", "yyy", "xxx"}}));
  EXPECT_EQ(fields_of("\"aaa\",\"bbb\",\"ccc\"\r\nzzz,yyy,xxx\r\n"),
            (Table{{"aaa", "bbb", "ccc"}, {"zzz", "yyy", "xxx"}}));
  EXPECT_EQ(fields_of("\"aaa\",\"b\r\nbb\",\"ccc\"\r\nzzz,yyy,xxx"),
            (Table{{"aaa", "b\r\nbb", "ccc"}, {"zzz", "yyy", "xxx"}}));
  EXPECT_EQ(fields_of("\"aaa\",\"b\"\"bb\",\"ccc\""), (Table{{"aaa", "b\"bb", "ccc"}}));
}

TEST(ReadTable, KeepsBlanksAndQuotesWithinAField) {
  EXPECT_EQ(fields_of(" a ,5\" wide\n,\"\"\nsingle\rreturn,x"),
            (Table{{" a ", "5\" wide"}, {"", ""}, {"single\rreturn", "x"}}));
}

TEST(ReadTable, TellsTsvByATabInTheFirstLine) {
  EXPECT_EQ(fields_of("a,b\tc\n\"d\te\n"), (Table{{"a,b", "c"}, {"\"d", "e"}}));
  EXPECT_EQ(fields_of("a,b\nc\t,d\n"), (Table{{"a", "b"}, {"c\t", "d"}}));
}

TEST(ReadTable, SkipsEmptyLinesAtTheEndAlone) {
  EXPECT_EQ(fields_of("a\n\nb\n\r\n\n"), (Table{{"a"}, {""}, {"b"}}));
  EXPECT_EQ(fields_of(""), Table{});
}

TEST(ReadTable, NamesTheLineOfADamagedRow) {
  const std::string rule =
      "a field that begins with a double quote must end with one, double those within, and be followed by a comma or "
      "the line's end";
  EXPECT_EQ(message_for("a,b\n\"two\nlines\",x\n\"open,y\n"), "t:4: " + rule + ", is \"\"open,y\"");
  EXPECT_EQ(message_for("a,b\n\"c\" d,e\n"), "t:2: " + rule + ", is \"\"c\" d,e\"");
  EXPECT_EQ(message_for("a,b\nc\n"), "t:2: must have 2 comma-separated fields, like the header, is \"c\" with 1 field");
}

TEST(CsvLine, IsReadAgainAsItWas) {
  const std::vector<std::string> fields = {"plain", "", "a,b", "say \"so\"", "two\r\nlines", " blank "};
  EXPECT_EQ(csv_line(fields), "plain,,\"a,b\",\"say \"\"so\"\"\",\"two\r\nlines\", blank \n");
  EXPECT_EQ(fields_of(csv_line(fields)), Table{fields});
}

}  // namespace
}  // namespace frostpipe
