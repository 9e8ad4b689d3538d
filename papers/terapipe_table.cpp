#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/seconds.h"
#include "papers/published_suites.h"
#include "planner/search/slice_tokens.h"
#include "simulator/simulate.h"

namespace frostpipe {
namespace {

constexpr int kTokens = 2048, kStep = 8;
constexpr Nanoseconds kTolerance = 100'000;  // the paper's

/// A row of Figure 6: seconds with equal slices, and with those that the paper's dynamic program found.
struct Ablation {
  const char* name;
  int stages, sequences;  // of one pipeline
  std::vector<std::pair<int, double>> seconds_by_slices;
  double chosen_seconds;
};

/// Returns the time t of one slice on one stage. It follows from the measured time T of a run with equal slices: T =
/// (sequences x slices + stages - 1) t. Between measured lengths it is interpolated linearly.
Nanoseconds stage_time(const Ablation& ablation, double length) {
  std::vector<std::pair<double, double>> points;  // length, seconds; ascending
  for (const auto& [slices, seconds] : ablation.seconds_by_slices)
    points.emplace_back(static_cast<double>(kTokens) / slices,
                        seconds / (ablation.sequences * slices + ablation.stages - 1));
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
  const Schedule schedule = lower(terapipe(
      {.pipeline_parallel_size = ablation.stages, .num_micro_batches = ablation.sequences, .token_slices = slices}));
  const UniformCostModel costs(
      {.forward_ns = time / 3, .input_gradient_ns = time / 3, .weight_gradient_ns = time - 2 * (time / 3)});
  return 1e-9 *
         static_cast<double>(
             simulate_timing(schedule, {.pipeline_parallel_size = ablation.stages}, costs, 1).iteration_end_ns.front());
}

/// A row of Table 1: one pipeline of `stages` stages of `tensor_ranks` V100s each trains `sequences` of the batch;
/// there are `replicas` pipelines.
struct Setting {
  const char* name;
  int hidden, layers, sequences, replicas, stages, tensor_ranks;
  double whole_seconds, sliced_seconds;
};

// The least time of a slice on a stage, and the overhead to launch and exchange a slice, which comes on top of its
// computation; both in seconds, from the runs of 175B with equal slices.
constexpr double kShortestSlice = 9.3e-3, kSliceOverhead = 6e-3;
constexpr double kDeviceNetworkBytesPerSecond = 25e9 / 8 / 8;  // 25 Gbit/s for 8 devices

/// Returns the time to reduce the gradients of a device's weights, in fp16, over the replicas.
double reduction_seconds(const Setting& setting) {
  if (setting.replicas < 2) return 0;
  const double parameters =
      12.0 * setting.layers * setting.hidden * setting.hidden / (setting.stages * setting.tensor_ranks);
  return 2.0 * (setting.replicas - 1) / setting.replicas * 2 * parameters / kDeviceNetworkBytesPerSecond;
}

/// Returns the work of a slice that follows `context` tokens, as a fraction of a whole sequence's. Matrix products grow
/// with the slice's length, attention with length times context.
double share_of_work(const Setting& setting, double length, double context) {
  const double six_h = 6.0 * setting.hidden;
  return length * (1 + (length + 2 * context) / six_h) / (kTokens * (1 + kTokens / six_h));
}

/// Returns the best slices. The run without slices gives the time of a whole sequence on a stage; the times of slices
/// follow from it, from kShortestSlice and from kSliceOverhead.
TokenSlices sliced(const Setting& setting) {
  const double whole = (setting.whole_seconds - reduction_seconds(setting)) / (setting.sequences + setting.stages - 1);
  return slice_tokens(
      kTokens, kStep, setting.stages, setting.sequences,
      [&](int length, int context) {
        if (length == kTokens) return nanoseconds_of(whole);
        return nanoseconds_of(std::max(kShortestSlice, kSliceOverhead + std::max(0.0, whole - kSliceOverhead) *
                                                                            share_of_work(setting, length, context)));
      },
      kTolerance);
}

void add_table_1(PublishedTable& table) {
  constexpr Setting kTable1[] = {
      {"1: 1B", 2048, 24, 16, 8, 24, 1, 1.517, 1.254},   {"2: 1B", 2048, 24, 36, 2, 12, 8, 1.018, 1.018},
      {"3: 1B", 2048, 24, 72, 1, 24, 8, 0.913, 0.913},   {"4: 13B", 5120, 40, 16, 2, 20, 8, 2.637, 1.891},
      {"5: 13B", 5120, 40, 32, 1, 40, 8, 1.863, 1.328},  {"6: 44B", 6144, 96, 2, 4, 96, 1, 13.319, 7.103},
      {"7: 44B", 6144, 96, 4, 2, 24, 8, 4.311, 2.771},   {"8: 44B", 6144, 96, 8, 1, 48, 8, 2.662, 1.111},
      {"9: 175B", 12288, 96, 2, 1, 96, 4, 9.990, 1.481}, {"10: 175B", 12288, 96, 2, 1, 48, 8, 5.822, 1.160}};
  for (const Setting& setting : kTable1) {
    const TokenSlices slices = sliced(setting);
    const double seconds = 1e-9 * static_cast<double>(slices.time_ns) + reduction_seconds(setting);
    table.rows.push_back({.group = "Table 1",
                          .what = "times faster",
                          .run = setting.name,
                          .measured = setting.whole_seconds / setting.sliced_seconds,
                          .predicted = setting.whole_seconds / seconds,
                          .note = fmt::format("{} slices", slices.lengths.size())});
  }
}

}  // namespace

PublishedTable terapipe_table() {
  const Ablation ablations[] = {
      {"GPT-3 175B (9)",
       96,
       2,
       {{1, 9.990}, {4, 2.902}, {8, 1.892}, {16, 1.547}, {32, 1.593}, {64, 2.227}, {128, 3.252}},
       1.481},
      {"GPT-3 44B (8)", 48, 8, {{1, 2.662}, {4, 1.241}, {8, 1.255}, {16, 1.241}}, 1.111}};
  PublishedTable table{
      .suite = "terapipe",
      .source =
          "Li et al., ICML 2021, Figure 6 (slices of equal length and those chosen) and Table 1, on up to 384 V100s",
      .rows = {}};
  for (const Ablation& ablation : ablations) {
    for (const auto& [slices, seconds] : ablation.seconds_by_slices)
      table.rows.push_back({.group = "equal slices",
                            .what = "time [s]",
                            .run = fmt::format("{}, {} slices", ablation.name, slices),
                            .measured = seconds,
                            .predicted = simulated_seconds(ablation, slices)});
    const TokenSlices chosen = slice_tokens(
        kTokens, kStep, ablation.stages, ablation.sequences,
        [&](int length, int) { return stage_time(ablation, length); }, kTolerance);
    table.rows.push_back({.group = "chosen slices",
                          .what = "time [s]",
                          .run = fmt::format("{}, chosen", ablation.name),
                          .measured = ablation.chosen_seconds,
                          .predicted = 1e-9 * static_cast<double>(chosen.time_ns),
                          .note = fmt::format("{} slices of {} to {} tokens", chosen.lengths.size(),
                                              *std::min_element(chosen.lengths.begin(), chosen.lengths.end()),
                                              *std::max_element(chosen.lengths.begin(), chosen.lengths.end()))});
  }
  add_table_1(table);
  return table;
}

}  // namespace frostpipe
