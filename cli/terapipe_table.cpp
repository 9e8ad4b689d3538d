#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/published_suites.h"
#include "planner/token_slices.h"
#include "profiles/seconds.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

constexpr int kTokens = 2048, kStep = 8;
constexpr Nanoseconds kTolerance = 100'000;  // the paper's

/// A row of Figure 6: seconds for equal slices, and for those that the paper's dynamic programme found.
struct Ablation {
  const char* name;
  int stages, sequences;  // of one pipeline
  std::vector<std::pair<int, double>> seconds_by_slices;
  double chosen_seconds;
};

/// One slice's time on one stage follows from a measured run of equal slices: T = (sequences x slices + stages - 1) t. Between them linear in the length.
Nanoseconds stage_time(const Ablation& ablation, double length) {
  std::vector<std::pair<double, double>> points;  // length, seconds; ascending
  for (const auto& [slices, seconds] : ablation.seconds_by_slices)
    points.emplace_back(static_cast<double>(kTokens) / slices, seconds / (ablation.sequences * slices + ablation.stages - 1));
  std::sort(points.begin(), points.end());
  auto above = std::lower_bound(points.begin(), points.end(), std::pair{length, -1.0});
  if (above == points.begin()) above = std::next(above);
  if (above == points.end()) above = std::prev(above);
  const auto below = std::prev(above);
  const double share = (length - below->first) / (above->first - below->first);
  return nanoseconds_of(below->second + share * (above->second - below->second));
}

double simulated_seconds(const Ablation& ablation, int slices) {
  const Nanoseconds time = stage_time(ablation, static_cast<double>(kTokens) / slices);
  const Schedule schedule = lower(terapipe({.pipeline_parallel_size = ablation.stages, .num_micro_batches = ablation.sequences, .token_slices = slices}));
  const UniformCostModel costs({.forward_ns = time / 3, .input_gradient_ns = time / 3, .weight_gradient_ns = time - 2 * (time / 3)});
  return 1e-9 * static_cast<double>(simulate_timing(schedule, {.pipeline_parallel_size = ablation.stages}, costs, 1).iteration_end_ns.front());
}

}  // namespace

PublishedTable terapipe_table() {
  const Ablation ablations[] = {
      {"GPT-3 175B (9)", 96, 2, {{1, 9.990}, {4, 2.902}, {8, 1.892}, {16, 1.547}, {32, 1.593}, {64, 2.227}, {128, 3.252}}, 1.481},
      {"GPT-3 44B (8)", 48, 8, {{1, 2.662}, {4, 1.241}, {8, 1.255}, {16, 1.241}}, 1.111}};
  PublishedTable table{.suite = "terapipe", .source = "Li et al., ICML 2021, Figure 6: slices of equal length and those chosen, on up to 384 V100s", .rows = {}};
  for (const Ablation& ablation : ablations) {
    for (const auto& [slices, seconds] : ablation.seconds_by_slices)
      table.rows.push_back({.group = "equal slices", .what = "time [s]", .run = fmt::format("{}, {} slices", ablation.name, slices), .base = {}, .measured = seconds,
                            .predicted = simulated_seconds(ablation, slices), .note = {}});
    const TokenSlices chosen = slice_tokens(kTokens, kStep, ablation.stages, ablation.sequences,
                                            [&](int length, int) { return stage_time(ablation, length); }, kTolerance);
    table.rows.push_back({.group = "chosen slices", .what = "time [s]", .run = fmt::format("{}, chosen", ablation.name), .base = {},
                          .measured = ablation.chosen_seconds, .predicted = 1e-9 * static_cast<double>(chosen.time_ns),
                          .note = fmt::format("{} slices of {} to {} tokens", chosen.lengths.size(), *std::min_element(chosen.lengths.begin(), chosen.lengths.end()),
                                              *std::max_element(chosen.lengths.begin(), chosen.lengths.end()))});
  }
  return table;
}

}  // namespace frostpipe
