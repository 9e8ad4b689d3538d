#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "papers/csv_table.h"
#include "papers/megatron_prediction.h"
#include "papers/published_suites.h"

namespace frostpipe {
namespace {

constexpr int kBloomTokens = 2048, kBloomVocabulary = 250'880;
constexpr int kUsualHeads = 64;  // if the source does not state the number
constexpr double kDeviceGib = 80;
constexpr const char* kTuned = "2022-02-25";  // the day from which the hosts were faster
constexpr const char* kEmbeddingCounts = "embedding counts as a layer";

struct BloomRun {
  MegatronRun job;
  bool shards_optimizer = false;
  bool is_early = false;  // before the hosts were tuned
  double seconds = 0;     // measured, per iteration; 0: it ran out of memory
  double memory_gib = 0;  // largest of a rank, measured; 0: not known
  std::string name, place, note;
};

// These constants, and those of bloom_constants() marked as fitted, were fitted to the rows of the group "fitted on",
// by a search along each constant in turn.
constexpr double kEarlyTime = 1.057;         // factor of an iteration before the hosts were tuned
constexpr double kContextGib = 7.1;          // driver, communication library, buckets of the sharded optimizer
constexpr double kStoredActivations = 1.44;  // factor of the counted bytes

/// Returns the constants for BLOOM's machine. Bandwidths of links and memory are the manufacturers' values: 300 GB/s of
/// NVLink, and four network links of 100 Gbit/s per node. Messages have at least 59 MB, so their latency is negligible.
MegatronConstants bloom_constants() {
  return {.memory_bytes_per_second = 2.04e12,
          .gemm_efficiency = 0.71,    // fitted
          .gemm_half_flops = 64.5e9,  // fitted: launches are synchronous, so every product waits for the host
          .memory_efficiency = 0.8,
          .unaligned_efficiency = 0.762,  // fitted
          .nvlink_bytes_per_second = 300e9,
          .tree_step_ns = 0,
          .network_bytes_per_second = 50e9,
          .waits_for_messages = true};
}

double predicted_seconds(const BloomRun& run) {
  try {
    return 1e-9 * static_cast<double>(predict_iteration_ns(run.job, bloom_constants())) *
           (run.is_early ? kEarlyTime : 1);
  } catch (const InvalidInput& error) {
    throw InvalidInput(fmt::format("{}: {}", run.place, error.what()));
  }
}

/// Returns the bytes of memory per parameter on a rank. A weight and its fp16 gradient take 2 bytes each; an fp32
/// gradient takes 4 bytes more, beside the fp16 one. The optimizer holds master weight, two moments and its own
/// gradient in fp32, sharded over the replicas if shards_optimizer.
double bytes_per_parameter(const BloomRun& run) {
  const double gradients = run.job.gradient_bytes > kHalfBytes ? run.job.gradient_bytes + kHalfBytes : kHalfBytes;
  return kHalfBytes + gradients + 16.0 / (run.shards_optimizer ? run.job.data_parallel_size : 1);
}

/// Returns the largest memory of a rank in GiB: its parameters, each layer's input for every micro-batch in flight, one
/// layer's activations, which the backward computes again, and on the last rank the logits in fp16 and fp32, with their
/// gradient.
double predicted_gib(const BloomRun& run) {
  const MegatronRun& job = run.job;
  const double h = job.hidden, t = job.tensor_parallel_size, a = job.heads, s = job.tokens, b = job.micro_batch_size;
  const int p = job.pipeline_parallel_size, m = job.global_batch_size / (job.micro_batch_size * job.data_parallel_size);
  const double units = static_cast<double>(job.layers + (job.embeddings_count_as_layers ? 2 : 0)) / p;
  const double again = b * s * (h * (10 + 24 / t) + 5 * a * s / t);
  double largest = 0;
  for (int rank = 0; rank < p; ++rank) {
    const int ends = (rank == 0 ? 1 : 0) + (rank == p - 1 ? 1 : 0);
    const double layers = units - (job.embeddings_count_as_layers ? ends : 0);
    const double parameters = (12 * layers * h * h + (ends > 0 ? job.vocabulary * h : 0)) / t;
    const double inputs = kHalfBytes * s * b * h * layers * std::min(p - rank, m);
    const double logits = rank == p - 1 ? 10 * b * s * job.vocabulary / t : 0;
    largest = std::max(largest, bytes_per_parameter(run) * parameters + kStoredActivations * inputs + again + logits);
  }
  return kContextGib + largest / (1024.0 * 1024 * 1024);
}

BloomRun bloom_run(const CsvTable& file, std::size_t row) {
  const auto count = [&](const char* column) { return file.integer(row, column, 1); };
  BloomRun run{.job = {.hidden = count("hidden"),
                       .heads = file.is_empty(row, "heads") ? kUsualHeads : count("heads"),
                       .layers = count("layers"),
                       .tokens = kBloomTokens,
                       .vocabulary = kBloomVocabulary,
                       .tensor_parallel_size = count("tp"),
                       .data_parallel_size = count("dp"),
                       .pipeline_parallel_size = count("pp"),
                       .global_batch_size = count("global_batch"),
                       .micro_batch_size = count("micro_batch"),
                       .scatter_gather = true},
               .shards_optimizer = file.word(row, "zero", {"0", "1"}) == "1",
               .is_early = file.text(row, "date") < kTuned,
               .name = {},
               .place = file.place(row, "layers"),
               .note = file.text(row, "note")};
  const MegatronRun& job = run.job;
  run.job.embeddings_count_as_layers =
      file.word(row, "partition", {"transformer layers alone", kEmbeddingCounts}) == kEmbeddingCounts;
  if (file.word(row, "gradients", {"fp16", "fp32"}) == "fp32") run.job.gradient_bytes = 4;
  if (file.word(row, "oom", {"yes", "no"}) == "no") run.seconds = file.number(row, "seconds_per_iteration", 1e-3);
  if (!file.is_empty(row, "max_memory_gb")) run.memory_gib = file.number(row, "max_memory_gb", 1);
  run.name = fmt::format("{} h {} l {} a {} t {} p {} d {} B {} b {}{}", file.text(row, "date"), job.hidden, job.layers,
                         file.is_empty(row, "heads") ? "?" : file.text(row, "heads"), job.tensor_parallel_size,
                         job.pipeline_parallel_size, job.data_parallel_size, job.global_batch_size,
                         job.micro_batch_size, run.shards_optimizer ? "" : " zero 0");
  return run;
}

/// Keeps each measurement once, since the source lists some of them twice.
std::vector<BloomRun> bloom_runs(const std::filesystem::path& path) {
  const CsvTable file(path);
  std::vector<BloomRun> runs;
  std::set<std::vector<std::string>> seen;
  for (std::size_t row = 0; row < file.num_rows(); ++row) {
    std::vector<std::string> job;  // without the number of heads, which only one of two duplicates states
    for (const char* const column :
         {"date", "hidden", "layers", "tp", "pp", "dp", "zero", "micro_batch", "global_batch", "seconds_per_iteration"})
      job.push_back(file.text(row, column));
    if (seen.insert(job).second) runs.push_back(bloom_run(file, row));
  }
  if (runs.empty()) throw InvalidInput(path.string(), "must hold runs", "none");
  return runs;
}

}  // namespace

PublishedTable bloom_table(const std::string& folder) {
  PublishedTable table{.suite = "bloom",
                       .source = "BLOOM's search for a layout (BigScience, 2022): Megatron-DeepSpeed on A100s of 80 GB",
                       .rows = {}};
  std::vector<PublishedRow> memory;
  // Counts the rows with a time and those with memory. The constants were fitted to every second one of each.
  std::size_t num_with_time = 0, num_with_memory = 0;
  const auto group = [](std::size_t& index) { return index++ % 2 == 0 ? "fitted on" : "judged on"; };
  for (const BloomRun& run : bloom_runs(std::filesystem::path(folder) / "runs.csv")) {
    const bool has_run = run.seconds > 0;
    const double seconds = predicted_seconds(run);  // throws if the row does not describe a valid run
    if (has_run)
      table.rows.push_back({.group = group(num_with_time),
                            .what = "time [s]",
                            .run = run.name,
                            .measured = run.seconds,
                            .predicted = seconds,
                            .note = run.note});
    if (has_run && run.memory_gib == 0) continue;
    memory.push_back({.group = has_run ? group(num_with_memory) : "ran out of memory",
                      .what = "memory [GiB]",
                      .run = run.name,
                      .measured = has_run ? run.memory_gib : kDeviceGib,
                      .predicted = predicted_gib(run),
                      .counts = has_run,
                      .note = has_run ? run.note : "ran out of memory"});
  }
  table.rows.insert(table.rows.end(), memory.begin(), memory.end());
  return table;
}

}  // namespace frostpipe
