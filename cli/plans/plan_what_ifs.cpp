#include "cli/plans/plan_what_ifs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "cli/plans/what_if_changes.h"
#include "cli/shared/output.h"
#include "cli/shared/table.h"

namespace frostpipe {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;

struct WhatIfRow {
  std::string label;
  Outcome outcome;
};

/// Returns whether the training ends within the 292 years that Nanoseconds can hold.
bool ends(const Outcome& outcome) {
  return outcome.total_seconds * kNanosecondsPerSecond <= static_cast<double>(std::numeric_limits<Nanoseconds>::max());
}

std::string failures_note(const Outcome& outcome) {
  if (!ends(outcome)) return "so many failures that the training would not end within 292 years";
  const auto& distance = outcome.with_failures->checkpoint_distance_seconds;
  if (!distance) return "no checkpoint pays";
  return "checkpoint every " + format_duration(std::llround(*distance * kNanosecondsPerSecond));
}

std::string note_of(const Outcome& outcome) {
  std::string note;
  if (const auto& spread = outcome.spread)
    note = fmt::format("iteration from step {}: 5 % {}, median {}, 95 % {} ms", spread->from_step,
                       in_milliseconds(spread->low_ns), in_milliseconds(spread->median_ns),
                       in_milliseconds(spread->high_ns));
  if (outcome.with_failures) note += (note.empty() ? "" : "; ") + failures_note(outcome);
  if (!outcome.with_failures && !ends(outcome))
    note += (note.empty() ? "" : "; ") + std::string("the training would not end within 292 years");
  return note;
}

std::string what_ifs_text(const std::vector<WhatIfRow>& rows) {
  using enum Table::Align;
  Table table({{"what if", left},
               {"training time [s]", right},
               {"x base", right},
               {"samples/s", right},
               {"largest rank [MiB]", right},
               {"note", left}});
  const double base_seconds = rows.front().outcome.total_seconds;
  for (const auto& [label, outcome] : rows)
    table.add_row({label, ends(outcome) ? fmt::format("{:.2f}", outcome.total_seconds) : "never",
                   ends(outcome) ? fmt::format("{:.3f}", outcome.total_seconds / base_seconds) : "-",
                   fmt::format("{:.1f}", outcome.samples_per_second), in_mebibytes(outcome.peak_memory_bytes),
                   note_of(outcome)});
  return table.to_string();
}

std::string what_ifs_json(const std::vector<WhatIfRow>& rows) {
  nlohmann::ordered_json json = {
      {"format", "frostpipe.what_ifs"}, {"version", 1}, {"rows", nlohmann::ordered_json::array()}};
  const double base_seconds = rows.front().outcome.total_seconds;
  const auto if_it_ends = [](const Outcome& outcome, double value) {
    return ends(outcome) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();  // null
  };
  for (const auto& [label, outcome] : rows)
    json["rows"].push_back({{"what_if", label},
                            {"training_seconds", if_it_ends(outcome, outcome.total_seconds)},
                            {"times_base", if_it_ends(outcome, outcome.total_seconds / base_seconds)},
                            {"samples_per_second", outcome.samples_per_second},
                            {"peak_memory_bytes", outcome.peak_memory_bytes},
                            {"note", note_of(outcome)}});
  return json_text(json, 2) + "\n";
}

/// Returns whether the times of the plan's layers include exchanges between ranks, which changes of links do not reach.
bool layers_include_exchanges(const Scenario& scenario) {
  return scenario.profile.model.expert_parallel_size > 1 ||
         std::ranges::any_of(scenario.plan.phases,
                             [](const Phase& phase) { return phase.layout.tensor_parallel_size > 1; });
}

}  // namespace

std::string simulate_plan_what_ifs(const TrainingPlan& plan, const Profile& profile, const Cluster& cluster,
                                   const std::vector<std::string>& sets, const std::string& format) {
  const Scenario base{.plan = plan, .profile = profile, .cluster = cluster};
  std::vector<WhatIfRow> rows = {{.label = "the plan as it is", .outcome = evaluate(base)}};
  bool changes_machine = false;
  for (const std::string& set : sets) {
    Scenario scenario = base;
    apply_changes(scenario, set);
    changes_machine |= scenario.cluster != base.cluster || scenario.profile != base.profile;
    rows.push_back({.label = set, .outcome = evaluate(scenario)});
  }
  if (changes_machine && layers_include_exchanges(base))
    print_note(
        "the times of layers in the profile include the exchanges of tensor ranks and experts: a --set of links "
        "does not change these, and one of devices changes them as if they were computation. A profile made for "
        "such links or devices has them right");
  return format == "json" ? what_ifs_json(rows) : what_ifs_text(rows);
}

}  // namespace frostpipe
