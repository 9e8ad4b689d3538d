#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "base/error_values.h"
#include "base/seconds.h"
#include "base/separated_values.h"
#include "papers/csv_table.h"
#include "papers/megatron_prediction.h"
#include "papers/published_suites.h"
#include "planner/make_plan.h"
#include "profiles/hardware.h"
#include "profiles/import/formats.h"
#include "simulator/simulate.h"
#include "simulator/table_cost_model.h"

namespace frostpipe {
namespace {

// The manufacturer's value for an A100.
constexpr double kNvlinkBytesPerSecond = 300e9;

constexpr int kMaxLayers = 1'000;

// kEqual and kMoved are the file's names of its methods: equally many layers per rank, and layers moved off the last.
constexpr const char *kRankDevice = "A100", *kEqual = "base", *kMoved = "redis";

/// One row of the file: a run of 1F1B with equally many layers on every rank, or with some moved off the last rank.
struct RankedRun {
  std::string name, method, place;
  int vocabulary = 0, hidden = 0, ffn = 0, layers = 0, layers_on_last_stage = 0, micro_batches = 0, micro_batch = 0,
      tokens = 0;
  double iteration_seconds = 0;
  std::vector<StageTimes> stages;  // as measured on each rank
};

/// Reads one time per rank, in microseconds separated by spaces.
std::vector<Nanoseconds> times_of_ranks(const CsvTable& file, std::size_t row, std::string_view column, int ranks) {
  std::vector<Nanoseconds> times;
  for (const std::string_view field : split(file.text(row, column), ' ')) {
    std::int64_t microseconds = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), microseconds);
    if (error != std::errc() || end != field.data() + field.size() || microseconds < 1 || microseconds > 1'000'000'000)
      throw InvalidInput(file.place(row, column),
                         "must be whole microseconds from 1 to 10^9, separated by single spaces", in_quotes(field));
    times.push_back(1'000 * microseconds);
  }
  if (static_cast<int>(times.size()) != ranks)
    throw InvalidInput(file.place(row, column), fmt::format("must have a time for each of the {} ranks", ranks),
                       std::to_string(times.size()));
  return times;
}

RankedRun ranked_run(const CsvTable& file, std::size_t row) {
  file.word(row, "dp", {"1"});
  const int ranks = file.integer(row, "pp", 3);
  RankedRun run{.name = file.text(row, "name"),
                .method = file.text(row, "method"),
                .place = file.place(row, "method"),
                .vocabulary = file.integer(row, "vocabulary", 1),
                .hidden = file.integer(row, "hidden", 1),
                .ffn = file.integer(row, "ffn", 1),
                .layers = file.integer(row, "layers", ranks),
                .layers_on_last_stage = file.integer(row, "layers_on_last_stage"),
                .micro_batches = file.integer(row, "micro_batches", 1),
                .micro_batch = file.integer(row, "micro_batch", 1),
                .tokens = file.integer(row, "sequence", 1),
                .iteration_seconds = 1e-3 * file.number(row, "iteration_ms", 1e-3),
                .stages = {}};
  const auto forward = times_of_ranks(file, row, "forward_us", ranks),
             backward = times_of_ranks(file, row, "backward_us", ranks);
  if (std::int64_t{ranks} * run.micro_batches > kMaxStagePasses || run.layers > kMaxLayers)
    throw InvalidInput(
        run.place,
        fmt::format("must be of at most {} layers and {} ranks x micro-batches", kMaxLayers, kMaxStagePasses),
        fmt::format("{} and {} x {}", run.layers, ranks, run.micro_batches));
  for (int rank = 0; rank < ranks; ++rank)
    run.stages.push_back({.forward_ns = forward[rank], .backward_ns = backward[rank]});
  return run;
}

std::vector<int> equal_layers(const RankedRun& run) {
  const int ranks = static_cast<int>(run.stages.size());
  if (run.layers % ranks != 0)
    throw InvalidInput(run.place, fmt::format("must have a number of layers divisible by {} ranks", ranks),
                       std::to_string(run.layers));
  return std::vector<int>(ranks, run.layers / ranks);
}

/// Returns the mean times of one layer on the inner ranks.
StageTimes layer_times(const RankedRun& equal) {
  const auto inner = static_cast<Nanoseconds>(equal.stages.size()) - 2;
  const Nanoseconds count = inner * (equal.layers / static_cast<Nanoseconds>(equal.stages.size()));
  StageTimes sum;
  for (auto rank = equal.stages.begin() + 1; rank + 1 != equal.stages.end(); ++rank) {
    sum.forward_ns += rank->forward_ns;
    sum.backward_ns += rank->backward_ns;
  }
  return {.forward_ns = sum.forward_ns / count, .backward_ns = sum.backward_ns / count};
}

/// Returns `sum` plus `count` times `layer`, but never a negative time.
StageTimes with_layers(const StageTimes& sum, const StageTimes& layer, int count) {
  return {.forward_ns = std::max<Nanoseconds>(0, sum.forward_ns + count * layer.forward_ns),
          .backward_ns = std::max<Nanoseconds>(0, sum.backward_ns + count * layer.backward_ns)};
}

/// Returns the times of the embedding or the head: those of the first or the last rank without its layers.
StageTimes end_times(const RankedRun& equal, const StageTimes& rank) {
  return with_layers(rank, layer_times(equal), -equal.layers / static_cast<int>(equal.stages.size()));
}

/// Estimates the number of layers of each rank from its forward time.
std::vector<int> layers_of(const RankedRun& moved, const RankedRun& equal) {
  const StageTimes layer = layer_times(equal);
  std::vector<int> layers;
  for (std::size_t rank = 0; rank + 1 < moved.stages.size(); ++rank) {
    const StageTimes& end = rank == 0 ? end_times(equal, equal.stages.front()) : StageTimes{};
    layers.push_back(static_cast<int>(
        std::lround(static_cast<double>(moved.stages[rank].forward_ns - end.forward_ns) / layer.forward_ns)));
  }
  layers.push_back(moved.layers_on_last_stage);
  if (std::accumulate(layers.begin(), layers.end(), 0) != moved.layers)
    throw InvalidInput(moved.place,
                       fmt::format("must have forward times that amount to {} layers, judged by the times of row {}",
                                   moved.layers, in_quotes(kEqual)),
                       fmt::format("{}", fmt::join(layers, " ")));
  return layers;
}

/// Returns the times of stages with these layers, from a run with equal layers.
std::vector<StageTimes> stages_with(const std::vector<int>& layers, const RankedRun& equal) {
  std::vector<StageTimes> stages;
  for (std::size_t rank = 0; rank < layers.size(); ++rank) {
    StageTimes end;
    if (rank == 0) end = end_times(equal, equal.stages.front());
    if (rank + 1 == layers.size()) end = end_times(equal, equal.stages.back());
    stages.push_back(with_layers(end, layer_times(equal), layers[rank]));
  }
  return stages;
}

/// Returns the simulated time of 1F1B with these stages, in which every pass waits for a message, plus that of the
/// update.
double simulated_seconds(const RankedRun& run, const std::vector<StageTimes>& stages, const std::vector<int>& layers) {
  static const double memory = find_hardware("A100").bytes_per_second;
  const int p = static_cast<int>(stages.size());
  const double h = run.hidden, message = kHalfBytes * run.micro_batch * run.tokens * h / kNvlinkBytesPerSecond;
  std::vector<std::vector<StageTimes>> table;
  for (int stage = 0; stage < p; ++stage) {
    const double parameters =
        layers[stage] * (4 * h * h + 2 * h * run.ffn) + (stage == 0 || stage == p - 1 ? h * run.vocabulary : 0);
    StageTimes times = stages[stage];
    times.forward_ns += nanoseconds_of(message) + kMessageLatencyNs;
    times.backward_ns += nanoseconds_of(message) + kMessageLatencyNs;
    times.update_ns = nanoseconds_of(kOptimizerBytesPerParameter * parameters / memory);
    table.push_back({times});
  }
  const TableCostModel costs(std::move(table), std::vector<Segment>(p));
  const Schedule schedule = lower(one_f_one_b({.pipeline_parallel_size = p, .num_micro_batches = run.micro_batches}));
  return 1e-9 * static_cast<double>(
                    simulate_timing(schedule, {.pipeline_parallel_size = p}, costs, 1).iteration_end_ns.front());
}

/// Makes a profile of the model from a run with equal layers.
Profile profile_of(const RankedRun& equal) {
  Profile profile{.model = chain_of(equal.name, equal.layers + 2)};
  for (int i = 0; i < equal.layers + 2; ++i) {
    const StageTimes times = i == 0                  ? end_times(equal, equal.stages.front())
                             : i == equal.layers + 1 ? end_times(equal, equal.stages.back())
                                                     : layer_times(equal);
    profile.measurements.push_back({.key = {.layer = i, .device_type = kRankDevice, .tokens = equal.tokens},
                                    .cost = {.forward_ns = times.forward_ns,
                                             .input_gradient_ns = times.backward_ns / 2,
                                             .weight_gradient_ns = times.backward_ns - times.backward_ns / 2,
                                             .frozen_forward_ns = times.forward_ns}});
    profile.updates.push_back({.layer = i, .device_type = kRankDevice});
  }
  return profile;
}

/// Returns how many layers the planner gives each stage, not counting embedding and head, for 1F1B with the same ranks
/// and micro-batches.
std::vector<int> planned_layers(const RankedRun& equal) {
  const Profile profile = profile_of(equal);
  const int ranks = static_cast<int>(equal.stages.size());
  Cluster cluster;
  cluster.devices.assign(ranks, {.type = kRankDevice});
  const PlanOptions options{.method = PlanMethod::static_pipeline,
                            .global_batch_size = equal.micro_batches,
                            .num_steps = 1,
                            .tokens = equal.tokens,
                            .schedule = "1F1B",
                            .pipeline_parallel_size = ranks,
                            .num_micro_batches = equal.micro_batches};
  const PlanResult made = make_plan({profile, cluster, options});
  if (const auto* none = std::get_if<Infeasible>(&made)) throw InvalidInput(equal.place + ": " + none->reason);
  const Phase& phase = std::get<TrainingPlan>(made).phases.front();
  std::vector<int> layers;
  for (const LayerRange& stage : phase.partition) layers.push_back(stage.end - stage.begin);
  --layers.front();
  --layers.back();
  return layers;
}

/// Reads the rows whose schedules this project has; the other methods split the vocabulary over the ranks.
std::vector<RankedRun> ranked_runs(const std::filesystem::path& path) {
  const CsvTable file(path);
  std::vector<RankedRun> runs;
  for (std::size_t row = 0; row < file.num_rows(); ++row) {
    const std::string& method = file.word(row, "method", {kEqual, kMoved, "vocab", "synctwice", "interlaced"});
    if (method == kEqual || method == kMoved) runs.push_back(ranked_run(file, row));
  }
  if (runs.empty())
    throw InvalidInput(path.string(), fmt::format("must hold rows of the methods {} and {}", kEqual, kMoved), "none");
  return runs;
}

/// Returns the run with equal layers of the same model on the same number of ranks.
const RankedRun& equal_of(const RankedRun& moved, const std::vector<RankedRun>& runs) {
  const auto job = [](const RankedRun& run) {
    return std::tuple(run.vocabulary, run.layers, run.hidden, run.tokens, run.micro_batches, run.stages.size());
  };
  const auto found =
      std::ranges::find_if(runs, [&](const RankedRun& run) { return run.method == kEqual && job(run) == job(moved); });
  if (found == runs.end())
    throw InvalidInput(moved.place, fmt::format("must have a row {} of the same job in the file", in_quotes(kEqual)),
                       in_quotes(moved.name));
  return *found;
}

/// Adds the measured gain of moving layers, and the gains predicted from the run with equal layers: for the same moved
/// layers, and for the planner's layers.
void add_gains(PublishedTable& table, const RankedRun& moved, const RankedRun& equal) {
  const std::vector<int> as_moved = layers_of(moved, equal), planned = planned_layers(equal);
  const double from = simulated_seconds(equal, equal.stages, equal_layers(equal));
  const auto add = [&](const char* group, const std::vector<int>& layers) {
    const bool same = layers == as_moved;
    table.rows.push_back({.group = group,
                          .what = "times faster",
                          .run = moved.name,
                          .measured = equal.iteration_seconds / moved.iteration_seconds,
                          .predicted = from / simulated_seconds(equal, stages_with(layers, equal), layers),
                          .counts = same,
                          .note = fmt::format("{} layers{}", fmt::join(layers, " "),
                                              same ? "" : "; measured with others, so it does not count")});
  };
  add("layers moved, from equal layers", as_moved);
  add("planned, from equal layers", planned);
}

}  // namespace

PublishedTable vocabulary_pipeline_table(const std::string& folder) {
  const std::vector<RankedRun> runs = ranked_runs(std::filesystem::path(folder) / "runs.csv");
  PublishedTable table{.suite = "vocabulary-pipeline",
                       .source = "Vocabulary Parallelism (Yeung et al., 2024): 1F1B on 8 A100s, rank by rank",
                       .rows = {}};
  for (const RankedRun& run : runs) {
    const bool is_equal = run.method == kEqual;
    const std::vector<int> layers = is_equal ? equal_layers(run) : layers_of(run, equal_of(run, runs));
    table.rows.push_back({.group = is_equal ? "equal layers" : "layers moved",
                          .what = "time [s]",
                          .run = run.name,
                          .measured = run.iteration_seconds,
                          .predicted = simulated_seconds(run, run.stages, layers)});
  }
  for (const RankedRun& run : runs) {
    if (run.method == kMoved) add_gains(table, run, equal_of(run, runs));
  }
  return table;
}

}  // namespace frostpipe
