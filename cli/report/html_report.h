#pragma once
#include <optional>
#include <string>

#include "plan/comparison.h"
#include "profiles/cluster.h"

namespace frostpipe {

struct HtmlReportInput {
  /// The runs to show; a single run is a comparison of one.
  Comparison comparison;
  /// File from which the comparison was read, for the footer.
  std::string source;
  /// If set, the page shows the memory limits of its devices.
  std::optional<Cluster> cluster;
};

/// Returns one self-contained HTML page, without scripts, light or dark as the reader's system is.
std::string html_report(const HtmlReportInput& input);

}  // namespace frostpipe
