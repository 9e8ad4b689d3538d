#pragma once
#include <map>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.h"
#include "executor/execute.h"

namespace frostpipe {

// What every rank has read for itself must be the same on all hosts: ranks that do not share their files may have other
// ones, and would train another model or on other data without a word.

/// Everything that a run, or the measuring of a profile, reads or is told.
struct RunInputs {
  std::string host;
  std::map<std::string, std::string> values;  // by what they are for: "--data", "--model, config.json", "seed"
  std::map<std::string, std::string> paths;   // of those that are files; they may differ from host to host
};

/// The plan and its cluster, data and the model's files (JSON, Jinja, text, safetensors) by a hash of their contents, a
/// data folder by one of its files' names and sizes and the samples that were made of it; settings and options that the
/// result depends on as they are, and of a rehearsal its profile and what is emulated. The profile that rank 0 plans
/// again by is its own affair: the others are told what it has chosen. Throws InvalidInput for a file that cannot be
/// read.
RunInputs run_inputs(const TrainOptions& options, const RunSettings& settings);

/// The same of a profile that is to be measured: data, the model's files, and every option.
RunInputs run_inputs(const MeasureOptions& options);

/// What a rank tells the others of its inputs.
std::string to_text(const RunInputs& inputs);

/// `texts`: those of all ranks, by rank. Throws InvalidInput unless all have the values of rank 0, which names the
/// lowest rank's host that has not, and what differs: "host b: my.tsv: must be the same as on host a (9f...), is 3c..."
void require_equal_inputs(const std::vector<std::string>& texts);

}  // namespace frostpipe
