#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "executor/communication/communicator.h"
#include "operators/execute_net.h"
#include "operators/executor/device_tasks.h"
#include "operators/plan/net_run.h"
#include "operators/training/group_exchange.h"
#include "operators/training/net_inputs.h"

namespace frostpipe {
namespace {

constexpr int kIterations = 10;
constexpr int kShrink = 256;  // of messages' bytes

/// Of a link that is occupied by messages as message_occupancy_ns says.
Link without_work(Link link, std::int64_t message_bytes_per_cpu_second) {
  if (message_bytes_per_cpu_second == 0 || link.bandwidth_bytes_per_second == 0) return link;
  const double ns_per_byte = 1e9 / static_cast<double>(link.bandwidth_bytes_per_second) -
                             2e9 / static_cast<double>(message_bytes_per_cpu_second);
  link.bandwidth_bytes_per_second = ns_per_byte > 0 ? static_cast<std::int64_t>(1e9 / ns_per_byte) : 0;
  return link;
}

/// The plan's devices and links as the emulated links know them.
Cluster cluster_of(const OperatorPlan& plan) {
  Cluster cluster;
  for (const OperatorDevice& device : plan.machine.devices)
    cluster.devices.push_back({.type = device.device_class, .node = device.node});
  const std::int64_t of_processors = plan.machine.message_bytes_per_cpu_second;
  cluster.intra_node.point_to_point = without_work(plan.machine.within_node, of_processors);
  cluster.inter_node.point_to_point = without_work(plan.machine.between_nodes, of_processors);
  return cluster;
}

/// One device whose tasks take the plan's durations.
class EmulatedDevice {
 public:
  EmulatedDevice(const OperatorPlan& plan, int device, Group& group, VirtualClock& clock)
      : tasks_(tasks_of(plan.graph, plan.machine, plan.placement)),
        own_(tasks_of_device(plan, tasks_, device)),
        exchange_(group, plan, tasks_),
        clock_(clock) {}

  void run_iteration() {
    int expected = 0;
    const int num_places = static_cast<int>(own_.order.size());
    for (int place = 0; place < num_places; ++place) {
      for (; expected < std::min(place + kTasksAhead, num_places); ++expected)
        for (const int transfer : own_.transfers_for[expected]) exchange_.expect(transfer, message(transfer));
      for (const int transfer : own_.transfers_for[place]) exchange_.take(transfer);
      const int task = own_.order[place];
      clock_.pass(tasks_.tasks[task].duration_ns);
      for (const int transfer : tasks_.transfers_of[task]) exchange_.send(transfer, message(transfer));
    }
    for (const int transfer : own_.new_weights) exchange_.expect(transfer, message(transfer));
    for (const int transfer : own_.new_weights) exchange_.take(transfer);
    exchange_.end_iteration();
  }

 private:
  at::Tensor message(int transfer) const {
    return at::empty({(tasks_.transfers[transfer].bytes + kShrink - 1) / kShrink}, at::kByte);
  }

  OperatorTasks tasks_;
  DeviceTasks own_;
  GroupExchange exchange_;
  VirtualClock& clock_;
};

}  // namespace

void emulate_operators(Membership& membership, const OperatorPlan& plan, const std::filesystem::path& output) {
  const at::NoGradGuard no_grad;
  const auto round = membership.next_round();
  FROSTPIPE_CHECK(round, "a plan of operators has no spares");
  require_ranks(plan, round->self);
  const auto device = make_emulated_device(kShrink);
  const auto communicator = Communicator::connect(round->self, *device);
  communicator->emulate_links(cluster_of(plan), kShrink);
  Group& all = communicator->control_group();
  EmulatedDevice emulated(plan, round->self.rank, communicator->weight_transfer_group(), *device->virtual_clock());
  all.barrier();
  device->virtual_clock()->be_on_time();
  const Nanoseconds begin_ns = device->now_ns();
  for (int i = 0; i < kIterations; ++i) {
    emulated.run_iteration();
    all.barrier();  // the prediction is of one iteration alone
  }
  NetRun run{.name = "emulated",
             .net = plan.graph.net,
             .method = plan.method,
             .batch = plan.graph.batch,
             .num_iterations = kIterations,
             .devices = {},
             .epochs = {}};
  run.epochs.push_back({.frozen_layers = plan.frozen_layers,
                        .predicted_iteration_ns = plan.predicted_ns,
                        .iteration_ns = (device->now_ns() - begin_ns) / kIterations});
  run.wall_seconds = 1e-9 * static_cast<double>(device->now_ns() - begin_ns);
  for (std::size_t d = 0; d < plan.machine.devices.size(); ++d)
    run.devices.push_back({.device_class = plan.machine.devices[d].device_class,
                           .predicted_memory_bytes = plan.predicted_memory_bytes[d]});
  if (communicator->rank() == 0) write_file_atomically(output / "summary.json", to_json(run));
  all.barrier();
}

}  // namespace frostpipe
