#include "executor/training/policy/checkpoint_schedule.h"

#include <algorithm>
#include <limits>

namespace frostpipe {
namespace {

constexpr double kSecondsBetweenQuestions = 5;

double seconds_between(Nanoseconds begin_ns, Nanoseconds end_ns) {
  return static_cast<double>(end_ns - begin_ns) * 1e-9;
}

}  // namespace

bool CheckpointSchedule::asks_before(int step, Nanoseconds now_ns) {
  if (policy_.every_steps == 0 && policy_.every_minutes == 0) return false;
  if (!next_question_) {
    next_question_ = step + 1;
    last_question_step_ = step;
    last_question_ns_ = now_ns;
  }
  return step >= *next_question_;
}

CheckpointSchedule::Proposal CheckpointSchedule::propose(int step, Nanoseconds now_ns) const {
  const bool by_steps = policy_.every_steps > 0 && (is_put_off_ || step % policy_.every_steps == 0);
  const bool by_time =
      policy_.every_minutes > 0 && seconds_between(last_written_ns_, now_ns) >= 60 * policy_.every_minutes;
  int next = std::numeric_limits<int>::max();
  if (policy_.every_steps > 0) next = step + policy_.every_steps - step % policy_.every_steps;
  if (policy_.every_minutes > 0) {
    const double per_step =
        std::max(1e-6, seconds_between(last_question_ns_, now_ns) / std::max(1, step - last_question_step_));
    const double pause = std::min(kSecondsBetweenQuestions, 60 * policy_.every_minutes / 4);
    next = std::min(next, step + static_cast<int>(std::clamp(pause / per_step, 1.0, 1e6)));
  }
  return {.is_due = by_steps || by_time, .next_question = next};
}

bool CheckpointSchedule::decide(int step, const Proposal& agreed, bool is_busy, Nanoseconds now_ns) {
  last_question_ns_ = now_ns;
  last_question_step_ = step;
  next_question_ = agreed.next_question;
  if (!agreed.is_due) return false;
  is_put_off_ = is_busy;
  if (is_put_off_) next_question_ = step + 1;
  return !is_put_off_;
}

void CheckpointSchedule::start_over() {
  next_question_.reset();
  is_put_off_ = false;
}

}  // namespace frostpipe
