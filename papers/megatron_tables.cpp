#include <fmt/format.h>

#include "papers/megatron_prediction.h"
#include "papers/published_suites.h"

namespace frostpipe {
namespace {

double teraflops(const MegatronRun& run, const MegatronConstants& constants) {
  const int devices = run.tensor_parallel_size * run.data_parallel_size * run.pipeline_parallel_size;
  const double seconds = 1e-9 * static_cast<double>(predict_iteration_ns(run, constants));
  return iteration_flops(run) / seconds / devices / 1e12;
}

/// Adds the rows of Table 2 of Narayanan et al. 2021 (SC) that are the paper's own runs, with 300 billion tokens.
void add_table_2(PublishedTable& table, const MegatronConstants& constants) {
  struct Model {
    const char* name;
    double billions;
    int hidden, heads, layers, p, batch;
  };
  constexpr Model k175{"174.6B", 174.6, 12288, 96, 96, 12, 1536}, k530{"529.6B", 529.6, 20480, 128, 105, 35, 2240};
  for (const auto& [model, devices, published] : {std::tuple{k175, 384, 84},
                                                  {k175, 768, 43},
                                                  {k175, 1536, 23},
                                                  {k530, 560, 156},
                                                  {k530, 1120, 80},
                                                  {k530, 2240, 42}}) {
    const MegatronRun run{.hidden = model.hidden,
                          .heads = model.heads,
                          .layers = model.layers,
                          .tensor_parallel_size = 8,
                          .data_parallel_size = devices / (8 * model.p),
                          .pipeline_parallel_size = model.p,
                          .global_batch_size = model.batch};
    const double days = 8 * 300e9 * model.billions * 1e9 / (devices * 1e12 * teraflops(run, constants)) / 86'400;
    table.rows.push_back({.group = "Table 2",
                          .what = "days",
                          .run = fmt::format("{} on {}", model.name, devices),
                          .measured = static_cast<double>(published),
                          .predicted = days});
  }
}

/// Adds values read off the figures of that paper. Its nodes are DGX A100, in which every device has a network card of
/// 200 Gbit/s.
void add_figures(PublishedTable& table, MegatronConstants constants) {
  constants.card_bytes_per_second = 25e9;
  constants.network_bytes_per_second = 8 * constants.card_bytes_per_second;
  constants.waits_for_messages = true;
  const auto add = [&](const char* group, std::string run, double published, double ours, const char* note = "") {
    table.rows.push_back({.group = group,
                          .what = "ratio",
                          .run = std::move(run),
                          .measured = published,
                          .predicted = ours,
                          .note = note});
  };
  const auto weak_scaling = [&](int p, int batch) {
    return teraflops({.hidden = 20480,
                      .heads = 128,
                      .layers = 3 * p,
                      .tensor_parallel_size = 8,
                      .pipeline_parallel_size = p,
                      .global_batch_size = batch},
                     constants);
  };
  add("Figure 11", "8 stages over 1, batch 8", 88.0 / 162, weak_scaling(8, 8) / weak_scaling(1, 8));
  add("Figure 11", "8 stages over 1, batch 128", 160.0 / 178, weak_scaling(8, 128) / weak_scaling(1, 128));
  const auto of_162 = [&](int batch) {
    return teraflops({.hidden = 20480,
                      .heads = 128,
                      .layers = 32,
                      .tensor_parallel_size = 8,
                      .pipeline_parallel_size = 8,
                      .global_batch_size = batch},
                     constants);
  };
  add("Figure 13", "batch 32 over 128, p 8 t 8", 142.0 / 166, of_162(32) / of_162(128));
  constexpr const char* kNote = "4 stages per rank, which the paper does not say";
  const auto of_175 = [&](int batch, int virtual_stages, bool scatters) {
    return teraflops({.hidden = 12288,
                      .heads = 96,
                      .layers = 96,
                      .tensor_parallel_size = 8,
                      .pipeline_parallel_size = 12,
                      .virtual_stages = virtual_stages,
                      .global_batch_size = batch,
                      .scatter_gather = scatters},
                     constants);
  };
  add("Figure 12", "one stage per rank, batch 60 over 12", 136.0 / 81, of_175(60, 1, false) / of_175(12, 1, false));
  add("Figure 12", "interleaved over not, batch 12", 119.0 / 81, of_175(12, 4, true) / of_175(12, 1, false), kNote);
  add("Figure 12", "interleaved over not, batch 60", 147.0 / 136, of_175(60, 4, true) / of_175(60, 1, false), kNote);
  add("Figure 18", "scatter/gather over not, batch 12", 119.0 / 108, of_175(12, 4, true) / of_175(12, 4, false), kNote);
  add("Figure 18", "scatter/gather over not, batch 60", 147.0 / 131, of_175(60, 4, true) / of_175(60, 4, false), kNote);
}

}  // namespace

PublishedTable megatron_table() {
  // Micro-batch size and stages per rank are not published; the fastest size of 1, 2, 4 and 8 is used, with one stage.
  struct Row {
    const char* name;
    int heads, hidden, layers, t, p, devices, batch;
    double teraflops;
  };
  constexpr Row kTable1[] = {
      {"1.7B", 24, 2304, 24, 1, 1, 32, 512, 137},          {"3.6B", 32, 3072, 30, 2, 1, 64, 512, 138},
      {"7.5B", 32, 4096, 36, 4, 1, 128, 512, 142},         {"18.4B", 48, 6144, 40, 8, 1, 256, 1024, 135},
      {"39.1B", 64, 8192, 48, 8, 2, 512, 1536, 138},       {"76.1B", 80, 10240, 60, 8, 4, 1024, 1792, 140},
      {"145.6B", 96, 12288, 80, 8, 8, 1536, 2304, 148},    {"310.1B", 128, 16384, 96, 8, 16, 1920, 2160, 155},
      {"529.6B", 128, 20480, 105, 8, 35, 2520, 2520, 163}, {"1008.0B", 160, 25600, 128, 8, 64, 3072, 3072, 163}};
  PublishedTable table{
      .suite = "megatron", .source = "Narayanan et al., SC 2021: GPT on Selene (A100 80 GB)", .rows = {}};
  MegatronConstants constants;
  constants.memory_bytes_per_second = 2.04e12;
  constants.gemm_efficiency = 0.74;  // one factor for all rows, fitted to this table alone
  constants.gemm_half_flops = 0;     // with vTrain's value, no efficiency fits this table as well
  for (const Row& row : kTable1) {
    MegatronRun run{.hidden = row.hidden,
                    .heads = row.heads,
                    .layers = row.layers,
                    .tensor_parallel_size = row.t,
                    .data_parallel_size = row.devices / (row.t * row.p),
                    .pipeline_parallel_size = row.p,
                    .global_batch_size = row.batch};
    double best = 0;
    std::string note;
    for (const int size : {1, 2, 4, 8}) {
      run.micro_batch_size = size;
      if (run.global_batch_size % (run.data_parallel_size * size) != 0) continue;
      const double achieved = teraflops(run, constants);
      if (achieved <= best) continue;
      best = achieved;
      note = fmt::format("micro-batch size {}", size);
    }
    table.rows.push_back({.group = "Table 1",
                          .what = "TFLOP/s per GPU",
                          .run = row.name,
                          .measured = row.teraflops,
                          .predicted = best,
                          .note = note});
  }
  add_table_2(table, constants);
  add_figures(table, constants);
  return table;
}

}  // namespace frostpipe
