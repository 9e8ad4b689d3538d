#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace frostpipe {

/// One way to train, by the options that `plan` and `train` get.
struct BenchConfiguration {
  std::string name;
  std::string meaning;
  std::vector<std::string> plan, train;
  bool is_frontier = false;   // like an earlier one, with another freeze speed
  std::string paper_speedup;  // in the paper's Figure 9, for ViT on ImageNet and 16 GPUs; empty = not there
};

/// A data set: options that `profile`, `plan` and `train` get for every configuration.
struct BenchData {
  std::string name;
  std::vector<std::string> profile, plan, train;
};

/// Configurations on data, in one table; every run has the same length.
struct BenchSuite {
  std::string title;
  int epochs = 1;
  std::vector<BenchConfiguration> configurations;
  std::vector<BenchData> data;
};

/// Returns the suite for MiniLM on real texts: the strongest baselines, including one process on all cores, the
/// published rules, our plans, and our plans at other freeze speeds.
BenchSuite pipetransformer_suite(int epochs, std::vector<BenchData> data);

// These functions return the data of that suite, for a Hugging Face folder `model`. The profile measures one rank per
// core, and one process on all cores. Both throw InvalidInput if a file cannot be read.

/// Returns the quickstart's texts, from a TSV file.
BenchData sections_data(const std::string& model, const std::filesystem::path& sections);

/// Returns GLUE's SST-2, from a folder with train.tsv and dev.tsv: 8,000 of its training phrases, the same random
/// choice in every call, written to `folder`, and all of dev.tsv as test data.
BenchData sst2_data(const std::string& model, const std::filesystem::path& sst2, const std::filesystem::path& folder);

/// Returns the suite on eight emulated ranks and estimated models: pipelines start with eight stages, and the cap rule
/// with alpha 1/3 freezes layers once an epoch.
BenchSuite rehearsal_suite(int epochs);

/// Keeps the configurations in the comma-separated list `names`; if it is empty, all except the other freeze speeds,
/// and with `is_full` those too. Throws UsageError for a name that is not in the suite.
void select_configurations(BenchSuite& suite, const std::string& names, bool is_full);

}  // namespace frostpipe
