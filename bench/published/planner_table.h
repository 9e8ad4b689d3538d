#pragma once
#include <string>

namespace frostpipe {

/// The planners against each other on equal ground: every method on built-in models by its simulated iteration, gap and
/// planning time; what each part of planning a whole run gains over the published rule at the same freezes; and with
/// `data`, the folder of PipeDream's and Piper's profiles (pipedream/NAME.graph.txt, piper/bert32a100.json), how long
/// planning takes there. Throws InvalidInput if the folder lacks a file.
std::string planner_text(const std::string& data);

}  // namespace frostpipe
