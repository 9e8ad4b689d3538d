#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "cli/shared/table.h"

namespace frostpipe {

/// A comparison of the planners under equal conditions.

struct TitledTable {
  std::string title;
  Table table;
};

/// Every method on built-in models, by its simulated iteration, its gap to a lower bound and its planning time.
std::vector<TitledTable> method_tables();

/// PipeTransformer's own workloads on one machine of 8 ranks: the gain of each part of planning a whole run over the
/// published rule, with the same freezes.
std::vector<TitledTable> whole_run_tables();

// The time of planning with published profiles. `data`: their folder. Both throw InvalidInput if it lacks a file.

/// PipeDream's profiles (pipedream/NAME.graph.txt), planned by its own dynamic programme.
TitledTable pipedream_table(const std::filesystem::path& data);

/// Piper's profile (piper/bert32a100.json), planned by method "auto".
TitledTable piper_table(const std::filesystem::path& data);

/// All tables, the last two only if `data` is not empty.
std::string planner_text(const std::string& data);

}  // namespace frostpipe
