#pragma once
#include <string>
#include <vector>

#include "plan/schedule.h"
#include "simulator/cost_model.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace frostpipe {

/// A schedule on the command line: a name with a shape, or a CSV file that says all.
struct ScheduleChoice {
  std::string name;  // or a file's
  ScheduleShape shape{.pipeline_parallel_size = 4, .num_micro_batches = 8};
  int max_in_flight = 0;  // AutoZeroBubble; 0 = 2 p
  /// What a micro-batch keeps from I until W, of what it keeps from F on; 0 = all of it, kWeightGradientShare for
  /// AutoZeroBubble.
  double weight_gradient_share = 0;
};

double weight_gradient_share_of(const ScheduleChoice& choice);

/// schedule_names() and AutoZeroBubble, with commas.
std::string known_schedules();

/// Whether a word means a file: it has the name of one, or ends in .csv, or has a folder.
bool names_a_file(const std::string& name);

/// --pp, --micro-batches, --virtual-stages, --token-slices, --max-in-flight, --weight-gradient-share.
std::vector<CLI::Option*> add_shape_options(CLI::App& command, ScheduleChoice& choice);

/// Compute actions only. AutoZeroBubble is made for `costs`. Throws UsageError for a name that is none or a shape that
/// the schedule does not have, InvalidInput for a file that is wrong.
Schedule chosen_schedule(const ScheduleChoice& choice, const UniformCosts& costs);

/// The schedule of a CSV file as it stands there, once it has been found valid. Throws InvalidInput, or UsageError for
/// a shape beside it.
Schedule checked_schedule(const ScheduleChoice& file);

/// "4 ranks, 8 stages, 1 micro-batch"
std::string sizes_text(const Schedule& schedule);

}  // namespace frostpipe
