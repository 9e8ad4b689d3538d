#include "bench/training/bench_suite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/files.h"
#include "base/separated_values.h"
#include "cli/shared/usage_error.h"
#include "plan/run_length.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

/// The number of cores of the suite: its profile has as many ranks, and one process as many threads.
constexpr int kSuiteCores = 2;
constexpr int kSst2Phrases = 8000;

using Options = std::vector<std::string>;

Options operator+(Options first, const Options& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Options freeze_options(const std::string& alpha, const std::string& warm_up, const std::string& interval) {
  return {"--freeze-set",       "alpha=" + alpha, "--freeze-set",
          "warm-up=" + warm_up, "--freeze-set",   "interval=" + interval};
}

/// Returns the header and a random choice of lines, which is the same in every call.
std::string random_lines(const std::string& text, int count) {
  std::vector<std::string_view> lines = split(text, '\n');
  const std::string_view header = lines.front();
  lines.erase(lines.begin());
  std::erase(lines, "");
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < lines.size() && i < static_cast<std::size_t>(count); ++i)
    std::swap(lines[i], lines[i + random() % (lines.size() - i)]);
  lines.resize(std::min<std::size_t>(lines.size(), count));
  return fmt::format("{}\n{}\n", header, fmt::join(lines, "\n"));
}

BenchData suite_data(const std::string& name, const std::string& model, const Options& data) {
  return {.name = name,
          .profile = Options{"--model", model, "--global-batch", "64", "--nproc-per-node", std::to_string(kSuiteCores),
                             "--memory-limit", "384MiB"} +
                     data,
          .plan = {"--global-batch", "64"},
          .train = data};
}

std::vector<BenchConfiguration> pipetransformer_configurations(int epochs) {
  const std::string one_epoch = fmt::format("{:.6f}", 1.0 / epochs);
  const Options elastic{"--method", "pipetransformer"}, one_process{"--threads-per-rank", std::to_string(kSuiteCores)};
  const auto rule = [](const std::string& name, const std::string& warm_up, const std::string& interval) {
    return Options{"--freeze", name, "--freeze-set", "warm-up=" + warm_up, "--freeze-set", "interval=" + interval};
  };
  const Options by_steps =
      rule("fixed:3,3,5,6", "0.25", "0.15");  // freezes the lower half of a pretrained encoder early, the rest late
  return {
      {"data_parallel",
       "a replica per rank, without the memory limit",
       {"--method", "data-parallel", "--ignore-memory-limit"},
       {}},
      {"one_process", "one process on all cores, without the memory limit",
       Options{"--method", "data-parallel", "--ignore-memory-limit"} + one_process},
      {"static_gpipe", "the best static GPipe pipeline", {"--method", "static", "--schedule", "GPipe"}, {}},
      {"static_1f1b", "the best static 1F1B pipeline", {"--method", "static", "--schedule", "1F1B"}, {}},
      {"freeze_only",
       "the best static pipeline, freezing 3, 5, 6 blocks at 25, 55, 70 % of the run",
       {"--method", "freeze-only"},
       by_steps,
       false,
       "0.95"},
      {"published",
       "PipeTransformer's rules as published, alpha 1/3 and a decision each epoch",
       {"--method", "pipetransformer-published"},
       Options{"--freeze", "cap"} + freeze_options("0.333333", one_epoch, one_epoch)},
      {"elastic_no_cache",
       "ours without the cache, freezing as freeze_only",
       {"--method", "pipetransformer", "--cache", "off"},
       by_steps,
       false,
       "2.27"},
      {"elastic", "ours in the fastest layout, freezing as freeze_only", elastic, by_steps, false, "2.83"},
      {"one_process_elastic", "ours in one process on all cores, freezing as freeze_only", elastic + one_process,
       by_steps},
      {"elastic_fast", "ours, freezing 3, 5, 6 blocks at 15, 30, 45 %", elastic, rule("fixed:3,5,6", "0.15", "0.15"),
       true},
      {"elastic_gradual", "ours, freezing 2, 3, 4, 5, 6 blocks from 20 % on, every 16 %", elastic,
       rule("fixed:2,3,4,5,6", "0.2", "0.16"), true},
      {"elastic_cap_10", "ours, by the cap rule (alpha 1/2) from 10 % of the run on", elastic,
       rule("cap", "0.1", "0.125"), true},
      {"elastic_cap_34", "ours, by the cap rule (alpha 1/2) from 34 % of the run on", elastic,
       rule("cap", "0.34", "0.125"), true},
      {"elastic_adaptive", "ours, by the adaptive rule", elastic,
       Options{"--freeze", "adaptive", "--freeze-set", "warm-up=0.1"}, true},
  };
}

