#pragma once
#include <string>
#include <vector>

#include "plan/schedule.h"
#include "simulator/cost_model.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// A schedule on the command line: a name with a shape, or a CSV file, which has its own shape.
struct ScheduleChoice {
  std::string name;  // of a schedule or a file
  ScheduleShape shape{.pipeline_parallel_size = 4, .num_micro_batches = 8};
  int max_in_flight = 0;  // of AutoZeroBubble; 0 = twice the number of ranks
};

/// Returns the fraction of a micro-batch's saved activations that it still keeps from I until W: kWeightGradientShare
/// for AutoZeroBubble, else 1.
double weight_gradient_share_of(const ScheduleChoice& choice);

/// Lists schedule_names() and AutoZeroBubble.
std::string known_schedules();

/// Returns whether a word means a file: a file of that name exists, or the word ends in .csv or has a slash.
bool names_a_file(const std::string& name);

/// Adds --pp, --micro-batches, --virtual-stages, --token-slices and --max-in-flight.
void add_shape_options(CLI::App& command, ScheduleChoice& choice);

/// Builds or reads the schedule, with compute actions only. AutoZeroBubble is made for `costs`. Throws UsageError for
/// an unknown name or a shape that the schedule does not support, InvalidInput for a wrong file.
Schedule chosen_schedule(const ScheduleChoice& choice, const UniformCosts& costs);

/// Reads the schedule of a CSV file unchanged. Throws InvalidInput if it is not valid, and UsageError for a
/// shape beside it.
Schedule checked_schedule(const ScheduleChoice& file);

/// Returns a text such as "4 ranks, 8 stages, 1 micro-batch".
std::string sizes_text(const Schedule& schedule);

}  // namespace frostpipe
