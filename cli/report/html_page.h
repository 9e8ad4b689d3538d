#pragma once
#include <string>
#include <string_view>

// The pages that the tool writes have no scripts and load nothing from elsewhere. They are light or dark, as the
// reader's system is. All arguments are HTML; nothing is escaped.

namespace frostpipe {

/// Returns a page: the small line `kicker`, the headline, and the body.
std::string html_page(std::string_view title, std::string_view kicker, std::string_view headline,
                      const std::string& body);

/// Returns a section of a page with a heading and a line that explains it; an empty text if it has no content.
std::string html_card(std::string_view title, std::string_view hint, const std::string& content);

/// Returns a figure and what it means, for a `<div class="tiles">`.
std::string html_tile(const std::string& value, const std::string& meaning);

}  // namespace frostpipe
