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

/// The requests that `frostpipe serving simulate` and `run` generate. A field is empty where its option is not given.
struct ServingLoadOptions {
  std::optional<double> rate, load_factor, seconds;
  std::string arrivals, arrivals_column;
  std::optional<std::uint64_t> seed;
};

/// Adds --rate, --load-factor, --arrivals, --arrivals-column, --seconds and --seed.
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

/// Makes the requests. A load factor, by default 1, is a multiple of each model's planned throughput; a rate is shared
/// out by the models' weights. Named arrivals last for 30 s by default. Recorded arrivals are stretched to the load, if
/// one is given, and dealt to the models at random. Throws InvalidInput and UsageError.
ServingLoad serving_load(const ServingPlan& plan, const ServingLoadOptions& options);

}  // namespace frostpipe