std::vector<BenchConfiguration> rehearsal_configurations(int epochs) {
  const std::string one_epoch = fmt::format("{:.6f}", 1.0 / epochs);
  const Options rule = freeze_options("0.333333", one_epoch, one_epoch), eight_stages{"--fix", "pp=8"},
                cached{"--cache", "64GiB"};
  const Options freeze = Options{"--freeze", "cap"} + rule;
  const auto method = [&](const std::string& name) { return Options{"--method", name} + eight_stages + rule; };
  return {
      {"data_parallel", "a replica per rank", {"--method", "data-parallel"}, {}},
      {"static_gpipe",
       "GPipe, 8 stages throughout, best partition and micro-batches",
       {"--method", "static", "--schedule", "GPipe", "--fix", "pp=8"},
       {}},
      {"static_1f1b",
       "1F1B, 8 stages throughout, best partition and micro-batches",
       {"--method", "static", "--schedule", "1F1B", "--fix", "pp=8"},
       {}},
      {"freeze_only", "8 stages throughout, freezing", method("freeze-only"), freeze, false, "0.95"},
      {"published", "PipeTransformer's rules as published", {"--method", "pipetransformer-published"}, freeze},
      {"without_replicas", "ours, with freed ranks idle: AutoPipe and AutoCache",
       method("pipetransformer-without-replicas") + cached, freeze, false, "1.26"},
      {"elastic_no_cache", "ours without the cache: AutoPipe and AutoDP",
       method("pipetransformer") + Options{"--cache", "off"}, freeze, false, "2.27"},
      {"elastic", "ours: AutoPipe, AutoDP and AutoCache", method("pipetransformer") + cached, freeze, false, "2.83"},
  };
}

std::vector<BenchData> rehearsal_data() {
  const Options train{"--device", "emulated", "--emulated-links"};
  const auto like = [&](const std::string& name, const std::string& batch, const std::string& samples) {
    return BenchData{name,
                     {"--like", name, "--nproc-per-node", "8", "--global-batch", batch, "--samples", samples,
                      "--memory-limit", "15GiB"},
                     {"--global-batch", batch},
                     train};
  };
  return {like("vit-b16", "512", "4096"), like("bert-large", "64", "1024")};
}

}  // namespace

BenchSuite pipetransformer_suite(int epochs, std::vector<BenchData> data) {
  return {.title = fmt::format("PipeTransformer and its baselines: MiniLM, {} of mini-batch 64, {} cores, 384 MiB "
                               "per core (data_parallel, one_process: no limit)",
                               epochs_text(epochs), kSuiteCores),
          .epochs = epochs,
          .configurations = pipetransformer_configurations(epochs),
          .data = std::move(data)};
}

BenchData sections_data(const std::string& model, const fs::path& sections) {
  read_text_file(sections);  // reports an unreadable file now
  return suite_data("sections", model, {"--data", fs::absolute(sections).string()});
}

BenchData sst2_data(const std::string& model, const fs::path& sst2, const fs::path& folder) {
  const fs::path subset = folder / "sst2.train.tsv", test = sst2 / "dev.tsv";
  write_file_atomically(subset, random_lines(read_text_file(sst2 / "train.tsv"), kSst2Phrases));
  read_text_file(test);
  return suite_data("sst2", model,
                    {"--data", fs::absolute(subset).string(), "--test-data", fs::absolute(test).string()});
}

BenchSuite rehearsal_suite(int epochs) {
  return {.title = fmt::format("Rehearsal: {} on 8 emulated ranks of 15 GiB, links at the times of the cluster file",
                               epochs_text(epochs)),
          .epochs = epochs,
          .configurations = rehearsal_configurations(epochs),
          .data = rehearsal_data()};
}

void select_configurations(BenchSuite& suite, const std::string& names, bool is_full) {
  std::vector<BenchConfiguration>& all = suite.configurations;
  if (names.empty()) {
    if (!is_full) std::erase_if(all, [](const BenchConfiguration& one) { return one.is_frontier; });
    return;
  }
  const std::vector<std::string_view> wanted = split(names, ',');
  std::vector<std::string_view> known;
  for (const BenchConfiguration& one : all) known.push_back(one.name);
  for (const std::string_view name : wanted)
    if (std::ranges::find(known, name) == known.end())
      throw UsageError("--only", fmt::format("must name some of {}", fmt::join(known, ", ")), name);
  std::erase_if(all,
                [&](const BenchConfiguration& one) { return std::ranges::find(wanted, one.name) == wanted.end(); });
}

}  // namespace frostpipe
