#pragma once
#include <string>
#include <vector>

#include "plan/trace.h"

namespace frostpipe {

/// Returns one iteration as a picture in HTML, as wide as the page: the predicted trace above the measured one on the
/// same time axis, with a lane per rank. Computation, and whatever else occupies a rank, fills the lane; messages are a
/// thin strip under it. A trace without spans is left out; without any, the text is empty. `lanes` has the lanes' names
/// if they are not ranks.
std::string timeline_html(const Trace& predicted, const Trace& measured, const std::vector<std::string>& lanes = {});

/// Returns the legend of timeline_html's colours as HTML.
std::string timeline_legend();

}  // namespace frostpipe
