// Files that runs leave, and reports of them.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "cli/report/html_report.h"
#include "cli/report/traces_side_by_side.h"
#include "executor/run_folder/step_log.h"
#include "plan/comparison.h"
#include "plan/trace.h"
#include "tests/fuzz/mutations.h"
#include "tests/fuzz/small_run.h"

namespace frostpipe {
namespace {

using test::fuzz;
using test::ScratchFolder;
using test::small_graph;
using test::small_run;

Trace small_trace() {
  return {
      .num_ranks = 2,
      .spans = {{.rank = 0, .action = {.kind = ActionKind::forward, .micro_batch = 0}, .begin_ns = 0, .end_ns = 300},
                {.rank = 1,
                 .action = {.kind = ActionKind::forward, .stage = 1, .micro_batch = 0},
                 .begin_ns = 300,
                 .end_ns = 700}}};
}

RunSummary shown_run(const std::string& name) {
  RunSummary run = small_run();
  run.name = name;
  run.world_size = 2;
  run.num_steps = 1;
  run.samples_per_second = 10;
  run.phases[0].num_steps = 1;
  run.phases[0].predicted_timeline = run.phases[0].measured_timeline = small_trace();
  run.phases[0].measured_peak_memory_bytes = run.phases[0].predicted_peak_memory_bytes = {1 << 20, 1 << 21};
  return run;
}

/// Makes a page like `report`.
void report(const Comparison& comparison) {
  html_report({.comparison = comparison, .source = "summary.json", .cluster = {}});
  for (const RunSummary& run : comparison.runs)
    for (const PhaseSummary& phase : run.phases) to_chrome_trace({{"measured", phase.measured_timeline}});
}

TEST(Fuzz, SummariesAndTheirReports) {
  fuzz(to_json(shown_run("run")), [](const std::string& text) {
    const RunSummary run = run_from_json(text, "summary.json");
    const std::string written = to_json(run);
    if (to_json(run_from_json(written, "again")) != written)
      throw std::logic_error("read, written and read again is another run");
    report(compare({run}));
  });
}

TEST(Fuzz, ComparisonsAndTheirReports) {
  fuzz(to_json(compare({shown_run("one"), shown_run("two")})), [](const std::string& text) {
    const Comparison comparison = comparison_from_json(text, "summary.json");
    const std::string written = to_json(comparison);
    if (to_json(comparison_from_json(written, "again")) != written)
      throw std::logic_error("read, written and read again is another comparison");
    report(comparison);
  });
}

TEST(Fuzz, Traces) {
  fuzz(to_json(small_trace()), [](const std::string& text) {
    const Trace trace = trace_from_json(text, "trace.json");
    if (trace_from_json(to_json(trace), "again") != trace)
      throw std::logic_error("read, written and read again is another trace");
    to_chrome_trace(trace);
  });
}

/// No content ends a run: a line that is not a step is ignored.
TEST(Fuzz, LogsOfSteps) {
  const ScratchFolder folder;
  const std::vector<StepRecord> steps = {{.step = 0, .loss = 0.5}, {.step = 1, .loss = 0.25}};
  fuzz(to_json_line(steps[0]), [&](const std::string& text) {
    folder.write("steps.jsonl", text + "\n" + to_json_line(steps[1]) + "\n");
    const std::vector<StepRecord> read = StepLog(folder.path()).read(2);
    if (read.empty() || read.back() != steps[1]) throw std::logic_error("the step behind a hostile line is lost");
    if (read.size() < 2) throw InvalidInput("passed over");
  });
}

TEST(Fuzz, ProfilesOfOperators) {
  fuzz(to_json(small_graph()), [](const std::string& text) {
    const OperatorGraph read = operator_graph_from_json(text, "operators.json");
    if (operator_graph_from_json(to_json(read), "again") != read)
      throw std::logic_error("read, written and read again is another graph");
  });
}

}  // namespace
}  // namespace frostpipe
