#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/separated_values.h"
#include "papers/megatron_prediction.h"
#include "papers/published_suites.h"

namespace frostpipe {
namespace {

constexpr std::string_view kSingleHeader =
    "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,data "
    "parallelism,pipeline parallelism,iteration time (ms)";
constexpr std::string_view kMultiHeader =
    "Parameters (billion),# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor "
    "parallelism,data parallelism,pipeline "
    "parallelism,iteration time (ms)";

/// Reads the rows of numbers. The file's first line must be `header`.
std::vector<std::vector<double>> numbers_in(const std::filesystem::path& path, std::string_view header) {
  std::string text = read_text_file(path);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  std::vector<std::vector<double>> rows;
  int line_number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++line_number;
    const std::string place = fmt::format("{}, line {}", path.string(), line_number);
    if (line_number == 1) {
      if (line != header)
        throw InvalidInput(place, fmt::format("must be \"{}\"", header), fmt::format("\"{}\"", line.substr(0, 60)));
      continue;
    }
    if (line.empty()) continue;
    auto& row = rows.emplace_back();
    for (const std::string_view field : split(line, ',')) {
      double number = 0;
      const char* const end = field.data() + field.size();
      const auto [stop, error] = std::from_chars(field.data(), end, number);
      if (error != std::errc() || stop != end)
        throw InvalidInput(place, "must be numbers separated by commas", fmt::format("\"{}\"", line));
      row.push_back(number);
    }
    const std::size_t columns = split(header, ',').size();
    if (row.size() != columns)
      throw InvalidInput(place, fmt::format("must have {} columns", columns), std::to_string(row.size()));
  }
  return rows;
}

/// Makes a run from the columns from "global batch" on, whose order is the same in both files.
MegatronRun run_of(const double* column) {
  const auto whole = [&](int index) { return static_cast<int>(column[index]); };
  return {.hidden = whole(2),
          .heads = whole(3),
          .layers = whole(4),
          .tokens = whole(5),
          .tensor_parallel_size = whole(6),
          .data_parallel_size = whole(7),
          .pipeline_parallel_size = whole(8),
          .global_batch_size = whole(0),
          .micro_batch_size = whole(1)};
}

/// Makes a run of one node. Its activations are kept: with recomputation, the measured times would require matrix
/// products faster than the peak of an A100. (Most runs of several nodes must recompute to fit into 80 GB.) Each tensor
/// rank has 50257 / t columns of the vocabulary, rounded down and not padded, as in vTrain's own model.
MegatronRun run_of_one_node(const double* column) {
  MegatronRun run = run_of(column);
  run.recomputes = false;
  run.vocabulary = 50257;
  return run;
}

std::string name_of(const MegatronRun& run) {
  return fmt::format("h {} l {} t {} d {} p {} B {} b {}", run.hidden, run.layers, run.tensor_parallel_size,
                     run.data_parallel_size, run.pipeline_parallel_size, run.global_batch_size, run.micro_batch_size);
}

double predicted_seconds(const MegatronRun& run) { return 1e-9 * static_cast<double>(predict_iteration_ns(run, {})); }

}  // namespace

PublishedTable vtrain_table(const std::string& folder) {
  PublishedTable table{
      .suite = "vtrain", .source = "vTrain (Bang et al., MICRO 2024): Megatron-DeepSpeed on A100s", .rows = {}};
  for (const auto& row : numbers_in(std::filesystem::path(folder) / "ground_truth_multi.csv", kMultiHeader)) {
    const MegatronRun run = run_of(row.data() + 2);
    table.rows.push_back({.group = "several nodes",
                          .what = "time [s]",
                          .run = fmt::format("{}B, {}", row[0], name_of(run)),
                          .base = {},
                          .measured = 1e-3 * row.back(),
                          .predicted = predicted_seconds(run),
                          .note = {}});
  }
  for (const auto& row : numbers_in(std::filesystem::path(folder) / "ground_truth_single.csv", kSingleHeader)) {
    const MegatronRun run = run_of_one_node(row.data() + 1);
    // All rows with the same micro-batch size, hidden size, tensor-parallel and pipeline-parallel size follow exactly
    // from one measurement, so they count as one.
    table.rows.push_back({.group = "one node",
                          .what = "time [s]",
                          .run = name_of(run),
                          .base = fmt::format("{} {} {} {}", run.micro_batch_size, run.hidden, run.tensor_parallel_size,
                                              run.pipeline_parallel_size),
                          .measured = 1e-3 * row.back(),
                          .predicted = predicted_seconds(run),
                          .note = {}});
  }
  return table;
}

}  // namespace frostpipe
