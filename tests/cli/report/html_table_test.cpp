#include "cli/report/html_table.h"

#include <gtest/gtest.h>

#include "tests/cli/markup.h"

namespace frostpipe {
namespace {

TEST(HtmlTable, NamesItsColumnInEveryCell) {
  HtmlTable table({{.header = "run", .name = "run", .classes = "l"},
                   {.header = "time<small>ms</small>", .name = "time <in> ms", .classes = "strong"}});
  table.add_row({"<b>a</b>", "1"});
  EXPECT_EQ(table.to_string(),
            "<div class=\"scroll\"><table><thead><tr><th class=\"l\">run</th>"
            "<th class=\"strong\">time<small>ms</small></th></tr></thead>\n<tbody>\n"
            "<tr><td class=\"l\" data-label=\"run\"><b>a</b></td>"
            "<td class=\"strong\" data-label=\"time &lt;in&gt; ms\">1</td></tr>\n"
            "</tbody></table></div>\n");
  EXPECT_EQ(test::fault_of(table.to_string()), "");
}

TEST(HtmlTable, WantsACellForEachColumn) {
  HtmlTable table({{.header = "a", .name = "a", .classes = ""}});
  EXPECT_ANY_THROW(table.add_row({}));
}

}  // namespace
}  // namespace frostpipe
