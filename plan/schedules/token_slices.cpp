#include <algorithm>

#include "plan/schedules/schedule_builder.h"

namespace frostpipe {
namespace {

Schedule empty_sliced(const char* name, const ScheduleShape& shape) {
  Schedule schedule = empty_schedule(name, shape, virtual_stages_of(name, shape, 1, 1, 1), StageMap::loop, true);
  schedule.num_slices = token_slices_of(name, shape);
  return schedule;
}

/// The k-th unit in the order of forwards is slice k mod n of micro-batch k / n. A single slice is not numbered.
Action of_unit(Action action, int num_slices, int slice) {
  if (num_slices > 1) action.slice = slice;
  return action;
}
Action forward_unit(int stage, int unit, int num_slices) {
  return of_unit(forward(stage, unit / num_slices), num_slices, unit % num_slices);
}

}  // namespace

Schedule terapipe(const ScheduleShape& shape) {
  Schedule schedule = empty_sliced("TeraPipe", shape);
  const int n = schedule.num_slices, units = shape.num_micro_batches * n;
  for (int r = 0; r < shape.pipeline_parallel_size; ++r) {
    auto& actions = schedule.body[r];
    for (int unit = 0; unit < units; ++unit) actions.push_back(forward_unit(r, unit, n));
    for (int unit = units - 1; unit >= 0; --unit) actions.push_back(of_unit(backward(r, unit / n), n, unit % n));
  }
  return without_frozen_backwards(std::move(schedule));
}

Schedule seq_one_f_one_b(const ScheduleShape& shape) {
  Schedule schedule = empty_sliced("Seq1F1B", shape);
  const int p = shape.pipeline_parallel_size, n = schedule.num_slices, units = shape.num_micro_batches * n;
  for (int r = 0; r < p; ++r) {
    auto& actions = schedule.body[r];
    const int ahead = std::min(p - 1 - r + n - 1, units);
    for (int unit = 0; unit < units + ahead; ++unit) {
      if (unit < units) actions.push_back(forward_unit(r, unit, n));
      if (const int back = unit - ahead; back >= 0)
        actions.push_back(of_unit(backward(r, back / n), n, n - 1 - back % n));
    }
  }
  return without_frozen_backwards(std::move(schedule));
}

}  // namespace frostpipe
