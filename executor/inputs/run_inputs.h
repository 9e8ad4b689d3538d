#pragma once
#include <map>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "executor/execute.h"

namespace frostpipe {

// The inputs that every rank has read for itself must be the same on all hosts. Ranks that do not share a file system
// may have other files, and would silently train another model or on other data.

/// All files and options of a run, or of the measurement of a profile, as one rank has read them.
struct RunInputs {
  std::string host;
  std::map<std::string, std::string> values;  // by name ("--data", "--model, config.json", "seed"): a value or a hash
  std::map<std::string, std::string> paths;   // paths of inputs that are files, by name; not compared
};

/// Collects the inputs: the plan and its cluster, the data and the model's files (JSON, Jinja, text, safetensors) by a
/// hash of their contents; a data folder by a hash of its files' names and sizes, without hidden ones, and of the
/// samples made from it; settings and options that affect the result by their values; for a rehearsal its profile and
/// options. The profile by which rank 0 re-plans is not included, since the other ranks are told the result. Throws
/// InvalidInput for a file that cannot be read.
RunInputs run_inputs(const TrainOptions& options, const RunSettings& settings);

/// Does the same for the measurement of a profile: data, the model's files, and every option but the memory limit.
RunInputs run_inputs(const MeasureOptions& options);

/// Serializes the inputs to send them to other ranks.
std::string to_text(const RunInputs& inputs);

/// Compares the inputs of all ranks, which `texts` has by rank (to_text). Throws InvalidInput unless all equal those of
/// rank 0. The message names the host of the lowest rank that differs and the first input that does: "host b: my.tsv:
/// must be the same as on host a (9f...), is 3c..."
void require_equal_inputs(const std::vector<std::string>& texts);

}  // namespace frostpipe
