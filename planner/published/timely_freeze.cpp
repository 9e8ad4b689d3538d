#include "planner/published/timely_freeze.h"

#include <fmt/format.h>

#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>
#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"
#include "plan/batch.h"

namespace frostpipe {
namespace {

/// The linear program. Its columns are the makespan, then each action's start, then each backward's ratio. Times are
/// scaled by the whole work, so that they are near one.
class LinearProgram {
 public:
  LinearProgram(const Schedule& schedule, const std::vector<StageDurations>& stages, Nanoseconds message_ns)
      : schedule_(schedule), stages_(stages), message_ns_(message_ns) {
    for (const auto& list : schedule.body) {
      for (const Action& action : list) {
        if (!takes_part(action)) continue;
        start_.emplace(action, static_cast<int>(1 + start_.size()));
        unit_ += static_cast<double>(duration_ns(action, 0));
      }
    }
    int column = static_cast<int>(1 + start_.size());
    for (const auto& list : schedule.body)
      for (const Action& action : list)
        if (action.kind == ActionKind::backward) ratio_.emplace(action, column++);
    columns_ = column;
    if (unit_ <= 0) unit_ = 1;
  }

  TimelyFreeze solve(double largest_mean_ratio) {
    add_order();
    add_means(largest_mean_ratio);
    std::vector<double> lower(columns_, 0), upper(columns_, COIN_DBL_MAX), objective(columns_, 0);
    objective[0] = 1;
    constexpr double kPenalty = 1e-4;
    for (const auto& [action, column] : ratio_) {
      upper[column] = 1;
      objective[column] = kPenalty / static_cast<double>(ratio_.size());
    }
    CoinPackedMatrix matrix(/*colordered=*/false, rows_.data(), columns_of_.data(), values_.data(),
                            static_cast<int>(values_.size()));
    matrix.setDimensions(static_cast<int>(row_lower_.size()), columns_);
    ClpSimplex solver;
    solver.setLogLevel(0);
    solver.loadProblem(matrix, lower.data(), upper.data(), objective.data(), row_lower_.data(), row_upper_.data());
    solver.dual();
    FROSTPIPE_CHECK(solver.isProvenOptimal(), "all ratios 0 is a solution, and the makespan is not negative");
    const double* solution = solver.primalColumnSolution();
    TimelyFreeze result;
    result.makespan_ns = static_cast<Nanoseconds>(solution[0] * unit_ + 0.5);
    result.ratio.resize(stages_.size());
    for (const auto& [action, column] : ratio_) {
      auto& of_stage = result.ratio[action.stage];
      of_stage.resize(std::max<std::size_t>(of_stage.size(), *action.micro_batch + 1));
      of_stage[*action.micro_batch] = std::clamp(solution[column], 0.0, 1.0);
    }
    return result;
  }

 private:
  static bool is_receive(const Action& action) {
    return action.kind == ActionKind::recv_forward || action.kind == ActionKind::recv_backward;
  }
  static bool takes_part(const Action& action) {
    return is_compute(action.kind) || is_send(action.kind) || is_receive(action);
  }

  Nanoseconds duration_ns(const Action& action, double ratio) const {
    const StageDurations& stage = stages_.at(action.stage);
    if (action.kind == ActionKind::forward) return stage.forward_ns;
    if (action.kind == ActionKind::backward)
      return stage.input_gradient_ns +
             static_cast<Nanoseconds>((1 - ratio) * static_cast<double>(stage.weight_gradient_ns));
    return 0;
  }

  /// Requires that `after` starts no earlier than `before` ends, plus a delay. `after` = nullptr stands for the
  /// makespan.
  void add_follows(const Action* after, const Action& before, Nanoseconds delay_ns) {
    const int row = static_cast<int>(row_lower_.size());
    const auto put = [&](int column, double value) {
      rows_.push_back(row);
      columns_of_.push_back(column);
      values_.push_back(value);
    };
    put(after ? start_.at(*after) : 0, 1);
    put(start_.at(before), -1);
    if (before.kind == ActionKind::backward)
      put(ratio_.at(before), static_cast<double>(stages_[before.stage].weight_gradient_ns) / unit_);
    row_lower_.push_back(static_cast<double>(duration_ns(before, 0) + delay_ns) / unit_);
    row_upper_.push_back(COIN_DBL_MAX);
  }

