#include "cli/plans/schedule_what_if.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/seconds.h"
#include "cli/shared/common_options.h"
#include "cli/shared/only_options.h"
#include "cli/shared/table.h"
#include "simulator/simulate_schedule.h"

namespace frostpipe {
namespace {

constexpr double kLargestNumber = 1e9;

UniformCosts costs_of(const ScheduleWhatIf& options) {
  const Link link{.latency_ns = 0,
                  .bandwidth_bytes_per_second = std::llround(options.bandwidth_gbytes_per_second * 1e9)};
  return {.forward_ns = nanoseconds_of(1e-3 * options.forward_ms),
          .input_gradient_ns = nanoseconds_of(1e-3 * options.backward_input_ms),
          .weight_gradient_ns = nanoseconds_of(1e-3 * options.backward_weight_ms),
          .latency_ns = nanoseconds_of(1e-3 * options.latency_ms),
          .update_ns = 0,
          .occupancy_ns = transfer_occupancy_ns(link, options.activation_bytes)};
}

Schedule schedule_of(const ScheduleWhatIf& options, const UniformCosts& costs) {
  Schedule schedule = chosen_schedule(options.choice, costs);
  if (!options.split_overlap) return schedule;
  for (auto& list : schedule.body) {
    for (Action& action : list) action.overlaps_next = false;
  }
  return schedule;
}

}  // namespace

void add_what_if_options(CLI::App& command, ScheduleWhatIf& options) {
  CLI::Option* const schedule =
      command
          .add_option("--schedule", options.choice.name,
                      "Without a plan: simulate this schedule (NAME or a CSV file) with equal times for every stage")
          ->type_name("NAME");
  for (CLI::Option* const option : add_shape_options(command, options.choice)) option->needs(schedule);
  const auto add_number = [&](const std::string& name, double& value, const std::string& meaning) {
    command.add_option(name, value, meaning)
        ->check(finite_range(0, kLargestNumber))
        ->type_name("X")
        ->capture_default_str()
        ->needs(schedule);
  };
  add_number("--forward-ms", options.forward_ms, "F of one stage");
  add_number("--backward-input-ms", options.backward_input_ms, "I of one stage; B = I + W");
  add_number("--backward-weight-ms", options.backward_weight_ms, "W of one stage");
  add_number("--latency-ms", options.latency_ms, "Of a message; never occupies the link");
  command.add_option("--activation-bytes", options.activation_bytes, "Of a message, in both directions")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 50).description(""))
      ->type_name("BYTES")
      ->needs(schedule);
  add_number("--bandwidth-gbytes-per-second", options.bandwidth_gbytes_per_second,
             "Of each direction of each link; 0 = unlimited");
  command
      .add_flag("--split-overlap", options.split_overlap,
                "Run overlapped forward-backward pairs (DualPipeV) one after the other")
      ->needs(schedule);
}

void require_what_if_only(const CLI::App& command) {
  require_only(
      "--schedule --pp --micro-batches --virtual-stages --token-slices --max-in-flight --weight-gradient-share "
      "--forward-ms --backward-input-ms --backward-weight-ms --latency-ms --activation-bytes "
      "--bandwidth-gbytes-per-second --split-overlap --format",
      command, "simulate --schedule");
}

std::string simulate_what_if(const ScheduleWhatIf& options, const std::string& format) {
  const UniformCosts costs = costs_of(options);
  const Schedule compute = schedule_of(options, costs);
  const ScheduleSimulation found = simulate_schedule(compute, costs, weight_gradient_share_of(options.choice));
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
    return json.dump(2) + "\n";
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
      "peak in flight        {:g} (micro-batches of a rank's stages, by rank)\n",
      compute.name, sizes_text(compute), in_milliseconds(summary.makespan_ns), in_milliseconds(summary.iteration_ns),
      in_milliseconds(summary.longest_rank_span_ns), summary.bubble_fraction, summary.bubble_overhead,
      found.span_bubble_fraction, found.steady_bubble_fraction, fmt::join(summary.peak_in_flight, " / "));
}

}  // namespace frostpipe
