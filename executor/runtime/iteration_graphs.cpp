#include "executor/runtime/iteration_graphs.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "plan/schedule.h"
#include "plan/stages.h"
#include "plan/token_slices.h"

namespace frostpipe {

std::optional<std::string> why_not_captured(const Phase& phase, double dropout) {
  if (phase.layout.tensor_parallel_size > 1) return "tensor ranks share the layers";
  if (phase.cache.on) return "it uses the activation cache";
  if (num_slices(phase) > 1) return "samples are cut into token slices";
  if (weight_delay(phase) > 0) return "updates are delayed";
  if (dropout > 0) return "dropout is on";
  return std::nullopt;
}

bool captures_update(const Phase& phase, Optimizer optimizer) {
  return num_ranks(phase.layout) == 1 && optimizer == Optimizer::kAdamW;
}

bool IterationGraphs::begin(const std::vector<std::int64_t>& lengths) {
  next_action_ = 0;
  if (lengths != lengths_) {
    reset();
    lengths_ = lengths;
    return false;
  }
  copies_.rewind();
  if (mode_ == Mode::eager) device_.release_kept_memory();  // graphs have a memory pool of their own
  mode_ = mode_ == Mode::eager ? Mode::capture : Mode::replay;
  return true;
}

void IterationGraphs::reset() {
  lengths_.clear();
  copies_.clear();
  graphs_ = device_.make_graphs();
  mode_ = Mode::eager;
}

UpdateRule IterationGraphs::on_device(const UpdateRule& rule) {
  const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat);
  if (!rate_and_step_.defined()) rate_and_step_ = at::empty({2}, options.device(device_.torch_device()));
  const at::Tensor values = at::tensor({rule.learning_rate, static_cast<double>(rule.step)}, options);
  rate_and_step_.copy_(values.pin_memory(), /*non_blocking=*/true);
  UpdateRule there = rule;
  there.rate_and_step = rate_and_step_;
  return there;
}

void IterationGraphs::run(const std::function<void()>& perform) {
  const std::size_t action = next_action_++;
  if (mode_ != Mode::replay) {
    const DeviceCopies::Pass pass(copies_);
    if (mode_ == Mode::eager) return perform();
    graphs_->capture(perform);
  }
  graphs_->replay(action);
}

}  // namespace frostpipe
