#include "cli/report/html_page.h"

#include <fmt/format.h>

#include "cli/report/report_style.h"

namespace frostpipe {

std::string html_page(std::string_view title, std::string_view kicker, std::string_view headline,
                      const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<title>{}</title>\n<style>{}</style></head>\n<body><main>\n<header><p class=\"kicker\">{}</p>\n<h1>{}</h1>\n"
      "{}</main></body></html>\n",
      title, report_style(), kicker, headline, body);
}

std::string html_card(std::string_view title, std::string_view hint, const std::string& content) {
  if (content.empty()) return "";
  return fmt::format("<section class=\"card\"><h2>{}</h2>\n<p class=\"hint\">{}</p>\n{}</section>\n", title, hint,
                     content);
}

std::string html_tile(const std::string& value, const std::string& meaning) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", value, meaning);
}

}  // namespace frostpipe
