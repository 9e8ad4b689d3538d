#pragma once
#include <string>
#include <vector>

#include "plan/trace.h"

namespace frostpipe {

/// One iteration as a picture in HTML, as wide as the page: the predicted trace above the measured one on the same time
/// axis, a lane per rank. Compute and what else holds a rank fills the lane; messages on the link run as a thin strip
/// under it. A trace without spans is left out; empty if both are.
/// `lanes`: their names where they are not ranks.
std::string timeline_html(const Trace& predicted, const Trace& measured, const std::vector<std::string>& lanes = {});

/// The colours of timeline_html explained, as HTML.
std::string timeline_legend();

}  // namespace frostpipe
