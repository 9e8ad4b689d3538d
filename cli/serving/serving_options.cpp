#include "cli/serving/serving_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "base/error_values.h"
#include "cli/shared/common_options.h"
#include "cli/shared/usage_error.h"

namespace frostpipe {
namespace {

/// Adds an option that takes one value and may be given several times.
void add_values(CLI::App& command, const std::string& name, std::vector<std::string>& values, const std::string& type,
                const std::string& meaning) {
  command.add_option(name, values, meaning)->type_name(type)->allow_extra_args(false);
}

}  // namespace

void add_serving_options(CLI::App& command, ServingOptions& options) {
  add_values(command, "--slo", options.objectives, "[MODEL=]TIME",
             "Latency objective (SLO) of requests, such as 100ms. Give MODEL=100ms once for each of several models");
  add_values(command, "--weight", options.weights, "[MODEL=]X",
             "Share of the load that a model gets, relative to the other models. Default: 1");
  add_values(command, "--required-rate", options.required_rates, "[MODEL=]X",
             "Requests per second that a model must get, on devices in use that cost as little per hour as possible. "
             "Default: as many requests per second as possible");
  add_values(command, "--heads", options.heads, "[MODEL=]K,N",
             "Serve K fine-tuned models that share their first N layers (one for the embedding and two for each block) "
             "and all answer every request. Default: one model");
  command
      .add_option("--margin", options.margin, "Fraction of every latency objective that the plan leaves for queueing")
      ->check(finite_range(0, 0.95))
      ->type_name("X")
      ->capture_default_str();
  command.add_option("--max-partitions", options.max_partitions, "Largest number of pools in a pipeline")
      ->check(CLI::Range(1, 4).description(""))
      ->type_name("N")
      ->capture_default_str();
}

std::string text_for(const std::vector<std::string>& values, const std::string& name) {
  std::string found, for_all;
  for (const auto& value : values) {
    const auto sign = value.rfind('=');
    if (sign == std::string::npos)
      for_all = value;
    else if (value.substr(0, sign) == name)
      found = value.substr(sign + 1);
  }
  return found.empty() ? for_all : found;
}

double number_for(const std::vector<std::string>& values, const std::string& name, double otherwise,
                  const std::string& option, double least, double most) {
  const std::string text = text_for(values, name);
  if (text.empty()) return otherwise;
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || !(least <= number && number <= most))
    throw UsageError(option, fmt::format("must be a number >= {:g} and <= {:g}", least, most), in_quotes(text));
  return number;
}

void require_one_each(const std::vector<std::string>& values, const std::vector<std::string>& names,
                      const std::string& option) {
  std::vector<std::string> given;
  for (const auto& value : values) {
    const auto sign = value.rfind('=');
    const std::string name = sign == std::string::npos ? "" : value.substr(0, sign);
    if (std::ranges::find(given, name) != given.end())
      throw UsageError(fmt::format("{}: must be given once{}, is twice", option,
                                   name.empty() ? "; MODEL=VALUE is for one model" : " for " + in_quotes(name)));
    given.push_back(name);
    if (sign == std::string::npos || std::ranges::find(names, name) != names.end()) continue;
    throw UsageError(option, fmt::format("must name a model of the profiles: {}", in_quotes(names)), in_quotes(name));
  }
}

}  // namespace frostpipe
