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

/// What `frostpipe simulate` and `serve` are told of the requests for a serving plan. What is empty was not given.
struct ServingLoadOptions {
  std::optional<double> rate, load_factor, seconds;
  std::string arrivals, arrivals_column;
  std::optional<std::uint64_t> seed;
};

/// --rate, --load-factor, --arrivals, --arrivals-column, --seconds, --seed.
void add_serving_load_options(CLI::App& command, ServingLoadOptions& options);

/// "--rate", the first of the options that was given; empty if none was.
std::string first_given(const ServingLoadOptions& options);

/// The requests of a run.
struct ServingLoad {
  std::string source;                              // "poisson arrivals" or the file's name
  std::optional<std::uint64_t> seed;               // none where nothing is random
  double requests_per_second = 0;                  // of all models, asked for or recorded
  Nanoseconds window_ns = 0;                       // in which they arrive
  std::vector<std::vector<Nanoseconds>> arrivals;  // [model][request]
};

/// By a load factor (1 where nothing is said), each model gets so much of its planned throughput; by a rate, its part
/// by weight. Named arrivals last for 30 s where nothing is said. Recorded ones are stretched to the load, or as they
/// are where none is given, and dealt to the models at random. Throws InvalidInput; UsageError where options contradict
/// each other.
ServingLoad serving_load(const ServingPlan& plan, const ServingLoadOptions& options);

}  // namespace frostpipe
