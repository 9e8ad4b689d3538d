#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "executor/optimizer/update.h"
#include "operators/executor/device_tasks.h"
#include "operators/executor/net_parts.h"
#include "operators/executor/operator_values.h"
#include "operators/executor/tensor_exchange.h"
#include "operators/nets/net_kernels.h"
#include "operators/plan/operator_tasks.h"
#include "plan/batch.h"

namespace frostpipe {

/// Carries out one device's part of an OperatorPlan, task by task. `net` must have given the plan's graph
/// (counted_operators, frozen). What it refers to outlives it.
class DeviceRunner {
 public:
  DeviceRunner(const NetShape& net, const OperatorPlan& plan, const OperatorTasks& tasks, int device,
               TensorExchange& exchange);

  /// The device's tasks in the plan's order.
  const std::vector<int>& tasks() const { return own_.order; }

  /// The range of the mini-batch's samples whose pictures or labels it reads; none: [0, 0).
  SampleRange samples_needed() const { return needed_; }

  /// `pictures` [n, channels, size, size] and `labels` [n]: of samples_needed. `state` and `momentum` are held_by this
  /// device. From here to end_iteration `state` is nobody else's.
  void begin_iteration(const NetState& state, const at::Tensor& pictures, const at::Tensor& labels);
  /// For what tasks()[place] reads of other devices. To be called before run_task, of every place in turn.
  void wait_for(int place);
  /// Places are called in their order, each followed by send_outputs.
  void run_task(int place, std::vector<NetMomentum>& momentum, const UpdateRule& rule);
  /// Sends the outputs of the last task that other devices read.
  void send_outputs();
  /// Waits for new weights from other devices, which come into `state` from each layer's last use on, and puts this
  /// device's there. Returns its part of the mean loss.
  double end_iteration(NetState& state);

 private:
  struct Inputs;
  /// Values that take their place when the iteration has ended.
  struct NewWeights {
    int layer = 0;
    std::int64_t begin = 0;
    at::Tensor weights;         // from `begin` on
    at::Tensor norm;            // or scale and shift
    NormStatistics statistics;  // with them
  };
  struct Outgoing {
    int transfer = 0;
    at::Tensor tensor;
  };
  SampleRange find_samples_needed() const;
  void expect_new_weights(int place);
  void keep(int task, const at::Tensor& output);
  Inputs inputs_of(int task) const;
  at::Tensor output_of(int task, const Inputs& in);
  void update(int task, const Inputs& inputs, NetMomentum& momentum, const UpdateRule& rule);
  void update_norm(int task, const Inputs& inputs, NetMomentum& momentum, const UpdateRule& rule);
  NormStatistics statistics_from(int op) const;
  at::Tensor sum_from(int op) const;
  at::Tensor weight_gradient_from(int op, int update_task) const;
  int layer_of(int task) const;
  std::int64_t begin_of(int update_task, int part) const;
  std::int64_t part_begin(int update_task) const;
  at::Tensor part_of(const at::Tensor& weights, int update_task) const;
  bool is_loss(const Operator& op) const;
  bool is_gradient(const Operator& op) const;
  std::vector<std::int64_t> shape_of(int op, int num_samples) const;
  at::Tensor empty_for(int transfer) const;

  const NetShape& net_;
  const OperatorPlan& plan_;
  const OperatorTasks& tasks_;
  int device_;
  TensorExchange& exchange_;
  DeviceTasks own_;
  std::vector<std::vector<int>> inputs_;  // by operator: edges
  std::vector<std::vector<int>> parts_;   // by operator: its tasks on all devices
  SampleRange needed_;
  std::vector<int> last_use_;                       // by layer: place of the last task that reads its weights
  std::vector<std::vector<int>> new_weights_from_;  // by place: transfers whose layers no task from there on reads
  int expected_ = 0;                                // places whose transfers are expected
  int place_ = 0;                                   // of the task that runs
  const NetState* state_ = nullptr;
  at::Tensor pictures_, labels_;
  OperatorValues values_;
  std::vector<Outgoing> outgoing_;
  std::vector<NewWeights> pending_;
  double loss_ = 0;
};

}  // namespace frostpipe
