#include "simulator/table_cost_model.h"

#include "base/error.h"

namespace frostpipe {

std::vector<Segment> TableCostModel::segments(const Action& action, int pipeline_rank, int replica) const {
  const auto compute = [](Nanoseconds duration) { return Segment{.duration_ns = duration, .collective_ranks = {}}; };
  if (is_compute(action.kind)) return {compute(compute_ns(action, pipeline_rank, replica))};
  if (action.kind == ActionKind::optimizer_step) return {compute(times_.at(action.stage).at(replica).update_ns)};
  if (action.kind != ActionKind::reduce_gradient)
    throw InvalidInput("action " + to_string(action), "must have a cost in a table of stages", "without one");
  const Segment& reduce = reduce_gradient_.at(action.stage);
  if (reduce.collective_ranks.size() < 2) return {};
  return {reduce};
}

Nanoseconds TableCostModel::compute_ns(const Action& action, int /*pipeline rank*/, int replica) const {
  const StageTimes& times = times_.at(action.stage).at(replica);
  switch (action.kind) {
    case ActionKind::backward:
    case ActionKind::input_gradient:
      return times.backward_ns;
    case ActionKind::weight_gradient:
      return 0;
    default:
      return times.forward_ns;
  }
}

TransferCost TableCostModel::transfer(const Action& send, int replica) const {
  const StageTimes& times = times_.at(send.stage).at(replica);
  return send.kind == ActionKind::send_forward ? times.send_forward : times.send_backward;
}

}  // namespace frostpipe
