#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "cli/shared/table.h"

namespace frostpipe {

/// The planners against each other on equal ground.

struct TitledTable {
  std::string title;
  Table table;
};

/// Every method on built-in models, by its simulated iteration, its gap to a lower bound and its planning time.
std::vector<TitledTable> method_tables();

/// PipeTransformer's own workloads on one machine of 8 ranks: what each part of planning a whole run gains over the
/// published rule at the same freezes.
std::vector<TitledTable> whole_run_tables();

// How long planning takes on published profiles. `data`: the folder that holds them. Both throw InvalidInput if it
// lacks a file.

/// PipeDream's (pipedream/NAME.graph.txt), by its own dynamic programme.
TitledTable pipedream_table(const std::filesystem::path& data);

/// Piper's (piper/bert32a100.json), by method "auto".
TitledTable piper_table(const std::filesystem::path& data);

/// All of them, the last two where `data` is not empty.
std::string planner_text(const std::string& data);

}  // namespace frostpipe
