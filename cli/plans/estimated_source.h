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

/// Adds --model and the options that need it. Returns --model.
CLI::Option* add_estimated_source(CLI::App& command, EstimatedSource& source);

/// Estimates the source's profile and cluster, for all numbers of tensor ranks that are powers of two and divide the
/// devices of a node and the attention heads, with sequence parallelism too if `sequence_parallel`. `tokens` is the
/// length of a sample; 0 = the default of find_model. Prints a note if the devices lack the type to compute in.
Estimate estimate_of(const EstimatedSource& source, int tokens, int global_batch_size, bool sequence_parallel);

}  // namespace frostpipe
