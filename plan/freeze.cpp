#include "plan/freeze.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/separated_values.h"

namespace frostpipe {

namespace {

/// Rounds up, but ignores rounding errors just above an integer (0.34 * 100 = 34.000000000000004).
int ceil_of(double value) { return static_cast<int>(std::ceil(value - 1e-9)); }

void require_alpha(double alpha) {
  if (!(alpha > 0 && alpha < 1)) throw InvalidInput("freeze alpha", "must be > 0 and < 1", fmt::format("{}", alpha));
}

void require_fraction(const char* name, double value, bool zero_allowed) {
  if (!(value <= 1 && (value > 0 || (zero_allowed && value == 0))))
    throw InvalidInput(name, zero_allowed ? "must be >= 0 and <= 1" : "must be > 0 and <= 1", fmt::format("{}", value));
}

}  // namespace

std::vector<int> decision_steps(int num_steps, const FreezeOptions& options) {
  require_fraction("freeze warm-up", options.warm_up_fraction, true);
  require_fraction("freeze interval", options.interval_fraction, false);
  const auto interval = static_cast<int>(std::max(1L, std::lround(options.interval_fraction * num_steps)));
  std::vector<int> steps;
  for (std::int64_t step = ceil_of(options.warm_up_fraction * num_steps); step < num_steps; step += interval)
    steps.push_back(static_cast<int>(step));
  return steps;
}

int cap_rule(int num_blocks, double alpha, int num_decisions) {
  require_alpha(alpha);
  FROSTPIPE_CHECK(num_blocks >= 0 && num_decisions >= 0, "numbers of blocks and decisions are not negative");
  return std::min(num_blocks, ceil_of(num_blocks * (1 - std::pow(1 - alpha, num_decisions))));
}

int paper_rule(int previous, int num_blocks, double alpha, std::span<const double> gradient_norms) {
  require_alpha(alpha);
  FROSTPIPE_CHECK(previous >= 0 && previous <= num_blocks, "frozen blocks are blocks of the model");
  FROSTPIPE_CHECK(static_cast<int>(gradient_norms.size()) == num_blocks, "there is one gradient norm per block");
  int smallest = previous;
  double smallest_norm = std::numeric_limits<double>::infinity();  // a NaN is never the smallest
  for (int block = previous; block < num_blocks; ++block) {
    if (gradient_norms[block] < smallest_norm) {
      smallest = block;
      smallest_norm = gradient_norms[block];
    }
  }
  return std::min(ceil_of(previous + alpha * (num_blocks - previous)), smallest);
}

std::optional<std::vector<int>> parse_fixed_layers(std::string_view text) {
  std::vector<int> layers;
  for (const std::string_view part : split(text, ',')) {
    int frozen = 0;
    const char* const end = part.data() + part.size();
    const auto [stop, error] = std::from_chars(part.data(), end, frozen);
    if (error != std::errc() || stop != end || frozen < (layers.empty() ? 0 : layers.back())) return std::nullopt;
    layers.push_back(frozen);
  }
  return layers;
}

std::vector<FreezeEvent> forecast_fixed(std::span<const int> layers, int num_steps, const FreezeOptions& options) {
  std::vector<FreezeEvent> events;
  int frozen = 0;
  std::size_t decision = 0;
  for (const int step : decision_steps(num_steps, options)) {
    if (decision == layers.size()) break;
    if (layers[decision] > frozen) events.push_back({.from_step = step, .frozen_blocks = layers[decision]});
    frozen = layers[decision++];
  }
  return events;
}

std::vector<FreezeEvent> forecast_cap(int num_blocks, int num_steps, const FreezeOptions& options) {
  std::vector<FreezeEvent> events;
  int frozen = 0, decision = 0;
  for (const int step : decision_steps(num_steps, options)) {
    const int capped = cap_rule(num_blocks, options.alpha, ++decision);
    if (capped <= frozen) continue;
    frozen = capped;
    events.push_back({.from_step = step, .frozen_blocks = frozen});
  }
  return events;
}

}  // namespace frostpipe
