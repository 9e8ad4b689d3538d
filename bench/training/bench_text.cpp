#include "bench/training/bench_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/shared/report_words.h"
#include "cli/shared/table.h"

namespace frostpipe {
namespace {

std::string ratio_text(const SpeedRatio& ratio) {
  if (ratio.geometric_mean == 0) return "-";
  if (ratio.low == ratio.high) return fmt::format("{:.2f}", ratio.geometric_mean);
  return fmt::format("{:.2f} ({:.2f}-{:.2f})", ratio.geometric_mean, ratio.low, ratio.high);
}

std::string difference_text(const BenchRow& row) {
  if (!row.has_difference) return "-";
  return fmt::format("{:+.2f} ({:+.2f} to {:+.2f})", 100 * row.difference, 100 * row.low, 100 * row.high);
}

Table table_of(const std::vector<BenchRow>& rows) {
  using enum Table::Align;
  Table table({{"data", left},
               {"configuration", left},
               {"on", left},
               {"seeds", right},
               {"samples/s", right},
               {"x static", right},
               {"x data parallel", right},
               {"x best unfrozen", right},
               {"accuracy [%]", right},
               {"minus data parallel [points]", right},
               {"memory [MiB]", right},
               {"frontier", left}});
  for (const BenchRow& row : rows)
    table.add_row({row.dataset, row.configuration, ranks_text(row.world_size, row.threads_per_rank),
                   std::to_string(row.num_seeds), fmt::format("{:.1f}", row.samples_per_second),
                   ratio_text(row.to_static), ratio_text(row.to_data_parallel), ratio_text(row.to_best_unfrozen),
                   row.accuracy > 0 ? fmt::format("{:.2f}", 100 * row.accuracy) : "-", difference_text(row),
                   in_mebibytes(row.peak_memory_bytes), row.on_frontier ? "*" : ""});
  return table;
}

/// Returns a remark on rows that freeze on one rank, which the planner may choose for any of our plans; empty without
/// such rows.
std::string one_process_note(const std::vector<BenchRow>& rows) {
  const bool any =
      std::any_of(rows.begin(), rows.end(), [](const BenchRow& row) { return row.world_size == 1 && row.freezes; });
  return any ? "on 1 rank: freezing, and the cache where it is on, without a pipeline\n" : "";
}

/// Returns a line for each component that Figure 9 of PipeTransformer's paper has, with both speedups.
std::string breakdown(const BenchSuite& suite, const std::vector<BenchRow>& rows) {
  std::string text;
  for (const BenchRow& row : rows) {
    for (const BenchConfiguration& one : suite.configurations) {
      if (one.name != row.configuration || one.paper_speedup.empty() || row.to_static.geometric_mean == 0) continue;
      text += fmt::format("breakdown, {}: {} {:.2f} times the static pipeline (the paper's figure for ViT: {})\n",
                          row.dataset, row.configuration, row.to_static.geometric_mean, one.paper_speedup);
    }
  }
  return text;
}

}  // namespace

std::string bench_text(const BenchSuite& suite, const BenchResult& result) {
  std::string text = fmt::format(
      "{}\n\n{}\n"
      "x static: against the faster of the static pipelines; x best unfrozen: against the fastest that freezes\n"
      "nothing; paired by seed (geometric mean, least and most). Accuracy: paired over test items and seeds,\n"
      "95 % interval. Frontier: nothing else is both faster and more accurate.\n{}{}",
      suite.title, table_of(result.rows).to_string(), one_process_note(result.rows), breakdown(suite, result.rows));
  for (const std::string& run : result.left_out) text += fmt::format("not run, out of budget: {}\n", run);
  for (const std::string& run : result.failed) text += fmt::format("failed: {}\n", run);
  return text;
}

}  // namespace frostpipe
