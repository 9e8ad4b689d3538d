#include "plan/run_length.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace frostpipe {

int steps_per_epoch(int num_samples, int global_batch_size) {
  return static_cast<int>(
      std::max<std::int64_t>(1, (std::int64_t{num_samples} + global_batch_size - 1) / global_batch_size));
}

void require_length(const TrainingPlan& plan, int num_samples, std::string_view source) {
  if (plan.num_steps < 1)
    throw InvalidInput(fmt::format("{}: num_steps", source), "must be >= 1 to train", std::to_string(plan.num_steps));
  const int per_epoch = steps_per_epoch(num_samples, plan.global_batch_size);
  const std::string data = fmt::format("this data ({} samples to train on, {} steps an epoch)", num_samples, per_epoch);
  const double passes = static_cast<double>(plan.num_steps) / per_epoch;
  if (plan.epochs == 0 || std::llround(passes) == plan.epochs) return;
  throw InvalidInput(fmt::format(
      "{}: is a plan of {} in {} steps, which are {} of {}; profile with this data (--held-out and --test-data "
      "as here) and plan again, "
      "or plan with --steps for a number of steps whatever the data",
      source, epochs_text(plan.epochs), plan.num_steps, epochs_text(passes), data));
}

std::string epochs_text(double epochs) {
  const std::string number = epochs < 100 ? fmt::format("{:.3g}", epochs) : fmt::format("{:.0f}", epochs);
  return fmt::format("{} epoch{}", number, number == "1" ? "" : "s");
}

}  // namespace frostpipe
