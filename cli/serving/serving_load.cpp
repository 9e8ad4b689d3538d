#include "cli/serving/serving_load.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "cli/shared/common_options.h"
#include "serving/import/arrival_times.h"
#include "serving/simulator/arrivals.h"

namespace frostpipe {
namespace {

constexpr int kMaxMillions = 20;
constexpr double kMaxSeconds = 1e9;
/// Longest run of arrivals whose rate changes every second or so: each change takes time to compute, even if nothing
/// arrives.
constexpr double kMaxSecondsOfChanges = 1e6;
constexpr double kUsualSeconds = 30;
/// The distance between the seeds of two models. It is so large that runs with neighbouring seeds share no seed.
constexpr std::uint64_t kSeedsOfAModel = 1'000'003;

Nanoseconds window_of(double seconds) { return std::llround(1e9 * seconds); }

/// Reads "120" or "x0.9" into `rate`. Returns "" or why it is neither.
std::string read_rate(const std::string& text, RequestRate& rate) {
  rate.is_multiple = text.starts_with('x');
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + (rate.is_multiple ? 1 : 0), last, rate.value);
  if (error == std::errc() && end == last && 0 <= rate.value && rate.value <= kMaxSeconds) return "";
  return fmt::format(
      "must be requests per second such as 120, or a multiple of the planned throughput such as x0.9; a number >= 0 "
      "and <= {:g}, is {}",
      kMaxSeconds, text);
}

/// Returns the requests per second of each model.
std::vector<double> rates_of(const ServingPlan& plan, const RequestRate& rate) {
  double weights = 0;
  for (const ServedModel& model : plan.models) weights += model.weight;
  std::vector<double> rates;
  for (const ServedModel& model : plan.models)
    rates.push_back(rate.value * (rate.is_multiple ? model.requests_per_second : model.weight / weights));
  return rates;
}

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

void require_few(double requests_per_second, double seconds) {
  if (requests_per_second * seconds <= 1e6 * kMaxMillions) return;
  throw InvalidInput(
      fmt::format("--rate: {:g} requests per second for {:g} s are more than {} million requests; ask for "
                  "fewer --seconds",
                  requests_per_second, seconds, kMaxMillions));
}

ServingLoad named_load(const ServingPlan& plan, const ServingLoadOptions& options, ArrivalProcess process) {
  const std::vector<double> rates = rates_of(plan, options.rate.value_or(RequestRate()));
  const double seconds = options.seconds.value_or(kUsualSeconds);
  const bool changes = process == ArrivalProcess::square || process == ArrivalProcess::mmpp;
  if (changes && seconds > kMaxSecondsOfChanges)
    throw InvalidInput("--seconds",
                       fmt::format("must be <= {:g} with --arrivals {}", kMaxSecondsOfChanges, to_string(process)),
                       fmt::format("{:g}", seconds));
  require_few(sum_of(rates), seconds);
  ServingLoad load{.source = fmt::format("{} arrivals", to_string(process)),
                   .requests_per_second = sum_of(rates),
                   .window_ns = window_of(seconds)};
  if (process != ArrivalProcess::even) load.seed = options.seed.value_or(1);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    load.arrivals.push_back(arrivals_of(process, rates[i], load.window_ns, load.seed.value_or(1) + kSeedsOfAModel * i));
  }
  return load;
}

ServingLoad recorded_load(const ServingPlan& plan, const ServingLoadOptions& options) {
  std::vector<Nanoseconds> times = import_arrival_times(read_named_file(options.arrivals), options.arrivals);
  std::vector<double> rates;
  if (options.rate) {
    rates = rates_of(plan, *options.rate);
    if (times.back() == 0)
      throw InvalidInput(options.arrivals + ": all requests come at one time, which cannot be stretched to a rate");
    if (static_cast<double>(times.size()) > kMaxSeconds * sum_of(rates))
      throw InvalidInput(fmt::format("--rate: stretches the {} requests of {} over more than {:g} s; give a higher one",
                                     times.size(), options.arrivals, kMaxSeconds));
    times = at_rate(times, sum_of(rates));
  }
  ServingLoad load{.source = options.arrivals, .window_ns = times.back() + 1};
  if (options.seconds) load.window_ns = window_of(*options.seconds);
  times.erase(std::lower_bound(times.begin(), times.end(), load.window_ns), times.end());
  load.requests_per_second = 1e9 * static_cast<double>(times.size()) / static_cast<double>(load.window_ns);
  if (rates.empty())
    for (const ServedModel& model : plan.models) rates.push_back(model.weight);
  if (plan.models.size() > 1) load.seed = options.seed.value_or(1);
  load.arrivals = dealt_by_weight(times, rates, load.seed.value_or(1));
  return load;
}

}  // namespace

void add_serving_load_options(CLI::App& command, ServingLoadOptions& options) {
  command
      .add_option_function<std::string>(
          "--rate", [&options](const std::string& text) { read_rate(text, options.rate.emplace()); },
          "Requests per second of all models together; or xF, which sends each model F times its planned throughput. "
          "Default: x1, or as recorded in a file")
      ->check(CLI::Validator(
          [](const std::string& text) {
            RequestRate unused;
            return read_rate(text, unused);
          },
          ""))
      ->type_name("X|xF");
  command
      .add_option("--arrivals", options.arrivals,
                  fmt::format("How requests arrive: {}, or a CSV file of times (in its column TIMESTAMP, or the only "
                              "one), which are stretched to --rate. Default: poisson",
                              known_arrival_processes()))
      ->type_name("NAME|FILE");
  command
      .add_option("--seconds", options.seconds,
                  "Seconds during which requests arrive. Default: 30, or as long as the file")
      ->check(finite_range(1e-3, kMaxSeconds))
      ->type_name("X");
  command.add_option("--seed", options.seed, "Seed of random arrivals. Default: 1")
      ->check(CLI::Validator(
          [](const std::string& text) { return text.starts_with('-') ? "must be >= 0, is " + text : std::string(); },
          ""))
      ->type_name("N");
}

bool is_given(const ServingLoadOptions& options) {
  return options.rate || !options.arrivals.empty() || options.seconds || options.seed;
}

ServingLoad serving_load(const ServingPlan& plan, const ServingLoadOptions& options) {
  const auto process = find_arrival_process(options.arrivals.empty() ? "poisson" : options.arrivals);
  if (!process && !std::filesystem::exists(options.arrivals)) {
    throw InvalidInput("--arrivals", fmt::format("must be a file of times or one of {}", known_arrival_processes()),
                       fmt::format("\"{}\"", options.arrivals));
  }
  return process ? named_load(plan, options, *process) : recorded_load(plan, options);
}

}  // namespace frostpipe
