#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "serving/simulator/serving_run.h"

// How models were served, simulated or for real, as text and as JSON.

namespace frostpipe {

struct ServedModelRun {
  std::string name;  // in tables: the model's, and how it was served where that differs
  ServingRun run;
  ServingSummary summary;
};

/// Requests, throughput and latencies; a row for each.
std::string models_table(const std::vector<ServedModelRun>& models);
/// What each pool did.
std::string pools_table(const std::vector<ServedModelRun>& models);
/// A line for each that lost requests.
std::string losses_text(const std::vector<ServedModelRun>& models);

nlohmann::ordered_json serving_run_json(const ServingRun& run, const ServingSummary& summary);

}  // namespace frostpipe
