#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "plan/schedules/schedule_builder.h"

namespace frostpipe {

Schedule pipedream_2bw(const ScheduleShape& shape) {
  Schedule schedule =
      empty_schedule("PipeDream-2BW", shape, virtual_stages_of("PipeDream-2BW", shape, 1, 1, 1), StageMap::loop);
  const int p = shape.pipeline_parallel_size, m = shape.num_micro_batches;
  require_enough_micro_batches("PipeDream-2BW", shape);
  schedule.weight_delay = 1;
  schedule.prologue.resize(p);
  schedule.epilogue.resize(p);
  for (int r = 0; r < p; ++r) {
    const int ahead = p - 1 - r;  // forwards of the next iteration that are done before this one ends
    for (int i = 0; i < ahead; ++i) schedule.prologue[r].push_back(forward(r, i));
    for (int i = 0; i < m; ++i) {
      Action next = forward(r, (i + ahead) % m);
      next.iteration_offset = static_cast<std::int8_t>((i + ahead) / m);
      schedule.body[r].push_back(next);
      schedule.body[r].push_back(backward(r, i));
      if (next.iteration_offset == 0) schedule.epilogue[r].push_back(next);
      schedule.epilogue[r].push_back(backward(r, i));
    }
  }
  return without_frozen_backwards(std::move(schedule));
}

Schedule flushed(Schedule schedule) {
  if (schedule.epilogue.empty()) return schedule;
  schedule.body = std::move(schedule.prologue);
  for (std::size_t pipeline_rank = 0; pipeline_rank < schedule.body.size(); ++pipeline_rank) {
    std::vector<Action>& list = schedule.body[pipeline_rank];
    list.insert(list.end(), schedule.epilogue[pipeline_rank].begin(), schedule.epilogue[pipeline_rank].end());
  }
  schedule.prologue.clear();
  schedule.epilogue.clear();
  return schedule;
}

constexpr int kMaxIterations = 255;  // weight versions are stored in bytes

Schedule unrolled(const Schedule& schedule, int iterations) {
  if (iterations > kMaxIterations)
    throw InvalidInput("iterations", "must be at most 255 to be written out", std::to_string(iterations));
  Schedule flat = schedule;
  flat.num_micro_batches = schedule.num_micro_batches * iterations;
  flat.prologue.clear();
  flat.epilogue.clear();
  for (auto& list : flat.body) list.clear();
  const auto append = [&](const std::vector<std::vector<Action>>& part, int iteration) {
    for (std::size_t pipeline_rank = 0; pipeline_rank < part.size(); ++pipeline_rank) {
      for (Action action : part[pipeline_rank]) {
        const int of_iteration = iteration + action.iteration_offset;
        action.iteration_offset = 0;
        if (action.micro_batch) {
          action.micro_batch = *action.micro_batch + of_iteration * schedule.num_micro_batches;
          action.weight_version = static_cast<std::uint8_t>(std::max(of_iteration - schedule.weight_delay, 0));
        } else if (of_iteration != iterations - 1) {
          continue;
        }
        flat.body[pipeline_rank].push_back(action);
      }
    }
  };
  const bool overlap = !schedule.epilogue.empty();
  append(schedule.prologue, 0);
  for (int iteration = 0; iteration < iterations - (overlap ? 1 : 0); ++iteration) append(schedule.body, iteration);
  append(schedule.epilogue, iterations - 1);
  return flat;
}

}  // namespace frostpipe
