#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "serving/plan/serving_plan.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// A rate of requests: per second, of all models together; or as a multiple of each model's planned throughput.
struct RequestRate {
  double value = 1;
  bool is_multiple = true;
};

/// The requests that `frostpipe serving simulate` and `run` generate. A field is empty where its option is not given.
struct ServingLoadOptions {
  std::optional<RequestRate> rate;
  std::optional<double> seconds;
  std::string arrivals;
  std::optional<std::uint64_t> seed;
};

/// Adds --rate, --arrivals, --seconds and --seed.
void add_serving_load_options(CLI::App& command, ServingLoadOptions& options);

/// Returns whether any of the options is given.
bool is_given(const ServingLoadOptions& options);

/// The requests of a run.
struct ServingLoad {
  std::string source;                              // "poisson arrivals" or the file's name
  std::optional<std::uint64_t> seed;               // none if nothing is random
  double requests_per_second = 0;                  // of all models together, requested or recorded
  Nanoseconds window_ns = 0;                       // the time in which requests arrive
  std::vector<std::vector<Nanoseconds>> arrivals;  // [model][request]
};

/// Makes the requests. A rate per second is shared out by the models' weights. Named arrivals come by default at the
/// planned throughput, for 30 s. Recorded arrivals are stretched to the rate, if one is given, and dealt to the models
/// at random. Throws InvalidInput.
ServingLoad serving_load(const ServingPlan& plan, const ServingLoadOptions& options);

}  // namespace frostpipe
