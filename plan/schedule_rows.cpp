#include "plan/schedule_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/separated_values.h"
#include "plan/stages.h"
#include "plan/token_slices.h"

namespace frostpipe {
namespace {

/// Validates as `schedule --check` does: with the schedule's own messages, or else with those of lower().
void require_valid(const Schedule& read) { validate(has_messages(read) ? read : lower(compute_only(read))); }

Schedule read_rows(const std::vector<std::string>& rows, std::string_view source) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].find_first_of("\r\n") != std::string::npos)
      throw InvalidInput(fmt::format("{}, row {}", source, i + 1), "must be one line", fmt::format("\"{}\"", rows[i]));
  return schedule_from_csv(fmt::format("{}", fmt::join(rows, "\n")), source);
}

/// Returns the number of stages by pipeline rank.
std::vector<int> numbers_of_stages(const std::vector<int>& pipeline_rank_of_stage) {
  std::vector<int> numbers;
  for (const int rank : pipeline_rank_of_stage) {
    numbers.resize(std::max<std::size_t>(numbers.size(), rank + 1));
    ++numbers[rank];
  }
  return numbers;
}

bool belongs_to_one_iteration(const Action& action) {
  return action.iteration_offset == 0 && action.weight_version == 0;
}

std::string shape_text(int ranks, int stages, int micro_batches, int slices) {
  return fmt::format("{} pipeline rank{}, {} stage{} and {} micro-batch{}{}", ranks, ranks == 1 ? "" : "s", stages,
                     stages == 1 ? "" : "s", micro_batches, micro_batches == 1 ? "" : "es",
                     slices == 1 ? "" : fmt::format(" of {} token slices", slices));
}

std::string shape_text(const Schedule& schedule) {
  return shape_text(num_pipeline_ranks(schedule), num_stages(schedule), schedule.num_micro_batches,
                    schedule.num_slices);
}

/// Takes the number of stages from the partition, since the phase may have another schedule now.
std::string shape_text(const Phase& phase) {
  return shape_text(phase.layout.pipeline_parallel_size, static_cast<int>(phase.partition.size()),
                    phase.num_micro_batches, num_slices(phase));
}

}  // namespace

std::vector<std::string> rows_of(std::string_view csv) {
  while (csv.ends_with('\n') || csv.ends_with('\r')) csv.remove_suffix(1);
  std::vector<std::string> rows;
  for (const std::string_view line : lines_of(csv)) rows.emplace_back(line);
  return rows;
}

Schedule valid_schedule_from_csv(std::string_view csv, std::string_view source) {
  Schedule read = schedule_from_csv(csv, source);
  require_valid(read);
  return read;
}

std::vector<int> pipeline_rank_of_stages(const std::vector<std::string>& rows, std::string_view source) {
  return rows.empty() ? std::vector<int>() : read_rows(rows, source).pipeline_rank_of_stage;
}

void set_schedule_rows(Phase& phase, std::string name, std::vector<std::string> rows, std::string_view source) {
  phase.schedule = std::move(name);
  phase.schedule_rows = std::move(rows);
  phase.pipeline_rank_of_stage = pipeline_rank_of_stages(phase.schedule_rows, source);
  phase.virtual_stages = std::ranges::max(numbers_of_stages(phase.pipeline_rank_of_stage));
  phase.predicted = {};
}

Schedule compute_of_rows(const Phase& phase, int first_trainable_stage) {
  Schedule schedule = compute_only(read_rows(phase.schedule_rows, phase.schedule));
  schedule.first_trainable_stage = first_trainable_stage;
  for (std::vector<Action>& list : schedule.body)
    std::erase_if(list, [](const Action& action) { return action.kind == ActionKind::recompute; });
  return without_frozen_backwards(std::move(schedule));
}

void require_schedule_rows(const Phase& phase, const std::string& place) {
  const std::string at = place + ".schedule_rows";
  if (phase.schedule.empty() || is_built_in(phase.schedule))
    throw InvalidInput(place + ".schedule",
                       "must be a name that no built-in schedule has where there are schedule_rows",
                       fmt::format("\"{}\"", phase.schedule));
  const Schedule read = read_rows(phase.schedule_rows, at);
  FROSTPIPE_CHECK(read.pipeline_rank_of_stage == phase.pipeline_rank_of_stage, "they are read with the rows");
  if (shape_text(read) != shape_text(phase))
    throw InvalidInput(at, fmt::format("must have {}, as the phase has", shape_text(phase)), shape_text(read));
  std::vector<int> numbers = numbers_of_stages(read.pipeline_rank_of_stage);
  numbers.resize(num_pipeline_ranks(read));
  const auto without = std::ranges::find(numbers, 0);
  if (without != numbers.end())
    throw InvalidInput(at, "must have a stage on every pipeline rank",
                       fmt::format("none in row {}", without - numbers.begin() + 1));
  if (const int most = std::ranges::max(numbers); phase.virtual_stages != most)
    throw InvalidInput(place + ".virtual_stages", fmt::format("must be {}, as many as one of schedule_rows has", most),
                       std::to_string(phase.virtual_stages));
  for (const std::vector<Action>& list : read.body) {
    const auto other = std::ranges::find_if_not(list, belongs_to_one_iteration);
    if (other != list.end())
      throw InvalidInput(at, "must have no later iterations or weight versions, which plans do not support",
                         to_string(*other));
  }
  if (const int first = first_trainable_stage(phase); first < read.first_trainable_stage)
    throw InvalidInput(at,
                       fmt::format("must have backwards of stage {}, which trains: its first trainable layer is {}",
                                   first, phase.first_trainable_layer),
                       fmt::format("without those of stages before {}", read.first_trainable_stage));
  require_valid(read);
}

TrainingPlan with_schedule_of_file(TrainingPlan plan, std::string_view csv, const std::string& file,
                                   std::string_view plan_source) {
  const Schedule schedule = valid_schedule_from_csv(csv, file);
  const std::string name = file.substr(file.rfind('/') + 1);
  if (is_built_in(name))
    throw InvalidInput(file, "must have a name that no built-in schedule has (rename it, to " + name + ".csv say)",
                       name);
  for (std::size_t i = 0; i < plan.phases.size(); ++i) {
    Phase& phase = plan.phases[i];
    if (shape_text(schedule) != shape_text(phase))
      throw InvalidInput(
          fmt::format("{}: has {}, but phases[{}] of {} has {}; plan with --fix pp={} --fix m={} and a --schedule of "
                      "as many stages{}",
                      file, shape_text(schedule), i, plan_source, shape_text(phase), num_pipeline_ranks(schedule),
                      schedule.num_micro_batches, schedule.num_slices > 1 ? " and token slices" : ""));
    set_schedule_rows(phase, name, rows_of(csv), file);
  }
  return plan;
}

}  // namespace frostpipe
