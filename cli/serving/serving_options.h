#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace frostpipe {

/// Of their options in the help.
inline constexpr const char* kServingGroup = "Serving";

/// What `frostpipe plan` is told where it plans how models are served.
struct ServingOptions {
  /// "100ms" for every model, or "NAME=100ms" for one.
  std::vector<std::string> objectives;
  std::vector<std::string> weights, required_rates;  // "2" or "NAME=2"
  std::vector<std::string> heads, shared_layers;     // "3" or "NAME=3"
  std::string goal = "throughput";
  double margin = 0.4;
  int most_partitions = 2;
};

/// --slo, --weight, --required-rate, --heads, --shared-layers, --objective, --margin, --max-partitions.
void add_serving_options(CLI::App& command, ServingOptions& options);

/// The number for the model `name`: that of the last "NAME=NUMBER", else that of the last "NUMBER", else `otherwise`.
/// Throws UsageError that names the option unless it is between `least` and `most`.
double number_for(const std::vector<std::string>& values, const std::string& name, double otherwise,
                  const std::string& option, double least, double most);

/// The same of a whole number.
int count_for(const std::vector<std::string>& values, const std::string& name, int otherwise, const std::string& option,
              int least, int most);

/// The text behind "NAME=", else the last one without a name; empty if there is neither.
std::string text_for(const std::vector<std::string>& values, const std::string& name);

/// Throws UsageError if a value is for a model that is none of `names`.
void require_known(const std::vector<std::string>& values, const std::vector<std::string>& names,
                   const std::string& option);

}  // namespace frostpipe
