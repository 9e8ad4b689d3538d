#pragma once
#include <string>
#include <string_view>

// The pages that the tool writes have no scripts and load nothing from elsewhere. They are light or dark as the
// reader's system asks. All texts are HTML.

namespace frostpipe {

/// A page with a headline under a smaller line, and what follows them.
std::string html_page(std::string_view title, std::string_view kicker, std::string_view headline,
                      const std::string& body);

/// A part of a page; empty where it has no content.
std::string html_card(std::string_view title, std::string_view hint, const std::string& content);

/// A figure and what it means, for a `<div class="tiles">`.
std::string html_tile(const std::string& value, const std::string& meaning);

}  // namespace frostpipe
