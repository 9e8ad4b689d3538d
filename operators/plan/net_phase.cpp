#include "operators/plan/net_phase.h"

namespace frostpipe {

Phase phase_of(const OperatorPlan& plan, int from_step) {
  return {.from_step = from_step,
          .first_trainable_layer = plan.frozen_layers,
          .layout = {.data_parallel_size = static_cast<int>(plan.machine.devices.size())},
          .partition = {{0, num_layers(plan.graph)}},
          .num_micro_batches = 1,
          .schedule = std::string(to_string(plan.method)),
          .operator_plan = to_json(plan),
          .predicted = {.iteration_ns = plan.predicted_ns, .peak_memory_bytes = plan.predicted_memory_bytes}};
}

OperatorPlan operator_plan_of(const Phase& phase, std::string_view source) {
  return operator_plan_from_json(phase.operator_plan, source);
}

Cluster cluster_of(const OperatorPlan& plan) {
  Cluster cluster;
  for (const OperatorDevice& device : plan.machine.devices)
    cluster.devices.push_back({.type = device.device_class, .node = device.node});
  cluster.intra_node.point_to_point = plan.machine.within_node;
  cluster.inter_node.point_to_point = plan.machine.between_nodes;
  return cluster;
}

}  // namespace frostpipe
