#pragma once
#include <functional>
#include <string>
#include <vector>

#include "plan/summary.h"

// These functions tell which settings of several runs are equal, and which differ.

namespace frostpipe {

/// Returns what `text_of` returns for each run, each text that is not empty once, in the order of the runs: "8",
/// or "8 / 4".
std::string distinct_texts(const std::vector<RunSummary>& runs,
                           const std::function<std::string(const RunSummary&)>& text_of);

/// Names the settings that must be equal for a comparison and in which these runs differ, each with its values, such as
/// "model (minilm / resnet-18)", "data (115 / 230 training samples)", "seed (1 / 2)". The model of a run that `compare`
/// has not read (RunSummary::model is empty) counts as any model.
std::vector<std::string> differing_settings(const std::vector<RunSummary>& runs);

/// Says in one sentence whether the runs can be compared, and if not, why; empty for fewer than two runs.
std::string settings_sentence(const std::vector<RunSummary>& runs);

}  // namespace frostpipe
