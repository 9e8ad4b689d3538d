#pragma once
#include <string>

#include "executor/execute.h"
#include "profiles/estimates/estimate.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// The options of `frostpipe profile`.
struct ProfileOptions {
  std::string model, data, output, cluster;
  std::string memory_limit;
  std::string like, hardware, graph;
  int graph_samples = 1;
  EstimateOptions estimate;
  int num_nodes = 1;
  int num_ranks = 2;  // on each node
  std::string interface;
  MeasureOptions measure;
  std::string format;
};

void add_profile_options(CLI::App& command, ProfileOptions& options);

}  // namespace frostpipe
