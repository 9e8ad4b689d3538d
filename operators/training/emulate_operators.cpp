#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "executor/communication/communicator.h"
#include "executor/training/run_recorder.h"
#include "operators/execute_net.h"
#include "operators/executor/device_tasks.h"
#include "operators/plan/net_phase.h"
#include "operators/training/group_exchange.h"
#include "operators/training/net_results.h"

namespace frostpipe {
namespace {

constexpr int kIterations = 10;
constexpr int kShrink = 256;  // divisor of the messages' bytes

/// Returns a link that messages occupy for as long as message_occupancy_ns says.
Link without_work(Link link, std::int64_t message_bytes_per_cpu_second) {
  if (message_bytes_per_cpu_second == 0 || link.bandwidth_bytes_per_second == 0) return link;
  const double ns_per_byte = 1e9 / static_cast<double>(link.bandwidth_bytes_per_second) -
                             2e9 / static_cast<double>(message_bytes_per_cpu_second);
  link.bandwidth_bytes_per_second = ns_per_byte > 0 ? static_cast<std::int64_t>(1e9 / ns_per_byte) : 0;
  return link;
}

/// Returns the plan's devices and links as a cluster for the emulated links.
Cluster emulated_cluster_of(const OperatorPlan& plan) {
  Cluster cluster = cluster_of(plan);
  for (Link* const link : {&cluster.intra_node.point_to_point, &cluster.inter_node.point_to_point})
    *link = without_work(*link, plan.machine.message_bytes_per_cpu_second);
  return cluster;
}

Model model_of(const OperatorGraph& graph) {
  Model model{.name = graph.net};
  for (int layer = 0; layer < num_layers(graph); ++layer)
    model.layers.push_back({.name = fmt::format("layer.{}", layer), .kind = LayerKind::layer, .block = layer});
  return model;
}

void require_ranks(const OperatorPlan& plan, const RankEnvironment& self) {
  const int num_devices = static_cast<int>(plan.machine.devices.size());
  if (self.world_size != num_devices)
    throw InvalidInput("machine.devices of the plan",
                       fmt::format("must be as many as the ranks that were started ({})", self.world_size),
                       std::to_string(num_devices));
}

/// One device whose tasks take the plan's durations.
class EmulatedDevice {
 public:
  EmulatedDevice(const OperatorPlan& plan, int device, Group& group, VirtualClock& clock)
      : tasks_(tasks_of(plan.graph, plan.machine, plan.placement)),
        actions_(actions_of(plan, tasks_, plan)),
        own_(tasks_of_device(plan, tasks_, device)),
        device_(device),
        exchange_(group, plan, tasks_),
        clock_(clock) {}

  /// Runs the device's tasks and adds their spans to `trace`.
  void run_iteration(int step, Trace& trace) {
    int expected = 0;
    const int num_places = static_cast<int>(own_.order.size());
    for (int place = 0; place < num_places; ++place) {
      for (; expected < std::min(place + kTasksAhead, num_places); ++expected)
        for (const int transfer : own_.transfers_for[expected]) exchange_.expect(transfer, message(transfer));
      for (const int transfer : own_.transfers_for[place]) exchange_.take(transfer);
      const int task = own_.order[place];
      const Nanoseconds begin_ns = clock_.now();
      clock_.pass(tasks_.tasks[task].duration_ns);
      trace.spans.push_back({device_, step, actions_[task], begin_ns, clock_.now()});
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
  std::vector<Action> actions_;
  DeviceTasks own_;
  int device_;
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
  communicator->emulate_links(emulated_cluster_of(plan), kShrink);
  Group& all = communicator->control_group();
  EmulatedDevice emulated(plan, round->self.rank, communicator->weight_transfer_group(), *device->virtual_clock());
  all.barrier();
  device->virtual_clock()->synchronize();
  const Model model = model_of(plan.graph);
  RunRecorder recorder(*device, model, communicator->world_size(), output);
  std::vector<int> ranks(communicator->world_size());
  std::iota(ranks.begin(), ranks.end(), 0);
  recorder.join(*communicator, ranks);
  if (communicator->rank() == 0) recorder.log().begin_anew();
  recorder.begin_phase(phase_of(plan, 0), 0, {});
  Nanoseconds begin_ns = device->now_ns();
  const Nanoseconds first_ns = begin_ns;
  for (int step = 0; step < kIterations; ++step) {
    emulated.run_iteration(step, recorder.trace());
    all.barrier();  // iterations must not overlap, since the prediction is that of a single one
    const Nanoseconds end_ns = device->now_ns();
    recorder.record_step({.step = step, .samples = plan.graph.batch, .iteration_ns = end_ns - begin_ns},
                         communicator->rank() == 0);
    begin_ns = end_ns;
  }
  RunSummary run{.name = "emulated",
                 .freeze = "plan",
                 .world_size = communicator->world_size(),
                 .is_emulated = true,
                 .num_steps = kIterations,
                 .global_batch_size = plan.graph.batch};
  describe(plan, run);
  run.wall_seconds = 1e-9 * static_cast<double>(begin_ns - first_ns);
  run.samples_per_second = kIterations * plan.graph.batch / run.wall_seconds;
  TrainingPlan executed;
  Trace whole_run;
  recorder.finish({}, run, executed, whole_run);
  if (communicator->rank() == 0) {
    run.phases.front().measured_peak_memory_bytes.clear();  // of messages alone: no weight or activation is held
    add_prediction(executed.phases.front(), plan, "plan", run.phases.front());
    whole_run.stage_names = stage_names(plan);
    write_file_atomically(output / "trace.json", to_chrome_trace(whole_run));
    write_file_atomically(output / "summary.json", to_json(run));
  }
  all.barrier();
}

}  // namespace frostpipe
