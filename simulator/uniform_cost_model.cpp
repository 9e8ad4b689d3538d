#include "profiles/error.h"
#include "simulator/cost_model.h"

namespace frostpipe {

std::vector<Segment> UniformCostModel::segments(const Action& action, int /*position*/, int /*replica*/) const {
  switch (action.kind) {
    case ActionKind::forward:
    case ActionKind::recompute:
      return {{.duration_ns = costs_.forward_ns, .collective_ranks = {}}};
    case ActionKind::backward:
      return {{.duration_ns = costs_.input_gradient_ns + costs_.weight_gradient_ns, .collective_ranks = {}}};
    case ActionKind::input_gradient:
      return {{.duration_ns = costs_.input_gradient_ns, .collective_ranks = {}}};
    case ActionKind::weight_gradient:
      return {{.duration_ns = costs_.weight_gradient_ns, .collective_ranks = {}}};
    case ActionKind::optimizer_step:
      return {{.duration_ns = costs_.update_ns, .collective_ranks = {}}};
    case ActionKind::reduce_gradient:
      return {};
    default:
      throw InvalidInput("action " + to_string(action), "must have a uniform cost", "none is defined");
  }
}

TransferCost UniformCostModel::transfer(const Action& /*send*/, int /*replica*/) const {
  return {.occupancy_ns = costs_.occupancy_ns, .latency_ns = costs_.latency_ns};
}

}  // namespace frostpipe
