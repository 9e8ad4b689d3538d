#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/models/transformer.h"
#include "operators/executor/device_runner.h"
#include "operators/nets/net_folder.h"
#include "operators/training/cpu_class.h"
#include "operators/training/group_exchange.h"
#include "operators/training/layer_mover.h"
#include "operators/training/operator_trace.h"

namespace frostpipe {

/// What a rank has of a net that is trained by plans of operators, and its part of the running one. All ranks call each
/// function at the same point.
class NetSession {
 public:
  /// `folder` and `communicator` outlive this object. `cpu`: this rank's.
  NetSession(const NetFolder& folder, const CpuClass& cpu, Communicator& communicator);

  /// Begins with the folder's weights, by a plan that outlives its phase, as those of the other two do.
  void begin(const OperatorPlan& plan, std::uint64_t seed);
  /// Begins with what `stored` gives rank 0 of each layer.
  void restore(const OperatorPlan& plan, const std::function<WholeLayer(int layer)>& stored);
  /// Goes on by another plan, for which layers and momentum move to who needs them now.
  void change_to(const OperatorPlan& plan);

  /// Rank 0's: a layer as its holders have it, in memory of its own.
  WholeLayer collect(int layer, bool with_momentum);
  /// An iteration on this device's part of a mini-batch. Returns this device's part of its loss.
  double train_step(const MicroBatch& pictures, const SgdOptions& sgd);

  const OperatorPlan& plan() const { return phase_->plan; }
  const OperatorTasks& tasks() const { return phase_->tasks; }
  /// Samples of a mini-batch that this device reads, from the first to the last.
  std::pair<int, int> samples_needed() const { return phase_->runner.samples_needed(); }
  /// Of the last iteration's tasks.
  const DeviceTimes& times() const { return times_; }

 private:
  /// The running plan on this rank.
  struct Phase {
    Phase(const OperatorPlan& plan, const NetShape& net, Group& group, int device)
        : plan(plan),
          tasks(tasks_of(plan.graph, plan.machine, plan.placement)),
          holders(holders_by_layer(plan)),
          exchange(group, plan, tasks),
          runner(net, plan, tasks, device, exchange) {}

    const OperatorPlan& plan;
    OperatorTasks tasks;
    std::vector<LayerHolders> holders;
    GroupExchange exchange;
    DeviceRunner runner;
  };

  int num_layers() const { return static_cast<int>(folder_.net.layers.size()); }
  void start_phase(const OperatorPlan& plan);
  void give(std::vector<WholeLayer> layers);

  const NetFolder& folder_;
  Communicator& communicator_;
  LayerMover mover_;
  SlowCpu slow_cpu_;
  std::optional<Phase> phase_;
  NetState state_;
  std::vector<NetMomentum> momentum_;
  DeviceTimes times_;
};

}  // namespace frostpipe
