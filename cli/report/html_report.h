#pragma once
#include <optional>
#include <string>

#include "plan/comparison.h"
#include "profiles/cluster.h"

namespace frostpipe {

struct HtmlReportInput {
  /// The runs to show; a single run is a comparison of one.
  Comparison comparison;
  /// File that the comparison was read from, for the footer.
  std::string source;
  /// Draws the ranks' memory limits.
  std::optional<Cluster> cluster;
};

/// One self-contained HTML page: no script, nothing is loaded from elsewhere; light or dark as the reader's system
/// asks.
std::string html_report(const HtmlReportInput& input);

}  // namespace frostpipe
