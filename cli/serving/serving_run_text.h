#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "serving/data_plane/serving_run.h"

// Text and JSON about how models were served, simulated or for real.

namespace frostpipe {

struct ServedModelRun {
  std::string name;  // in tables: the model's name, and how it was served if that differs
  ServingRun run;
  ServingSummary summary;
};

/// Shows requests, throughput and latencies in a row for each model.
std::string models_table(const std::vector<ServedModelRun>& models);
/// Shows how busy each pool was.
std::string pools_table(const std::vector<ServedModelRun>& models);
/// Returns a line for each model that lost requests.
std::string losses_text(const std::vector<ServedModelRun>& models);

nlohmann::ordered_json serving_run_json(const ServingRun& run, const ServingSummary& summary);

}  // namespace frostpipe
