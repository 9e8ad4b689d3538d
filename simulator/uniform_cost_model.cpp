#include "base/error.h"
#include "simulator/cost_model.h"

namespace frostpipe {

std::vector<Segment> UniformCostModel::segments(const Action& action, int /*pipeline rank*/, int /*replica*/) const {
  if (is_compute(action.kind)) return {{.duration_ns = compute_ns(action, 0, 0), .collective_ranks = {}}};
  switch (action.kind) {
    case ActionKind::optimizer_step:
      return {{.duration_ns = costs_.update_ns, .collective_ranks = {}}};
    case ActionKind::reduce_gradient:
      return {};
    default:
      throw InvalidInput("action " + to_string(action), "must have a uniform cost", "without one");
  }
}

Nanoseconds UniformCostModel::compute_ns(const Action& action, int /*pipeline rank*/, int /*replica*/) const {
  switch (action.kind) {
    case ActionKind::backward:
      return costs_.input_gradient_ns + costs_.weight_gradient_ns;
    case ActionKind::input_gradient:
      return costs_.input_gradient_ns;
    case ActionKind::weight_gradient:
      return costs_.weight_gradient_ns;
    default:
      return costs_.forward_ns;
  }
}

TransferCost UniformCostModel::transfer(const Action& /*send*/, int /*replica*/) const {
  return {.occupancy_ns = costs_.occupancy_ns, .latency_ns = costs_.latency_ns};
}

}  // namespace frostpipe
