#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "papers/csv_table.h"
#include "papers/megatron_prediction.h"
#include "papers/published_suites.h"

namespace frostpipe {
namespace {

MegatronRun run_of(const CsvTable& file, std::size_t row) {
  const auto count = [&](const char* column) { return file.integer(row, column, 1); };
  return {.hidden = count("hidden size"),
          .heads = count("attention heads"),
          .layers = count("# layers"),
          .tokens = count("sequence length"),
          .tensor_parallel_size = count("tensor parallelism"),
          .data_parallel_size = count("data parallelism"),
          .pipeline_parallel_size = count("pipeline parallelism"),
          .global_batch_size = count("global batch"),
          .micro_batch_size = count("micro batch")};
}

/// Makes a run of one node. Its activations are kept: with recomputation, the measured times would require matrix
/// products faster than the peak of an A100. (Most runs of several nodes must recompute to fit into 80 GB.) Each tensor
/// rank has 50257 / t columns of the vocabulary, rounded down and not padded, as in vTrain's own model.
MegatronRun run_of_one_node(const CsvTable& file, std::size_t row) {
  MegatronRun run = run_of(file, row);
  run.recomputes = false;
  run.vocabulary = 50257;
  return run;
}

std::string name_of(const MegatronRun& run) {
  return fmt::format("h {} l {} t {} d {} p {} B {} b {}", run.hidden, run.layers, run.tensor_parallel_size,
                     run.data_parallel_size, run.pipeline_parallel_size, run.global_batch_size, run.micro_batch_size);
}

PublishedRow row_of(const CsvTable& file, std::size_t row, const MegatronRun& run) {
  const double measured = 1e-3 * file.number(row, "iteration time (ms)", 1e-3);
  try {
    return {.what = "time [s]",
            .run = name_of(run),
            .measured = measured,
            .predicted = 1e-9 * static_cast<double>(predict_iteration_ns(run, {}))};
  } catch (const InvalidInput& error) {
    throw InvalidInput(fmt::format("{}: {}", file.place(row, "# layers"), error.what()));
  }
}

}  // namespace

PublishedTable vtrain_table(const std::string& folder) {
  PublishedTable table{
      .suite = "vtrain", .source = "vTrain (Bang et al., MICRO 2024): Megatron-DeepSpeed on A100s", .rows = {}};
  const CsvTable several(std::filesystem::path(folder) / "ground_truth_multi.csv");
  for (std::size_t row = 0; row < several.num_rows(); ++row) {
    PublishedRow& added = table.rows.emplace_back(row_of(several, row, run_of(several, row)));
    added.group = "several nodes";
    added.run = fmt::format("{}B, {}", several.text(row, "Parameters (billion)"), added.run);
  }
  const CsvTable single(std::filesystem::path(folder) / "ground_truth_single.csv");
  for (std::size_t row = 0; row < single.num_rows(); ++row) {
    const MegatronRun run = run_of_one_node(single, row);
    PublishedRow& added = table.rows.emplace_back(row_of(single, row, run));
    added.group = "one node";
    // All rows with the same micro-batch size, hidden size, tensor-parallel and pipeline-parallel size follow exactly
    // from one measurement, so they count as one.
    added.base = fmt::format("{} {} {} {}", run.micro_batch_size, run.hidden, run.tensor_parallel_size,
                             run.pipeline_parallel_size);
  }
  return table;
}

}  // namespace frostpipe
