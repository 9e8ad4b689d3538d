#include "cli/report/report_style.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "tests/cli/markup.h"

namespace frostpipe {
namespace {

std::set<std::string> all(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) found.insert((*at)[1]);
  return found;
}

TEST(ReportStyle, DefinesEveryColourThatItUses) {
  const std::string style(report_style());
  const std::set<std::string> used = all(style, R"(var\((--[a-z0-9-]+)\))");
  const std::set<std::string> defined = all(style, R"((--[a-z0-9-]+):)");
  EXPECT_FALSE(used.empty());
  for (const std::string& name : used) EXPECT_TRUE(defined.contains(name)) << name;
  for (const std::string& name : defined) EXPECT_TRUE(used.contains(name)) << name;
}

TEST(ReportStyle, ClosesItsBracesAndLoadsNothing) {
  const std::string style(report_style());
  EXPECT_EQ(test::count_of("{", style), test::count_of("}", style));
  EXPECT_EQ(style.find("url("), std::string::npos);
  EXPECT_EQ(style.find("@import"), std::string::npos);
}

}  // namespace
}  // namespace frostpipe
