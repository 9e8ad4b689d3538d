#pragma once
#include <cstdint>
#include <string>

#include "cli/plans/schedule_choice.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// A what-if without files: a schedule by name or from a CSV file, equal times for every stage.
struct ScheduleWhatIf {
  ScheduleChoice choice;                                                 // its name is empty where none is asked for
  double forward_ms = 1, backward_input_ms = 1, backward_weight_ms = 1;  // of one action of one stage
  double latency_ms = 0;
  std::int64_t activation_bytes = 0;       // of a message
  double bandwidth_gbytes_per_second = 0;  // 0 = unlimited
  bool split_overlap = false;              // overlapped pairs one after the other
};

/// --schedule, --pp, --micro-batches, --virtual-stages, --forward-ms, ...
void add_what_if_options(CLI::App& command, ScheduleWhatIf& options);

/// Throws UsageError where others are given beside them: such a simulation reads and writes no files.
void require_what_if_only(const CLI::App& command);

/// The answer as a text, or as JSON.
std::string simulate_what_if(const ScheduleWhatIf& options, const std::string& format);

}  // namespace frostpipe
