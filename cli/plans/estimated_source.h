#pragma once
#include <optional>
#include <string>

#include "profiles/estimates/estimate.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace frostpipe {

/// A model and devices that `frostpipe plan` estimates by itself, in place of a profile and a cluster.
struct EstimatedSource {
  std::string model, hardware = "H100";
  int num_nodes = 1, devices_per_node = 8;
  std::optional<DType> dtype;  // none = bfloat16, or float32 on devices that lack it
};

/// Adds --model and what needs it. Returns --model.
CLI::Option* add_estimated_source(CLI::App& command, EstimatedSource& source);

/// Estimates the source's profile and cluster, with all powers of two of tensor ranks that fit on a node and divide the
/// attention heads, with sequence parallelism too if `sequence_parallel`. `tokens` is the length of a sample; 0 = the
/// model's longest. Prints a note if the devices lack the type to compute in.
Estimate estimate_of(const EstimatedSource& source, int tokens, int global_batch_size, bool sequence_parallel);

}  // namespace frostpipe
