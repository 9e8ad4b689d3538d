#include <fmt/format.h>

#include "base/error.h"
#include "papers/published_suites.h"
#include "papers/sailor_prediction.h"

namespace frostpipe {
namespace {

/// A published measurement that cannot be right; `run` is the end of the run's name.
struct Fault {
  const char* run;
  bool time, memory;
  const char* why;
};
constexpr Fault kFaults[] = {
    {"GPT-NEO_N4_plan_config_N4_D4", true, true, "holds the plan of OPT-350, which has 26 layers, not 34"},
    {"GPT-NEO_N8_plan_config_N8_D2", false, true, "28.5 GB where three runs with the same ranks have 37.3 to 37.5"},
    {"mit_N3_plan_config_N3_D1", true, true,
     "the figures are those of mit N6_D2: a reduction of 5.5 s with one replica"},
    {"mit_N2_plan_config_N2_D1", false, true, "less than weights, gradients and moments alone"},
    {"mit_N2_plan_config_N2_D2", false, true, "less than weights, gradients and moments alone"},
};

const Fault* fault_of(const std::string& run) {
  for (const Fault& fault : kFaults)
    if (run.ends_with(fault.run)) return &fault;
  return nullptr;
}

std::string group_of(const SailorRun& run) {
  if (run.name.starts_with("mit")) return "OPT-350M, mixed RTX GPUs";
  return run.model.starts_with("GPT") ? "GPT-Neo-2.7B, GH200" : "OPT-350M, GH200";
}

std::string joined(std::string a, const std::string& b) { return a.empty() ? b : b.empty() ? a : a + "; " + b; }

}  // namespace

PublishedTable sailor_table(const std::string& folder) {
  SailorData data(folder);
  PublishedTable table{
      .suite = "sailor",
      .source = "Sailor (Strati et al., SOSP 2025): profiles, link curves and measured runs, MIT licence",
      .rows = {}};
  std::vector<PublishedRow> memory;
  for (const SailorRun& run : data.runs()) {
    const SailorPrediction prediction = predict(run, data);
    const Fault* const fault = fault_of(run.name);
    const bool time_counts = fault == nullptr || !fault->time, memory_counts = fault == nullptr || !fault->memory;
    const std::string note = joined(run.repaired, prediction.is_launch_bound ? "launch-bound: little confidence" : "");
    table.rows.push_back({.group = group_of(run),
                          .what = "time [s]",
                          .run = run.name,
                          .measured = run.iteration_seconds,
                          .predicted = 1e-9 * static_cast<double>(prediction.iteration_ns),
                          .counts = time_counts,
                          .note = joined(note, time_counts ? "" : fmt::format("left out: {}", fault->why))});
    memory.push_back({.group = group_of(run),
                      .what = "peak memory [GB]",
                      .run = run.name,
                      .measured = 1e-9 * static_cast<double>(run.peak_memory_bytes),
                      .predicted = 1e-9 * static_cast<double>(prediction.peak_memory_bytes),
                      .counts = memory_counts,
                      .note = memory_counts ? "" : fmt::format("left out: {}", fault->why)});
  }
  if (memory.empty()) throw InvalidInput(folder + "/validation", "must hold measured runs (*.json)", "none");
  table.rows.insert(table.rows.end(), memory.begin(), memory.end());
  return table;
}

}  // namespace frostpipe