  void add_order() {
    const Dependencies dependencies(schedule_);
    for (const auto& list : schedule_.body) {
      const Action* last = nullptr;
      for (const Action& action : list) {
        if (!takes_part(action)) continue;
        if (last) add_follows(&action, *last, 0);
        last = &action;
        add_follows(nullptr, action, 0);
        for (const Action& needed : dependencies.of(action))
          if (start_.contains(needed)) add_follows(&action, needed, is_receive(action) ? message_ns_ : 0);
      }
    }
  }

  void add_means(double largest) {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      const int row = static_cast<int>(row_lower_.size());
      int count = 0;
      for (const auto& [action, column] : ratio_) {
        if (action.stage != static_cast<int>(stage)) continue;
        rows_.push_back(row);
        columns_of_.push_back(column);
        values_.push_back(1);
        ++count;
      }
      row_lower_.push_back(0);
      row_upper_.push_back(largest * count);
    }
  }

  const Schedule& schedule_;
  const std::vector<StageDurations>& stages_;
  Nanoseconds message_ns_;
  std::map<Action, int> start_, ratio_;
  int columns_ = 1;
  double unit_ = 0;
  std::vector<int> rows_, columns_of_;
  std::vector<double> values_, row_lower_, row_upper_;
};

}  // namespace

TimelyFreeze timely_freeze_of(const Phase& phase, const PlanningProblem& problem, double largest_mean_ratio) {
  const auto& [profile, cluster, options] = problem;
  const SampleRange largest =
      micro_batch_samples(options.global_batch_size, phase.layout.data_parallel_size, phase.num_micro_batches, 0, 0);
  std::vector<StageDurations> stages(phase.partition.size());
  Nanoseconds message = 0;
  for (int k = 0; k < static_cast<int>(stages.size()); ++k) {
    const int rank = rank_of(phase.layout, k, 0);
    LayerCost last;
    for (int layer = phase.partition[k].begin; layer < phase.partition[k].end; ++layer) {
      last = cost_of(profile, {.layer = layer,
                               .device_type = cluster.devices[rank].type,
                               .dtype = options.dtype,
                               .micro_batch_size = largest.end - largest.begin,
                               .tokens = phase.tokens,
                               .tensor_parallel_size = phase.layout.tensor_parallel_size,
                               .sequence_parallel = phase.layout.sequence_parallel});
      stages[k].forward_ns += last.forward_ns;
      stages[k].weight_gradient_ns += last.weight_gradient_ns;
      if (layer > 0) stages[k].input_gradient_ns += last.input_gradient_ns;
    }
    if (k + 1 == static_cast<int>(stages.size())) break;
    const Link& link = link_between(cluster, rank, rank_of(phase.layout, k + 1, 0)).point_to_point;
    message = std::max(message, link.latency_ns + transfer_occupancy_ns(link, last.output_activation_bytes));
  }
  return timely_freeze(schedule_of(phase), stages, message, largest_mean_ratio);
}

TimelyFreeze timely_freeze(const Schedule& schedule, const std::vector<StageDurations>& stages, Nanoseconds message_ns,
                           double largest_mean_ratio) {
  if (!(largest_mean_ratio >= 0 && largest_mean_ratio <= 1))
    throw InvalidInput("largest mean freeze ratio", "must be in [0, 1]", fmt::format("{}", largest_mean_ratio));
  if (splits_backward(schedule))
    throw InvalidInput("schedule",
                       "must compute each backward in one piece for TimelyFreeze's linear program (try 1F1B or GPipe)",
                       schedule.name);
  if (!schedule.prologue.empty())
    throw InvalidInput("schedule",
                       "must end an iteration before the next for TimelyFreeze's linear program (try 1F1B or GPipe)",
                       schedule.name);
  if (num_stages(schedule) != num_pipeline_ranks(schedule) || static_cast<int>(stages.size()) != num_stages(schedule))
    throw InvalidInput(
        "schedule", "must have one stage per pipeline rank, with durations",
        fmt::format("{} stages on {} pipeline ranks", num_stages(schedule), num_pipeline_ranks(schedule)));
  return LinearProgram(schedule, stages, message_ns).solve(largest_mean_ratio);
}

}  // namespace frostpipe
