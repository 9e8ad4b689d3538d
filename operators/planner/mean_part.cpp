#include "operators/planner/mean_part.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "operators/planner/baselines.h"

namespace frostpipe {
namespace {

using Times = std::vector<double>;

constexpr double kUnknown = std::numeric_limits<double>::infinity();

/// Returns the least sum of s_d x (overhead_d + s_d x work_d) over shares s_d that sum up to 1. It maximizes the dual,
/// which is a lower bound at any level: level - sum of max(0, level - overhead_d)^2 / (4 work_d).
double best_shares(const Times& overheads, const Times& work) {
  std::vector<std::size_t> devices(work.size());
  std::iota(devices.begin(), devices.end(), 0);
  std::ranges::sort(devices, {}, [&](std::size_t d) { return overheads[d]; });
  double level = kUnknown, slope = 0, offset = 1;
  for (const std::size_t d : devices) {
    if (level <= overheads[d]) break;
    if (work[d] <= 0) {
      level = overheads[d];
      break;
    }
    slope += 1 / (2 * work[d]);
    offset += overheads[d] / (2 * work[d]);
    level = offset / slope;
  }
  double least = level;
  for (std::size_t d = 0; d < work.size(); ++d)
    if (overheads[d] < level) least -= (level - overheads[d]) * (level - overheads[d]) / (4 * work[d]);
  return least;
}

Times overheads_of(const OperatorProblem& problem, const Operator& one) {
  Times overheads = time_on_devices(problem, one);
  const Times work = work_on_devices(problem, one);
  for (std::size_t d = 0; d < work.size(); ++d) overheads[d] -= work[d];
  return overheads;
}

/// Returns the least time of an update: whole on one device, or in equal parts, one of which waits for a message with
/// its part of `gradient` (if not null) and is then sent to the other holders.
double least_update(const OperatorProblem& problem, const Operator& update, const Operator* gradient) {
  const Times overheads = overheads_of(problem, update), work = work_on_devices(problem, update);
  double least = std::ranges::min(time_on_devices(problem, update));
  for (std::size_t parts = 2; parts <= work.size(); ++parts) {
    const auto message = [&](Bytes bytes) { return least_message(problem.machine, bytes / static_cast<Bytes>(parts)); };
    const double messages = message(update.weight_bytes) + (gradient ? message(gradient->weight_bytes) : 0);
    for (std::size_t d = 0; d < work.size(); ++d)
      least = std::min(least, overheads[d] + work[d] / static_cast<double>(parts) + messages);
  }
  return least;
}

double least_whole(const OperatorProblem& problem, const Operator& one) {
  return std::ranges::min(time_on_devices(problem, one));
}

}  // namespace

double least_mean_part(const OperatorProblem& problem, const Operator& one) {
  if (one.kind == OperatorKind::update) return least_update(problem, one, nullptr);
  if (one.kind == OperatorKind::norm_update) return least_whole(problem, one);
  return best_shares(overheads_of(problem, one), work_on_devices(problem, one));
}

double least_mean_part_after(const OperatorProblem& problem, const Operator& one, const Operator& read) {
  if (one.kind == OperatorKind::update) return least_update(problem, one, &read);
  if (one.kind == OperatorKind::norm_update) return least_whole(problem, one);
  const Times own = overheads_of(problem, one), work = work_on_devices(problem, one);
  const int count = static_cast<int>(own.size());
  double least = kUnknown;
  for (int last = 0; last < count; ++last) {
    Times overheads = own;
    for (int d = 0; d < count; ++d)
      overheads[d] += static_cast<double>(message_ns(problem.machine, last, d, read.output_bytes));
    least = std::min(least, best_shares(overheads, work));
  }
  return least;
}

double least_part(const OperatorProblem& problem, const Operator& one) {
  const Times overheads = overheads_of(problem, one), work = work_on_devices(problem, one);
  double least = kUnknown;
  for (std::size_t d = 0; d < work.size(); ++d) least = std::min(least, overheads[d] + work[d] / problem.graph.batch);
  return least;
}

double least_message(const OperatorMachine& machine, Bytes bytes) {
  const int count = static_cast<int>(machine.devices.size());
  if (count == 1) return 0;
  Nanoseconds least = std::numeric_limits<Nanoseconds>::max();
  for (int from = 0; from < count; ++from)
    for (int to = 0; to < count; ++to)
      if (from != to) least = std::min(least, message_ns(machine, from, to, bytes));
  return static_cast<double>(least);
}

}  // namespace frostpipe
