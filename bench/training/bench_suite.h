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
  bool is_frontier = false;   // another freeze speed of an earlier one
  std::string paper_speedup;  // what the paper's Figure 9 says of it, for ViT on ImageNet and 16 GPUs; empty = nothing
};

/// What is trained: options that `profile`, `plan` and `train` get for every configuration.
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

/// The honest table, MiniLM on real texts: baselines that nobody has handicapped, one process on all cores among them,
/// the published rules, ours, and ours at other freeze speeds.
BenchSuite pipetransformer_suite(int epochs, std::vector<BenchData> data);

/// Its data, for a Hugging Face folder `model`. The profile is of one rank per core, and of one process on all of them.
/// Both throw InvalidInput if a file cannot be read.

/// The quickstart's texts: a TSV file.
BenchData sections_data(const std::string& model, const std::filesystem::path& sections);

/// GLUE's SST-2, a folder with train.tsv and dev.tsv: 8,000 of its training phrases, drawn the same whenever it is
/// asked and written to `folder`, and all of dev.tsv to test on.
BenchData sst2_data(const std::string& model, const std::filesystem::path& sst2, const std::filesystem::path& folder);

/// Eight emulated ranks, pipelines that start with eight stages, the cap with alpha 1/3 once an epoch, on estimated
/// models.
BenchSuite rehearsal_suite(int epochs);

/// Leaves the configurations that `names` lists, separated by commas; where it is empty, all but the other freeze
/// speeds, and with `is_full` those too.
void select_configurations(BenchSuite& suite, const std::string& names, bool is_full);

}  // namespace frostpipe
