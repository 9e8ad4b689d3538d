#include "plan/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <random>
#include <set>

#include "base/statistics.h"
#include "plan/summary_json.h"

namespace frostpipe {

template <class Archive>
void fields(Archive& archive, json::Value<Archive, PairedAccuracy>& accuracy) {
  archive("run", accuracy.run);
  archive("baseline", accuracy.baseline);
  archive("difference", accuracy.difference);
  archive("low", accuracy.low);
  archive("high", accuracy.high);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Speedup>& speedup) {
  archive("run", speedup.run);
  archive("baseline", speedup.baseline);
  archive("factor", speedup.factor);
  archive("low", speedup.low);
  archive("high", speedup.high);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, WhatIf>& what_if) {
  archive("name", what_if.name);
  archive("iteration_ns", what_if.iteration_ns, json::at_least(0));
  archive("baseline_iteration_ns", what_if.baseline_iteration_ns, json::at_least(0));
  archive("sentence", what_if.sentence);
}

namespace {

/// A Comparison as its file stores it: runs keyed by name, and the list of their order.
struct ComparisonFile {
  std::map<std::string, RunSummary> runs;
  std::vector<std::string> order;
  std::vector<Speedup> speedups;
  std::vector<PairedAccuracy> accuracies;
  std::vector<WhatIf> what_ifs;
};

template <class Archive>
void fields(Archive& archive, json::Value<Archive, ComparisonFile>& file) {
  archive("runs", file.runs);
  archive("order", file.order);
  archive("speedups", file.speedups);
  archive("accuracies", file.accuracies);
  archive("what_ifs", file.what_ifs);
}

/// Draws a run's recorded steps again, with replacement, to get its throughput. Steps are drawn within each phase,
/// since differences between phases come from the plan and are not noise.
class Resampler {
 public:
  explicit Resampler(const RunSummary& run) {
    for (const auto& phase : run.phases) fixed_ns_ += phase.transformation_ns;
    std::map<int, std::vector<StepRecord>> by_phase;
    for (const auto& record : run.steps) {
      int phase = -1;
      for (const auto& candidate : run.phases) phase += candidate.from_step <= record.step ? 1 : 0;
      by_phase[phase].push_back(record);
    }
    for (auto& [phase, records] : by_phase) groups_.push_back(std::move(records));
  }

  bool empty() const { return groups_.empty(); }

  double draw(std::mt19937_64& random) const {
    double samples = 0, time_ns = static_cast<double>(fixed_ns_);
    for (const auto& group : groups_) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        // std::uniform_int_distribution is avoided: its numbers differ between standard libraries.
        const auto& record = group[random() % group.size()];
        samples += record.samples;
        time_ns += static_cast<double>(record.iteration_ns);
      }
    }
    return time_ns > 0 ? samples / time_ns : 0;
  }

 private:
  std::vector<std::vector<StepRecord>> groups_;
  Nanoseconds fixed_ns_ = 0;
};

Speedup speedup_of(const RunSummary& run, const RunSummary& baseline) {
  constexpr int kResamples = 200;
  constexpr std::uint64_t kSeed = 20210718;
  Speedup speedup{.run = run.name, .baseline = baseline.name, .factor = 0, .low = 0, .high = 0};
  if (baseline.samples_per_second > 0) speedup.factor = run.samples_per_second / baseline.samples_per_second;
  speedup.low = speedup.high = speedup.factor;
  const Resampler ours(run), theirs(baseline);
  if (ours.empty() || theirs.empty()) return speedup;
  std::mt19937_64 random(kSeed);
  std::vector<double> ratios;
  for (int i = 0; i < kResamples; ++i) {
    const double own = ours.draw(random), other = theirs.draw(random);
    if (other > 0) ratios.push_back(own / other);
  }
  if (ratios.empty()) return speedup;
  speedup.low = quantile(ratios, 0.1);
  speedup.high = quantile(ratios, 0.9);
  return speedup;
}

