#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "plan/schedule.h"
#include "plan/schedule_fields.h"

namespace frostpipe {

namespace {

std::string lines_of(const std::vector<std::vector<Action>>& lists) {
  std::string text;
  for (std::size_t pipeline_rank = 0; pipeline_rank < lists.size(); ++pipeline_rank)
    text += fmt::format("rank {}: {}\n", pipeline_rank, fmt::join(schedule_fields(lists[pipeline_rank]), " "));
  return text;
}

constexpr int kShownIterations = 3;  // number of iterations drawn of a schedule whose iterations overlap

struct Block {
  Action action;
  int begin = 0;
};

/// Returns the time at which each compute action begins, by pipeline rank, if B takes two units, other compute one, and
/// messages none.
std::vector<std::vector<Block>> unit_times(const Schedule& lowered) {
  const int pipeline_ranks = num_pipeline_ranks(lowered);
  const Dependencies dependencies(lowered);
  std::vector<std::vector<Block>> blocks(pipeline_ranks);
  std::vector<std::size_t> next(pipeline_ranks, 0);
  std::vector<int> free_at(pipeline_ranks, 0);
  std::map<Action, int> end_of;
  const auto run_next = [&](int pipeline_rank) {
    const auto& list = lowered.body[pipeline_rank];
    if (next[pipeline_rank] == list.size()) return false;
    Action action = list[next[pipeline_rank]];
    action.overlaps_next = false;
    // Only compute occupies a pipeline rank; a message is there when its sender is done.
    int begin = is_compute(action.kind) ? free_at[pipeline_rank] : 0;
    for (const auto& needed : dependencies.of(action)) {
      const auto found = end_of.find(needed);
      if (found == end_of.end()) return false;
      begin = std::max(begin, found->second);
    }
    int end = begin;
    if (is_compute(action.kind)) {
      blocks[pipeline_rank].push_back({action, begin});
      end = free_at[pipeline_rank] = begin + units_of(action);
    }
    end_of[action] = end;
    ++next[pipeline_rank];
    return true;
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (int pipeline_rank = 0; pipeline_rank < pipeline_ranks; ++pipeline_rank)
      while (run_next(pipeline_rank)) progress = true;
  }
  for (int pipeline_rank = 0; pipeline_rank < pipeline_ranks; ++pipeline_rank)
    if (next[pipeline_rank] != lowered.body[pipeline_rank].size())
      throw InvalidInput(fmt::format("schedule {}: pipeline rank {} waits forever at {}", lowered.name, pipeline_rank,
                                     to_string(lowered.body[pipeline_rank][next[pipeline_rank]])));
  return blocks;
}

/// Returns "F3", or "2F3" if pipeline ranks hold several stages. A frozen forward is "f3".
std::string label_of(const Schedule& schedule, const Action& action) {
  std::string_view letter = to_string(action.kind);
  if (action.kind == ActionKind::forward && action.stage < schedule.first_trainable_stage) letter = "f";
  if (action.kind == ActionKind::recompute) letter = "R";
  std::string label = fmt::format("{}{}", letter, action.micro_batch.value_or(0));
  if (action.slice) label += fmt::format("s{}", *action.slice);
  const bool one_stage_each = num_stages(schedule) == num_pipeline_ranks(schedule);
  return one_stage_each ? label : fmt::format("{}{}", action.stage, label);
}

bool has_kind(const Schedule& schedule, ActionKind kind) {
  for (const auto& list : schedule.body)
    for (const auto& action : list)
      if (action.kind == kind) return true;
  return false;
}

std::string legend(const Schedule& schedule) {
  std::string text = "F = forward (1 unit)";
  if (schedule.first_trainable_stage > 0) text += ", f = forward of a frozen stage (1)";
  if (has_kind(schedule, ActionKind::backward)) text += ", B = backward (2)";
  if (has_kind(schedule, ActionKind::input_gradient)) text += ", I = input gradient (1)";
  if (has_kind(schedule, ActionKind::weight_gradient)) text += ", W = weight gradient (1)";
  if (has_kind(schedule, ActionKind::recompute)) text += ", R = recompute (1)";
  return text + ", .. = idle; messages take no time";
}

/// Returns "time    0              5              10": the number of every fifth unit.
std::string time_axis(std::size_t margin, int makespan, std::size_t cell_width) {
  std::string line = fmt::format("{:<{}}", "time", margin);
  for (int unit = 0; unit < makespan; unit += 5) {
    line.resize(std::max(line.size(), margin + unit * cell_width), ' ');
    line += std::to_string(unit);
  }
  return line + "\n";
}

}  // namespace

std::string place_in_list(const std::vector<Action>& list, int index) {
  const auto computes = [](const Action& action) { return is_compute(action.kind); };
  const auto at = list.begin() + index;
  const auto before = std::count_if(list.begin(), at, computes);
  if (computes(*at)) return fmt::format("compute action {}", before + 1);
  const bool leads = before == 0 || (is_receive(at->kind) && std::any_of(at, list.end(), computes));
  return leads ? fmt::format("before compute action {}", before + 1) : fmt::format("after compute action {}", before);
}

std::string to_text(const Schedule& schedule) {
  if (schedule.prologue.empty() && schedule.epilogue.empty()) return lines_of(schedule.body);
  return fmt::format("prologue\n{}body\n{}epilogue\n{}", lines_of(schedule.prologue), lines_of(schedule.body),
                     lines_of(schedule.epilogue));
}

std::string to_grid(const Schedule& schedule) {
  const bool overlap = !schedule.epilogue.empty();
  const Schedule compute_only = overlap ? unrolled(schedule, kShownIterations) : schedule;
  const Schedule lowered = lower(compute_only);
  const auto blocks = unit_times(lowered);
  int makespan = 0, busy = 0;
  std::size_t cell_width = 3;
  for (const auto& row : blocks) {
    for (const auto& [action, begin] : row) {
      makespan = std::max(makespan, begin + units_of(action));
      busy += units_of(action);
      cell_width = std::max(cell_width, label_of(compute_only, action).size() + 1);
    }
  }

  const int pipeline_ranks = num_pipeline_ranks(compute_only), stages = num_stages(compute_only),
            micro_batches = compute_only.num_micro_batches;
  const std::size_t margin = fmt::format("rank {}", pipeline_ranks - 1).size() + 2;
  std::string text =
      fmt::format("{}: {} stage{}, {} micro-batch{}{}\n{}\n", compute_only.name, stages, stages == 1 ? "" : "s",
                  micro_batches, micro_batches == 1 ? "" : "es",
                  overlap ? fmt::format(" of {} iterations", kShownIterations) : "", legend(compute_only));
  text += time_axis(margin, makespan, cell_width);
  for (int pipeline_rank = 0; pipeline_rank < pipeline_ranks; ++pipeline_rank) {
    std::string line = fmt::format("{:<{}}", fmt::format("rank {}", pipeline_rank), margin);
    int now = 0;
    const auto idle_until = [&](int then) {
      for (; now < then; ++now) line += fmt::format("{:.<{}} ", "", cell_width - 1);
    };
    for (const auto& [action, begin] : blocks[pipeline_rank]) {
      idle_until(begin);
      // An action of several units is drawn as one block: "B0---".
      const int units = units_of(action);
      const std::string label = label_of(compute_only, action);
      line += units == 1 ? fmt::format("{: <{}} ", label, cell_width - 1)
                         : fmt::format("{:-<{}} ", label, cell_width * units - 1);
      now += units;
    }
    idle_until(makespan);
    line.erase(line.find_last_not_of(' ') + 1);
    text += fmt::format("{}\n", line);
  }
  const int total = makespan * pipeline_ranks;
  text += fmt::format(
      "{} units; idle {} of {} rank units: bubble overhead {:.3f} (idle / busy), bubble fraction {:.3f} (idle / all)\n",
      makespan, total - busy, total, static_cast<double>(total - busy) / busy,
      static_cast<double>(total - busy) / total);
  return text;
}

}  // namespace frostpipe
