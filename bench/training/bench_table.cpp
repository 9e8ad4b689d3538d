#include "bench/training/bench_table.h"

#include <algorithm>
#include <cmath>

#include "base/json_reader.h"
#include "base/statistics.h"

namespace frostpipe {

template <class Archive>
void fields(Archive& archive, json::Value<Archive, SpeedRatio>& ratio) {
  archive("geometric_mean", ratio.geometric_mean);
  archive("low", ratio.low);
  archive("high", ratio.high);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, BenchRow>& row) {
  archive("dataset", row.dataset);
  archive("configuration", row.configuration);
  archive("world_size", row.world_size);
  archive("threads_per_rank", row.threads_per_rank);
  archive("freezes", row.freezes);
  archive("num_seeds", row.num_seeds);
  archive("samples_per_second", row.samples_per_second);
  archive("speed_to_static", row.to_static);
  archive("speed_to_data_parallel", row.to_data_parallel);
  archive("speed_to_best_unfrozen", row.to_best_unfrozen);
  archive("accuracy", row.accuracy);
  archive("has_accuracy_difference", row.has_difference);
  archive("accuracy_difference", row.difference);
  archive("accuracy_difference_low", row.low);
  archive("accuracy_difference_high", row.high);
  archive("peak_memory_bytes", row.peak_memory_bytes);
  archive("on_frontier", row.on_frontier);
}

namespace {

struct Rows {
  std::vector<BenchRow> rows;
};

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Rows>& rows) {
  archive("rows", rows.rows);
}

using Runs = std::vector<const BenchRun*>;

Runs select(const std::vector<BenchRun>& runs, const std::string& dataset, const std::string& configuration) {
  Runs selected;
  for (const BenchRun& run : runs) {
    if (run.dataset == dataset && run.configuration == configuration) selected.push_back(&run);
  }
  return selected;
}

double median_speed(const Runs& runs) {
  std::vector<double> speeds;
  for (const BenchRun* run : runs) speeds.push_back(run->samples_per_second);
  return quantile(std::move(speeds), 0.5, Between::mean);
}

const BenchRun* of_seed(const Runs& runs, std::uint64_t seed) {
  const auto found = std::find_if(runs.begin(), runs.end(), [&](const BenchRun* run) { return run->seed == seed; });
  return found == runs.end() ? nullptr : *found;
}

SpeedRatio ratio_of(const Runs& runs, const Runs& others) {
  SpeedRatio ratio;
  double logarithms = 0;
  int count = 0;
  for (const BenchRun* run : runs) {
    const BenchRun* const other = of_seed(others, run->seed);
    if (!other) continue;
    const double one = run->samples_per_second / other->samples_per_second;
    ratio.low = count == 0 ? one : std::min(ratio.low, one);
    ratio.high = std::max(ratio.high, one);
    logarithms += std::log(one);
    ++count;
  }
  if (count > 0) ratio.geometric_mean = std::exp(logarithms / count);
  return ratio;
}

const BenchRow* faster(const BenchRow* fastest, const BenchRow& other) {
  return fastest && fastest->samples_per_second >= other.samples_per_second ? fastest : &other;
}

void add_difference(BenchRow& row, const Runs& runs, const Runs& others) {
  std::vector<double> differences;
  for (const BenchRun* run : runs) {
    const BenchRun* const other = of_seed(others, run->seed);
    if (!other || other->right.size() != run->right.size()) continue;
    for (std::size_t i = 0; i < run->right.size(); ++i)
      differences.push_back(static_cast<double>(run->right[i]) - static_cast<double>(other->right[i]));
  }
  if (differences.size() < 2) return;
  const auto n = static_cast<double>(differences.size());
  double sum = 0, squares = 0;
  for (const double d : differences) {
    sum += d;
    squares += d * d;
  }
  row.difference = sum / n;
  const double half_width = 1.96 * std::sqrt(std::max(0.0, squares / n - row.difference * row.difference) / n);
  row.low = row.difference - half_width;
  row.high = row.difference + half_width;
  row.has_difference = true;
}

}  // namespace

BenchRun bench_run_of(std::string dataset, std::string configuration, const RunSummary& run) {
  BenchRun made{.dataset = std::move(dataset),
                .configuration = std::move(configuration),
                .seed = run.seed,
                .samples_per_second = run.samples_per_second,
                .wall_seconds = run.wall_seconds,
                .test_accuracy = run.test_accuracy,
                .peak_memory_bytes = 0,
                .world_size = run.world_size,
                .threads_per_rank = run.threads_per_rank,
                .freezes = freezes(run),
                .right = {}};
  for (const PhaseSummary& phase : run.phases) {
    for (const Bytes bytes : phase.measured_peak_memory_bytes)
      made.peak_memory_bytes = std::max(made.peak_memory_bytes, bytes);
  }
  // The items get the same order in every run.
  std::vector<std::pair<int, bool>> items;
  for (std::size_t i = 0; i < run.test_items.size(); ++i)
    items.emplace_back(run.test_items[i], run.test_predictions[i] == run.test_labels[i]);
  std::sort(items.begin(), items.end());
  for (const auto& [item, right] : items) made.right.push_back(right);
  return made;
}

std::vector<BenchRow> bench_rows(const std::vector<BenchRun>& runs) {
  std::vector<BenchRow> rows;
  for (const BenchRun& run : runs) {
    const bool known = std::any_of(rows.begin(), rows.end(), [&](const BenchRow& row) {
      return row.dataset == run.dataset && row.configuration == run.configuration;
    });
    if (known) continue;
    const Runs own = select(runs, run.dataset, run.configuration);
    BenchRow row{.dataset = run.dataset,
                 .configuration = run.configuration,
                 .world_size = run.world_size,
                 .threads_per_rank = run.threads_per_rank,
                 .num_seeds = static_cast<int>(own.size())};
    row.samples_per_second = median_speed(own);
    for (const BenchRun* one : own) {
      row.freezes = row.freezes || one->freezes;
      row.accuracy += one->test_accuracy / static_cast<double>(own.size());
      row.peak_memory_bytes = std::max(row.peak_memory_bytes, one->peak_memory_bytes);
    }
    rows.push_back(std::move(row));
  }
  for (BenchRow& row : rows) {
    const BenchRow *fastest_static = nullptr, *fastest_unfrozen = nullptr;
    row.on_frontier = true;
    for (const BenchRow& other : rows) {
      if (other.dataset != row.dataset) continue;
      if (other.configuration.starts_with("static")) fastest_static = faster(fastest_static, other);
      if (!other.freezes) fastest_unfrozen = faster(fastest_unfrozen, other);
      if (other.samples_per_second > row.samples_per_second && other.accuracy > row.accuracy) row.on_frontier = false;
    }
    const Runs own = select(runs, row.dataset, row.configuration);
    if (fastest_static) row.to_static = ratio_of(own, select(runs, row.dataset, fastest_static->configuration));
    if (fastest_unfrozen)
      row.to_best_unfrozen = ratio_of(own, select(runs, row.dataset, fastest_unfrozen->configuration));
    const Runs data_parallel = select(runs, row.dataset, "data_parallel");
    row.to_data_parallel = ratio_of(own, data_parallel);
    if (row.configuration != "data_parallel") add_difference(row, own, data_parallel);
  }
  return rows;
}

std::string to_json(const std::vector<BenchRow>& rows) { return json::write_envelope("frostpipe.bench", Rows{rows}); }

}  // namespace frostpipe