bool predicted_same_items(const RunSummary& a, const RunSummary& b) {
  const auto complete = [](const RunSummary& run) {
    return run.test_labels.size() == run.test_items.size() && run.test_predictions.size() == run.test_items.size();
  };
  return !a.test_items.empty() && a.test_items == b.test_items && a.test_labels == b.test_labels && complete(a) &&
         complete(b);
}

PairedAccuracy accuracy_of(const RunSummary& run, const RunSummary& baseline) {
  const auto n = static_cast<double>(run.test_items.size());
  double sum = 0, sum_of_squares = 0;
  for (std::size_t i = 0; i < run.test_items.size(); ++i) {
    const int d =
        (run.test_predictions[i] == run.test_labels[i]) - (baseline.test_predictions[i] == run.test_labels[i]);
    sum += d;
    sum_of_squares += d * d;
  }
  const double mean = sum / n;
  const double variance = std::max(0.0, sum_of_squares / n - mean * mean);
  const double half_width = 1.96 * std::sqrt(variance / n);
  return {.run = run.name,
          .baseline = baseline.name,
          .difference = mean,
          .low = mean - half_width,
          .high = mean + half_width};
}

/// Runs are keyed by name: a second "elastic" becomes "elastic_2".
void make_names_unique(std::vector<RunSummary>& runs) {
  std::set<std::string> taken;
  for (auto& run : runs) {
    std::string name = run.name;
    for (int number = 2; !taken.insert(name).second; ++number) name = fmt::format("{}_{}", run.name, number);
    run.name = name;
  }
}

}  // namespace

Comparison compare(std::vector<RunSummary> runs) {
  make_names_unique(runs);
  Comparison comparison;
  for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
    comparison.speedups.push_back(speedup_of(runs.back(), runs[i]));
    if (predicted_same_items(runs.back(), runs[i])) comparison.accuracies.push_back(accuracy_of(runs.back(), runs[i]));
  }
  comparison.runs = std::move(runs);
  return comparison;
}

std::optional<std::string> fastest_other(const Comparison& comparison) {
  if (comparison.runs.size() < 3) return std::nullopt;
  return std::max_element(
             comparison.runs.begin(), std::prev(comparison.runs.end()),
             [](const RunSummary& a, const RunSummary& b) { return a.samples_per_second < b.samples_per_second; })
      ->name;
}

std::string to_json(const Comparison& comparison) {
  ComparisonFile file{.runs = {},
                      .order = {},
                      .speedups = comparison.speedups,
                      .accuracies = comparison.accuracies,
                      .what_ifs = comparison.what_ifs};
  for (const auto& run : comparison.runs) {
    file.order.push_back(run.name);
    FROSTPIPE_CHECK(file.runs.emplace(run.name, run).second, "compare makes the names of runs unique");
  }
  return json::write_envelope("frostpipe.summary", file, kRunVersion);
}

Comparison comparison_from_json(std::string_view json, std::string_view source) {
  auto file = json::read_envelope<ComparisonFile>(json, source, "frostpipe.summary", kRunVersion);
  Comparison comparison{.runs = {},
                        .speedups = std::move(file.speedups),
                        .accuracies = std::move(file.accuracies),
                        .what_ifs = std::move(file.what_ifs)};
  for (std::size_t i = 0; i < file.order.size(); ++i) {
    const auto found = file.runs.find(file.order[i]);
    if (found == file.runs.end())
      throw InvalidInput(fmt::format("{}: order[{}]", source, i), "must name one of the runs, each once",
                         fmt::format("\"{}\"", file.order[i]));
    if (found->second.name != file.order[i])
      throw InvalidInput(fmt::format("{}: runs.{}.name", source, file.order[i]), "must be the key that it stands under",
                         fmt::format("\"{}\"", found->second.name));
    comparison.runs.push_back(std::move(found->second));
    file.runs.erase(found);
  }
  if (!file.runs.empty())
    throw InvalidInput(fmt::format("{}: order", source), "must name every run",
                       fmt::format("without \"{}\"", file.runs.begin()->first));
  return comparison;
}

}  // namespace frostpipe
