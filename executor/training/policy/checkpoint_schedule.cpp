#include "executor/training/policy/checkpoint_schedule.h"

#include <algorithm>

namespace frostpipe {
namespace {

constexpr double kSecondsBetweenQuestions = 5;

double seconds_between(Nanoseconds begin_ns, Nanoseconds end_ns) {
  return static_cast<double>(end_ns - begin_ns) * 1e-9;
}

}  // namespace

bool CheckpointSchedule::asks_before(int step, Nanoseconds now_ns) {
  if (!next_question_) {
    next_question_ = step + 1;
    last_question_step_ = step;
    last_question_ns_ = now_ns;
  }
  return step >= *next_question_;
}

bool CheckpointSchedule::is_due(int step, Nanoseconds now_ns) const {
  const bool by_steps = policy_.every_steps > 0 && (is_put_off_ || step % policy_.every_steps == 0);
  const bool by_time =
      policy_.every_minutes > 0 && seconds_between(last_written_ns_, now_ns) >= 60 * policy_.every_minutes;
  return by_steps || by_time;
}

double CheckpointSchedule::seconds_per_step(int step, Nanoseconds now_ns) const {
  return seconds_between(last_question_ns_, now_ns) / std::max(1, step - last_question_step_);
}

bool CheckpointSchedule::decide(int step, const Agreed& agreed, bool is_busy, Nanoseconds now_ns) {
  const double pause = policy_.every_minutes > 0 ? std::min(kSecondsBetweenQuestions, 60 * policy_.every_minutes / 4)
                                                 : kSecondsBetweenQuestions;
  const double num_steps = pause / std::max(1e-6, agreed.seconds_per_step);
  next_question_ = step + static_cast<int>(std::clamp(num_steps, 1.0, 1e6));
  if (policy_.every_steps > 0)
    next_question_ = std::min(*next_question_, step + policy_.every_steps - step % policy_.every_steps);
  last_question_ns_ = now_ns;
  last_question_step_ = step;
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
