#include "executor/training/policy/run_clock.h"

#include <utility>

namespace frostpipe {

void RunClock::continue_from(double wall_seconds, double evaluation_seconds) {
  earlier_wall_seconds_ = wall_seconds;
  earlier_evaluation_seconds_ = evaluation_seconds;
}

void RunClock::begin_step(Nanoseconds now_ns) {
  if (!step_begin_ns_) step_begin_ns_ = now_ns;
}

Nanoseconds RunClock::end_step(Nanoseconds now_ns) {
  return now_ns - std::exchange(step_begin_ns_, now_ns).value_or(now_ns);
}

void RunClock::add_evaluation(Nanoseconds begin_ns, Nanoseconds end_ns) {
  evaluation_ns_ += end_ns - begin_ns;
  restart_step(end_ns);
}

double RunClock::wall_seconds(Nanoseconds now_ns) const {
  if (!begin_ns_) return earlier_wall_seconds_;
  return earlier_wall_seconds_ + static_cast<double>(now_ns - *begin_ns_ - evaluation_ns_) * 1e-9;
}

double RunClock::evaluation_seconds() const {
  return earlier_evaluation_seconds_ + static_cast<double>(evaluation_ns_) * 1e-9;
}

}  // namespace frostpipe
