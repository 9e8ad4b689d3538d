#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace frostpipe {

/// The objectives of a serving plan, as the command line states them.
struct ServingOptions {
  /// "100ms" for every model, or "NAME=100ms" for one.
  std::vector<std::string> objectives;
  std::vector<std::string> weights, required_rates;  // "2" or "NAME=2"
  std::vector<std::string> heads;                    // "3,9" or "NAME=3,9"
  double margin = 0.4;
  int max_partitions = 2;
};

/// Adds --slo, --weight, --required-rate, --heads, --margin and --max-partitions.
void add_serving_options(CLI::App& command, ServingOptions& options);

/// Returns the number for the model `name`: of "NAME=NUMBER", else of "NUMBER", else `otherwise`.
/// Throws UsageError that names the option unless it is between `least` and `most`.
double number_for(const std::vector<std::string>& values, const std::string& name, double otherwise,
                  const std::string& option, double least, double most);

/// Returns the text behind "NAME=", else the text without a name; empty if there is neither.
std::string text_for(const std::vector<std::string>& values, const std::string& name);

/// Throws UsageError if a value names a model that is not among `names`, or if two values are for the same model or for
/// all.
void require_one_each(const std::vector<std::string>& values, const std::vector<std::string>& names,
                      const std::string& option);

}  // namespace frostpipe
