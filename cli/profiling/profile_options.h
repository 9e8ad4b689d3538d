#pragma once
#include <string>

#include "executor/execute.h"
#include "profiles/estimates/estimate.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// What `frostpipe profile` is told.
struct ProfileOptions {
  std::string model, data, output, cluster;
  std::string memory_limit;
  std::string like, hardware, graph;
  bool operators = false;
  int picture_size = 0, num_classes = 0;  // 0 = not given: ImageNet's
  int graph_samples = 1;
  EstimateOptions estimate;
  int num_nodes = 0;  // 0 = not given: one
  int num_ranks = 2;  // on each node
  std::string interface;
  MeasureOptions measure;
  std::string format;
};

/// Every option of `profile`, with its help.
void add_profile_options(CLI::App& command, ProfileOptions& options);

}  // namespace frostpipe
