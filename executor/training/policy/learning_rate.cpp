#include "executor/training/policy/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace frostpipe {

double learning_rate_at(const TrainOptions& options, int step, int num_steps) {
  const int warm_up = std::max(1, static_cast<int>(std::ceil(options.learning_rate_warm_up * num_steps)));
  if (step < warm_up) return options.learning_rate * (step + 1) / warm_up;
  const double rest = static_cast<double>(num_steps - step) / std::max(1, num_steps - warm_up);
  return options.learning_rate * (options.decay == "cosine" ? (1 - std::cos(std::numbers::pi * rest)) / 2 : rest);
}

}  // namespace frostpipe
