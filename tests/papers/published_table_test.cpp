// Oracle: worked by hand.
#include "papers/published_table.h"

#include <gtest/gtest.h>

namespace frostpipe {
namespace {

PublishedRow row_of(std::string group, std::string what, double measured, double predicted, std::string base = "") {
  return {.group = std::move(group),
          .what = std::move(what),
          .run = "",
          .base = std::move(base),
          .measured = measured,
          .predicted = predicted,
          .note = ""};
}

TEST(GroupsOf, RowsOfOneBaseCountAsOne) {
  // 10 % for the base's two rows together (0 and 20), 30 % for the third.
  const auto groups = groups_of({row_of("g", "s", 1, 1, "b"), row_of("g", "s", 2, 2.4, "b"), row_of("g", "s", 10, 13)});
  ASSERT_EQ(groups.size(), 1U) << "all rows are one group: no other is added";
  EXPECT_EQ(groups[0].num_rows, 3U);
  EXPECT_EQ(groups[0].errors.count, 2);
  EXPECT_NEAR(groups[0].errors.mean, 0.20, 1e-12);
}

TEST(GroupsOf, AllRowsOfAQuantityFollowWhereItHasSeveralGroups) {
  PublishedRow wrong = row_of("a", "s", 1, 100);
  wrong.counts = false;
  const auto groups = groups_of({row_of("a", "s", 10, 11), wrong, row_of("b", "s", 10, 7), row_of("a", "GB", 10, 10)});
  ASSERT_EQ(groups.size(), 5U);
  const auto expect = [&](int index, const char* name, const char* what, std::size_t rows, double mean) {
    EXPECT_EQ(groups[index].name, name);
    EXPECT_EQ(groups[index].what, what);
    EXPECT_EQ(groups[index].num_rows, rows);
    EXPECT_NEAR(groups[index].errors.mean, mean, 1e-12);
  };
  expect(0, "a", "s", 2, 0.1);  // the wrong figure is shown, but does not count
  expect(1, "b", "s", 1, 0.3);
  expect(2, "a", "GB", 1, 0);
  expect(3, "all", "s", 3, 0.2);
  expect(4, "all", "GB", 1, 0);
}

}  // namespace
}  // namespace frostpipe
