#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace frostpipe {

// A schedule that no builder makes, as a phase keeps it (Phase::schedule_rows): one row of PyTorch's CSV per pipeline
// rank. F, B, I and W count, in their order. The rest follows from the phase: messages stand where lower() has them,
// gradients are reduced at the iteration's end, pairs run one after the other, and a recomputation is the phase's.

/// The lines of a CSV file, without empty ones at the end.
std::vector<std::string> rows_of(std::string_view csv);

/// A CSV file that `schedule --check` finds valid, as it stands there. Throws InvalidInput.
Schedule valid_schedule_from_csv(std::string_view csv, std::string_view source);

/// Gives the phase this schedule; what was predicted of another one is gone. Throws InvalidInput ("SOURCE, row 2, field
/// 3: ...") where a row cannot be read.
void set_schedule_rows(Phase& phase, std::string name, std::vector<std::string> rows, std::string_view source);

/// By stage, as the rows say; empty without rows. Throws InvalidInput as above.
std::vector<int> pipeline_rank_of_stages(const std::vector<std::string>& rows, std::string_view source);

/// The rows of a valid phase, compute only, without the backwards of stages before `first_trainable_stage`.
Schedule compute_of_rows(const Phase& phase, int first_trainable_stage);

/// Throws InvalidInput ("PLACE.schedule_rows: ...") unless the rows can run, have the phase's ranks, stages and
/// micro-batches, and train each stage that the phase trains.
void require_schedule_rows(const Phase& phase, const std::string& place);

/// The plan with the schedule of a CSV file in each of its phases, named after the file. Throws InvalidInput where it
/// cannot run, or has another shape than a phase, which is named.
TrainingPlan with_schedule_of_file(TrainingPlan plan, std::string_view csv, const std::string& file,
                                   std::string_view plan_source);

}  // namespace frostpipe
