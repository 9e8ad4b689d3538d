#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/json_text.h"
#include "cli/commands/commands.h"
#include "cli/plans/plan_files.h"
#include "cli/report/html_report.h"
#include "cli/report/traces_side_by_side.h"
#include "cli/shared/common_options.h"
#include "cli/shared/output.h"
#include "cli/shared/usage_error.h"

namespace frostpipe {
namespace {

struct ReportOptions {
  std::string summary, output, trace, cluster;
  std::string format;
};

/// Returns the file's field "format"; empty if it has none, or is no JSON.
std::string format_of(const std::string& content) {
  const auto json = nlohmann::json::parse(content, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("format") || !json["format"].is_string()) return "";
  return json["format"].get<std::string>();
}

/// Throws UsageError that says what shows the file, if it is another one that commands write.
void refuse_what_others_show(const std::string& format, const std::string& path) {
  if (format == "frostpipe.serving_run")
    throw UsageError(
        fmt::format("{}: is the result of `frostpipe serving run -o RUN`, which has written RUN/report.html beside it; "
                    "report shows runs of training",
                    path));
  if (format == "frostpipe.plan")
    throw UsageError(
        fmt::format("{}: is a plan; report shows runs: give it the RUN/summary.json of one that followed the plan, or "
                    "the file that `frostpipe compare -o` has written",
                    path));
}

Comparison load_comparison(const std::string& path) {
  const std::string content = read_named_file(path), format = format_of(content);
  refuse_what_others_show(format, path);
  return format == "frostpipe.summary" ? comparison_from_json(content, path) : compare({run_from_json(content, path)});
}

/// Returns one iteration of each phase, as predicted and as measured.
std::vector<NamedTrace> timelines(const Comparison& comparison) {
  std::vector<NamedTrace> traces;
  for (const RunSummary& run : comparison.runs) {
    for (const PhaseSummary& phase : run.phases) {
      const std::string name =
          fmt::format("{}, from step {}, {} frozen", run.name, phase.from_step, phase.frozen_blocks);
      if (!phase.predicted_timeline.spans.empty()) traces.push_back({name + ", predicted", phase.predicted_timeline});
      if (!phase.measured_timeline.spans.empty()) traces.push_back({name + ", measured", phase.measured_timeline});
    }
  }
  return traces;
}

int run_report(const ReportOptions& options) {
  const std::string summary = file_in(options.summary, "summary.json");
  HtmlReportInput input{.comparison = load_comparison(summary), .source = summary, .cluster = {}};
  if (!options.cluster.empty()) input.cluster = cluster_from_json(read_named_file(options.cluster), options.cluster);
  const std::string html = html_report(input);
  if (!options.trace.empty()) write_named_file(options.trace, to_chrome_trace(timelines(input.comparison)));
  write_named_file(options.output, html);

  if (options.format == "json") {
    nlohmann::ordered_json json = {{"report", options.output}};
    if (!options.trace.empty()) json["trace"] = options.trace;
    print_result(json_text(json) + "\n");
  } else {
    print_result(fmt::format("report: {}\n", options.output));
    if (!options.trace.empty()) print_result(fmt::format("trace: {} (open it at ui.perfetto.dev)\n", options.trace));
  }
  return 0;
}

}  // namespace

Command add_report_command(CLI::App& app) {
  const auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Make one self-contained HTML page of predictions and measurements");
  command
      ->add_option("SUMMARY", options->summary,
                   "File that compare has written, or a run: its folder, or the summary.json in it")
      ->required()
      ->type_name("");
  command->add_option("-o,--output", options->output, "HTML page to write")->required()->type_name("FILE");
  command->add_option("--trace", options->trace, "Also write the timelines as a Chrome trace (for Perfetto)")
      ->type_name("FILE");
  command->add_option("--cluster", options->cluster, "Cluster whose memory limits the page shows")->type_name("FILE");
  add_format_option(*command, options->format);
  command->footer("Example:\n  frostpipe report summary.json -o report.html --trace trace.json --cluster cluster.json");
  return {command, [options] { return run_report(*options); }};
}

}  // namespace frostpipe
