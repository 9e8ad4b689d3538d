#include "papers/published_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/read_table.h"
#include "cli/report/svg.h"
#include "cli/shared/table.h"

namespace frostpipe {
namespace {

constexpr std::size_t kMaxShownRows = 60;  // rows shown per group in text output

std::string in_percent(double fraction) { return fmt::format("{:+.1f}", 100 * fraction); }

std::string table_text(const PublishedTable& published) {
  using enum Table::Align;
  const std::vector<PublishedGroup> groups = groups_of(published.rows);
  Table rows(
      {{"run", left}, {"of", left}, {"measured", right}, {"predicted", right}, {"error [%]", right}, {"note", left}});
  for (const PublishedRow& row : published.rows) {
    const auto group = std::find_if(groups.begin(), groups.end(),
                                    [&](const PublishedGroup& g) { return g.name == row.group && g.what == row.what; });
    if (group->num_rows > kMaxShownRows) continue;
    rows.add_row({row.run, row.what, fmt::format("{:.3f}", row.measured), fmt::format("{:.3f}", row.predicted),
                  row.counts ? in_percent(row.predicted / row.measured - 1) : "-", row.note});
  }
  Table figures({{"group", left},
                 {"of", left},
                 {"count", right},
                 {"mean |error| [%]", right},
                 {"median", right},
                 {"largest", right},
                 {"bias", right},
                 {"rank order", right}});
  for (const PublishedGroup& group : groups) {
    const PredictionErrors& errors = group.errors;
    figures.add_row({group.name, group.what, std::to_string(errors.count), fmt::format("{:.1f}", 100 * errors.mean),
                     fmt::format("{:.1f}", 100 * errors.median), fmt::format("{:.1f}", 100 * errors.largest),
                     in_percent(errors.bias), fmt::format("{:.2f}", errors.rank_correlation)});
  }
  return fmt::format("Source: {}\n\n{}{}{}", published.source, rows.empty() ? "" : rows.to_string(),
                     rows.empty() ? "" : "\n", figures.to_string());
}

std::string table_json(const PublishedTable& published) {
  nlohmann::ordered_json json = {{"format", "frostpipe.published_bench"},
                                 {"version", 1},
                                 {"suite", published.suite},
                                 {"source", published.source}};
  for (const PublishedRow& row : published.rows)
    json["rows"].push_back({{"group", row.group},
                            {"of", row.what},
                            {"run", row.run},
                            {"measured", row.measured},
                            {"predicted", row.predicted},
                            {"counts", row.counts},
                            {"note", row.note}});
  for (const PublishedGroup& group : groups_of(published.rows))
    json["groups"].push_back({{"group", group.name},
                              {"of", group.what},
                              {"count", group.errors.count},
                              {"mean_error", group.errors.mean},
                              {"median_error", group.errors.median},
                              {"largest_error", group.errors.largest},
                              {"bias", group.errors.bias},
                              {"rank_correlation", group.errors.rank_correlation}});
  return json_text(json, 2) + "\n";
}

std::string table_csv(const PublishedTable& published) {
  std::string csv = csv_line({"group", "of", "run", "measured", "predicted", "counts", "note"});
  for (const PublishedRow& row : published.rows)
    csv += csv_line({row.group, row.what, row.run, fmt::format("{}", row.measured), fmt::format("{}", row.predicted),
                     fmt::format("{}", row.counts), row.note});
  return csv;
}

std::string html_cell(const std::string& text, bool is_number) {
  return fmt::format("<td{}>{}</td>", is_number ? " class=\"number-cell\"" : "", escape_html(text));
}

std::string table_html(const PublishedTable& published) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n<style>body {{ font: 14px "
      "system-ui, sans-serif; margin: 2em; }} "
      "table {{ border-collapse: collapse; margin: 1em 0; }} td, th {{ padding: 0.2em 0.8em; border-bottom: 1px solid "
      "#ddd; text-align: left; }} "
      ".number-cell {{ text-align: right; }} .out {{ color: #888; }}</style></head>\n<body><h1>The simulator against "
      "{0}</h1><p>{1}</p>\n",
      escape_html(published.suite), escape_html(published.source));
  html +=
      "<table><tr><th>group</th><th>of</th><th>count</th><th>mean |error| "
      "[%]</th><th>median</th><th>largest</th><th>bias</th><th>rank order</th></tr>\n";
  for (const PublishedGroup& group : groups_of(published.rows)) {
    const PredictionErrors& errors = group.errors;
    html += "<tr>" + html_cell(group.name, false) + html_cell(group.what, false) +
            html_cell(std::to_string(errors.count), true) + html_cell(fmt::format("{:.1f}", 100 * errors.mean), true) +
            html_cell(fmt::format("{:.1f}", 100 * errors.median), true) +
            html_cell(fmt::format("{:.1f}", 100 * errors.largest), true) + html_cell(in_percent(errors.bias), true) +
            html_cell(fmt::format("{:.2f}", errors.rank_correlation), true) + "</tr>\n";
  }
  html +=
      "</table>\n<table><tr><th>run</th><th>of</th><th>measured</th><th>predicted</th><th>error "
      "[%]</th><th>note</th></tr>\n";
  for (const PublishedRow& row : published.rows) {
    html += fmt::format("<tr{}>", row.counts ? "" : " class=\"out\"") + html_cell(row.run, false) +
            html_cell(row.what, false) + html_cell(fmt::format("{:.3f}", row.measured), true) +
            html_cell(fmt::format("{:.3f}", row.predicted), true) +
            html_cell(row.counts ? in_percent(row.predicted / row.measured - 1) : "-", true) +
            html_cell(row.note, false) + "</tr>\n";
  }
  return html + "</table></body></html>\n";
}

}  // namespace

std::string published_text(const PublishedTable& table, const std::string& format) {
  return format == "json"   ? table_json(table)
         : format == "csv"  ? table_csv(table)
         : format == "html" ? table_html(table)
                            : table_text(table);
}

}  // namespace frostpipe
