#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "executor/optimizer/parameter_update.h"
#include "operators/executor/device_tasks.h"
#include "operators/executor/net_parts.h"
#include "operators/executor/operator_values.h"
#include "operators/executor/tensor_exchange.h"
#include "operators/nets/net_kernels.h"
#include "operators/plan/operator_tasks.h"
#include "plan/batch.h"

namespace frostpipe {

/// Runs one device's part of an OperatorPlan, task by task. The plan's graph must have been made from `net`
/// (counted_operators, frozen). The arguments of the constructor must outlive this object.
class DeviceRunner {
 public:
  DeviceRunner(const NetShape& net, const OperatorPlan& plan, const OperatorTasks& tasks, int device,
               TensorExchange& exchange);

  /// Returns the device's tasks in the plan's order. A `place` below is an index into them.
  const std::vector<int>& tasks() const { return own_.order; }

  /// Returns the range of the mini-batch's samples whose pictures or labels this device reads; [0, 0) if it reads none.
  SampleRange samples_needed() const { return needed_; }

  /// Begins an iteration with the `pictures` [n, channels, size, size] and `labels` [n] of samples_needed(). `state`,
  /// and `momentum` in run_task(), are the parts that held_by() gives this device. Nothing else may use `state` until
  /// end_iteration().
  void begin_iteration(const NetState& state, const at::Tensor& pictures, const at::Tensor& labels);
  /// Posts receives, and waits for what tasks()[place] reads from other devices. Must be called before run_task(), for
  /// every place in turn, unless the plan has only one device.
  void wait_for(int place);
  /// Runs tasks()[place]. Places must be run in ascending order, each followed by send_outputs().
  void run_task(int place, std::vector<NetMomentum>& momentum, const UpdateRule& rule);
  /// Sends those outputs of the last task that other devices read.
  void send_outputs();
  /// Writes this device's new weights to `state`, and waits until those from other devices have arrived there. A
  /// layer's new weights may arrive as soon as no later task reads its old ones. Returns this device's part of the mean
  /// loss.
  double end_iteration(NetState& state);

 private:
  struct Inputs;
  /// Values that replace the old ones when the iteration has ended.
  struct NewWeights {
    int layer = 0;
    std::int64_t begin = 0;
    at::Tensor weights;         // of the layer's flat parameters, from `begin` on
    at::Tensor norm;            // or new scale and shift
    NormStatistics statistics;  // of the mini-batch, with `norm`
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
  std::vector<std::vector<int>> inputs_;  // by operator: indices of the edges to it
  std::vector<std::vector<int>> parts_;   // by operator: tasks on all devices
  SampleRange needed_;
  std::vector<int> last_use_;                       // by layer: place of the last reader of its weights; -1: none
  std::vector<std::vector<int>> new_weights_from_;  // by place: transfers of new weights to expect from this place on
  int expected_ = 0;                                // receives are posted for the places before this one
  int place_ = 0;                                   // place of the running task
  const NetState* state_ = nullptr;
  at::Tensor pictures_, labels_;
  OperatorValues values_;
  std::vector<Outgoing> outgoing_;
  std::vector<NewWeights> pending_;
  double loss_ = 0;
};

}  // namespace frostpipe
