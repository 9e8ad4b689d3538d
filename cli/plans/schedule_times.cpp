#include "cli/plans/schedule_times.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/seconds.h"
#include "cli/plans/schedule_choice.h"
#include "cli/shared/common_options.h"
#include "cli/shared/table.h"
#include "simulator/simulate_schedule.h"

namespace frostpipe {
namespace {

constexpr double kLargestNumber = 1e9;

}  // namespace

UniformCosts costs_of(const ScheduleTimes& times) {
  return {.forward_ns = nanoseconds_of(1e-3 * times.compute_ms[0]),
          .input_gradient_ns = nanoseconds_of(1e-3 * times.compute_ms[1]),
          .weight_gradient_ns = nanoseconds_of(1e-3 * times.compute_ms[2]),
          .latency_ns = nanoseconds_of(1e-3 * times.latency_ms),
          .update_ns = 0,
          .occupancy_ns = nanoseconds_of(1e-3 * times.message_ms)};
}

void add_times_options(CLI::App& command, ScheduleTimes& times) {
  command
      .add_option(
          "--compute-ms", times.compute_ms,
          "Times of one stage, or of one token slice in it: F, the forward pass; I, the input gradients; W, the weight "
          "gradients. B takes I + W")
      ->delimiter(',')
      ->expected(3)
      ->check(finite_range(0, kLargestNumber))
      ->type_name("F,I,W")
      ->default_str("1,1,1");
  const auto add_number = [&](const std::string& name, double& value, const std::string& meaning) {
    command.add_option(name, value, meaning)
        ->check(finite_range(0, kLargestNumber))
        ->type_name("X")
        ->capture_default_str();
  };
  add_number("--latency-ms", times.latency_ms, "Latency of a message, which never occupies the link");
  add_number("--message-ms", times.message_ms, "Time for which a message occupies its direction of a link");
}

std::string schedule_times_text(const Schedule& compute, const ScheduleTimes& times, double weight_gradient_share,
                                const std::string& format) {
  const ScheduleSimulation found = simulate_schedule(compute, costs_of(times), weight_gradient_share);
  const IterationSummary& summary = found.summary;
  if (format == "json") {
    const nlohmann::ordered_json json = {{"format", "frostpipe.schedule_simulation"},
                                         {"version", 1},
                                         {"schedule", compute.name},
                                         {"ranks", num_pipeline_ranks(compute)},
                                         {"stages", num_stages(compute)},
                                         {"num_micro_batches", compute.num_micro_batches},
                                         {"makespan_ns", summary.makespan_ns},
                                         {"iteration_ns", summary.iteration_ns},
                                         {"longest_rank_span_ns", summary.longest_rank_span_ns},
                                         {"bubble_fraction", summary.bubble_fraction},
                                         {"bubble_overhead", summary.bubble_overhead},
                                         {"span_bubble_fraction", found.span_bubble_fraction},
                                         {"steady_bubble_fraction", found.steady_bubble_fraction},
                                         {"busy_ns", summary.busy_ns},
                                         {"peak_in_flight", summary.peak_in_flight},
                                         {"engine", found.engine}};
    return json_text(json, 2) + "\n";
  }
  return fmt::format(
      "{}: {}\n\n"
      "makespan              {} ms, one iteration alone\n"
      "iteration             {} ms, in the steady state\n"
      "longest rank's span   {} ms\n"
      "bubble_fraction       {:.4f} (idle / ranks x makespan)\n"
      "bubble_overhead       {:.4f} (idle / busy)\n"
      "span_bubble_fraction  {:.4f} (idle / the longest rank's span)\n"
      "steady bubble         {:.4f} (idle / ranks x iteration)\n"
      "peak in flight        {} (micro-batches of a rank's stages, by rank)\n",
      compute.name, sizes_text(compute), in_milliseconds(summary.makespan_ns), in_milliseconds(summary.iteration_ns),
      in_milliseconds(summary.longest_rank_span_ns), summary.bubble_fraction, summary.bubble_overhead,
      found.span_bubble_fraction, found.steady_bubble_fraction, in_micro_batches(summary.peak_in_flight));
}

}  // namespace frostpipe
