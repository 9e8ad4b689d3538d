#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/separated_values.h"
#include "plan/schedule.h"
#include "plan/schedule_fields.h"

namespace frostpipe {
namespace {

constexpr int kMaxStages = 65536, kMaxMicroBatches = 1 << 20, kMaxSlices = 65536;  // limits of the simulator
constexpr std::string_view kJoin = "OVERLAP_F_B";

bool pytorch_has(ActionKind kind) {
  return kind != ActionKind::optimizer_step && kind != ActionKind::recompute && kind != ActionKind::cache_read &&
         kind != ActionKind::cache_write;
}

/// Parses "2F0" or "(0F7;7B0)OVERLAP_F_B".
void read_field(std::string_view field, const std::string& place, std::vector<Action>& row) {
  if (!field.starts_with('(')) {
    row.push_back(parse_action(field, place));
    return;
  }
  const std::size_t close = field.find(')');
  if (close == std::string_view::npos || field.substr(close + 1) != kJoin)
    throw InvalidInput(place, "must close an overlapped pair as in (0F7;7B0)OVERLAP_F_B", fmt::format("\"{}\"", field));
  for (const std::string_view part : split(field.substr(1, close - 1), ';')) {
    row.push_back(parse_action(trimmed(part), place));
    row.back().overlaps_next = true;
  }
  row.back().overlaps_next = false;
}

/// Counts stages, micro-batches and slices of the actions, and finds the pipeline rank of each stage.
class Census {
 public:
  void add(const Action& action, int pipeline_rank, const std::string& place) {
    require(action.stage, kMaxStages, "stage", place);
    require(action.micro_batch.value_or(0), kMaxMicroBatches, "micro-batch", place);
    require(action.slice.value_or(0), kMaxSlices, "token slice", place);
    num_micro_batches_ = std::max(num_micro_batches_, action.micro_batch.value_or(-1) + 1);
    num_slices_ = std::max(num_slices_, action.slice.value_or(-1) + 1);
    const auto [at, is_new] = pipeline_rank_of_.emplace(action.stage, pipeline_rank);
    if (at->second != pipeline_rank)
      throw InvalidInput(place,
                         fmt::format("must stand in row {}, where stage {} began (a stage lives on one rank)",
                                     at->second + 1, action.stage),
                         to_string(action));
    const bool trains = action.kind == ActionKind::backward || action.kind == ActionKind::input_gradient ||
                        action.kind == ActionKind::weight_gradient;
    if (trains) first_trained_ = std::min(first_trained_, action.stage);
  }

  void finish(Schedule& schedule, std::string_view source) const {
    if (pipeline_rank_of_.empty()) throw InvalidInput(std::string(source), "must have an action such as 0F0", "none");
    for (int stage = 0; stage <= pipeline_rank_of_.rbegin()->first; ++stage) {
      const auto at = pipeline_rank_of_.find(stage);
      if (at == pipeline_rank_of_.end())
        throw InvalidInput(
            fmt::format("{}: stage {}", source, stage),
            fmt::format("must have actions, since there is a stage {}", pipeline_rank_of_.rbegin()->first),
            "on no rank");
      schedule.pipeline_rank_of_stage.push_back(at->second);
    }
    schedule.num_micro_batches = std::max(1, num_micro_batches_);
    schedule.num_slices = std::max(1, num_slices_);
    schedule.first_trainable_stage = std::min(first_trained_, pipeline_rank_of_.rbegin()->first);
  }

 private:
  static void require(int value, int limit, std::string_view what, const std::string& place) {
    if (value >= limit)
      throw InvalidInput(place, fmt::format("must have a {} < {}", what, limit), std::to_string(value));
  }

  std::map<int, int> pipeline_rank_of_;
  int num_micro_batches_ = 0, num_slices_ = 0, first_trained_ = kMaxStages;
};

void append_missing_end(Schedule& schedule) {
  for (const auto kind : {ActionKind::reduce_gradient, ActionKind::optimizer_step}) {
    for (int stage = schedule.first_trainable_stage; stage < num_stages(schedule); ++stage) {
      auto& list = schedule.body[schedule.pipeline_rank_of_stage[stage]];
      const Action end{.kind = kind, .stage = stage, .micro_batch = std::nullopt};
      if (std::find(list.begin(), list.end(), end) == list.end()) list.push_back(end);
    }
  }
}

}  // namespace

std::vector<std::string> schedule_fields(const std::vector<Action>& actions) {
  std::vector<std::string> fields;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    std::string field = to_string(actions[i]);
    if (actions[i].overlaps_next && i + 1 < actions.size()) {
      while (actions[i].overlaps_next && i + 1 < actions.size()) field += fmt::format(";{}", to_string(actions[++i]));
      field = fmt::format("({}){}", field, kJoin);
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

std::string to_csv(const Schedule& schedule) {
  std::string csv;
  for (int pipeline_rank = 0; pipeline_rank < num_pipeline_ranks(schedule); ++pipeline_rank) {
    std::vector<Action> row;
    for (const auto* part : {&schedule.prologue, &schedule.body, &schedule.epilogue}) {
      if (part->empty()) continue;
      for (const auto& action : (*part)[pipeline_rank])
        if (pytorch_has(action.kind)) row.push_back(action);
    }
    csv += fmt::format("{}\n", fmt::join(schedule_fields(row), ","));
  }
  return csv;
}

Schedule schedule_from_csv(std::string_view csv, std::string_view source) {
  Schedule schedule{
      .name = std::string(source), .pipeline_rank_of_stage = {}, .prologue = {}, .body = {}, .epilogue = {}};
  while (csv.ends_with('\n') || csv.ends_with('\r')) csv.remove_suffix(1);
  Census census;
  for (const std::string_view line : lines_of(csv)) {
    const int pipeline_rank = num_pipeline_ranks(schedule);
    auto& row = schedule.body.emplace_back();
    int column = 0;
    for (const std::string_view part : split(line, ',')) {
      const std::string_view field = trimmed(part);
      const std::string place = fmt::format("{}, row {}, field {}", source, pipeline_rank + 1, ++column);
      if (field.empty()) continue;  // an idle slot
      const std::size_t before = row.size();
      read_field(field, place, row);
      for (std::size_t i = before; i < row.size(); ++i) census.add(row[i], pipeline_rank, place);
    }
  }
  census.finish(schedule, source);
  if (has_messages(schedule)) append_missing_end(schedule);
  return schedule;
}

}  // namespace frostpipe
