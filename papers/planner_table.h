#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "cli/shared/table.h"

namespace frostpipe {

/// These tables compare the planners under equal conditions.

struct TitledTable {
  std::string title;
  Table table;
};

/// Returns, for every method on built-in models, the simulated iteration, its gap to a lower bound and the planning
/// time.
std::vector<TitledTable> method_tables();

/// Returns, for PipeTransformer's own workloads on one machine of 8 ranks, what each part of planning a whole run gains
/// over the published rule, with the same freezes.
std::vector<TitledTable> whole_run_tables();

// The next two functions return plans for published profiles, which are in the folder `data`, and the time that
// planning takes. They throw InvalidInput if the folder lacks a file.

/// Plans PipeDream's profiles (pipedream/NAME.graph.txt) by its own dynamic program.
TitledTable pipedream_table(const std::filesystem::path& data);

/// Plans Piper's profile (piper/bert32a100.json) by method "auto".
TitledTable piper_table(const std::filesystem::path& data);

/// Returns all tables as text, the last two only if `data` is not empty.
std::string planner_text(const std::string& data);

}  // namespace frostpipe
