#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace frostpipe {

// Schedules that no builder makes, as a phase keeps them (Phase::schedule_rows): one row of PyTorch's CSV per pipeline
// rank. Only the order of F, B, I and W is used. The rest follows from the phase: messages are placed by lower(),
// gradients are reduced at the iteration's end, overlapped pairs run one after the other, and recomputation is the
// phase's.

/// Returns the lines of a CSV file, without empty ones at the end.
std::vector<std::string> rows_of(std::string_view csv);

/// Returns the schedule of a CSV file as schedule_from_csv reads it. Throws InvalidInput unless `schedule --check`
/// accepts the file.
Schedule valid_schedule_from_csv(std::string_view csv, std::string_view source);

/// Gives the phase this schedule and clears its prediction. Throws InvalidInput ("SOURCE, row 2, field 3: ...") if a
/// row cannot be parsed.
void set_schedule_rows(Phase& phase, std::string name, std::vector<std::string> rows, std::string_view source);

/// Returns the pipeline rank of each stage in the rows; empty without rows. Throws InvalidInput as above.
std::vector<int> pipeline_rank_of_stages(const std::vector<std::string>& rows, std::string_view source);

/// Returns the compute-only schedule of the rows of a valid phase, without the backwards of stages before
/// `first_trainable_stage`.
Schedule compute_of_rows(const Phase& phase, int first_trainable_stage);

/// Throws InvalidInput ("PLACE.schedule_rows: ...") unless the rows can run, match the phase's ranks, stages and
/// micro-batches, and train each stage that the phase trains.
void require_schedule_rows(const Phase& phase, const std::string& place);

/// Returns the plan with the schedule of a CSV file, named after the file, in each of its phases. Throws InvalidInput
/// if the schedule cannot run, if it does not match the shape of a phase, which the message names, or if a built-in
/// schedule has the file's name.
TrainingPlan with_schedule_of_file(TrainingPlan plan, std::string_view csv, const std::string& file,
                                   std::string_view plan_source);

}  // namespace frostpipe
