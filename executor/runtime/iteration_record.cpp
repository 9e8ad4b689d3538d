#include "executor/runtime/iteration_record.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <utility>

#include "plan/schedule.h"
#include "plan/stages.h"
#include "plan/token_slices.h"

namespace frostpipe {

std::optional<std::string> why_not_recorded(const Phase& phase, double dropout) {
  if (phase.layout.tensor_parallel_size > 1) return "tensor ranks share the layers";
  if (phase.cache.on) return "it reads a cache";
  if (num_slices(phase) > 1) return "samples are cut into token slices";
  if (weight_delay(phase) > 0) return "updates are delayed";
  if (dropout > 0) return "values are dropped";
  return std::nullopt;
}

bool records_update(const Phase& phase, Optimizer optimizer) {
  return num_ranks(phase.layout) == 1 && optimizer == Optimizer::kAdamW;
}

bool IterationRecord::begin(const std::vector<std::int64_t>& lengths) {
  next_action_ = 0;
  copies_.rewind();
  const bool is_same = lengths == lengths_;
  if (!is_same) {
    forget();
    lengths_ = lengths;
  } else if (mode_ == Mode::first) {
    device_.release_kept_memory();  // records have memory of their own
    mode_ = Mode::record;
  } else {
    mode_ = Mode::replay;
  }
  return is_same;
}

void IterationRecord::forget() {
  lengths_.clear();
  copies_.clear();
  work_ = device_.record_work();
  mode_ = Mode::first;
}

UpdateRule IterationRecord::on_device(const UpdateRule& rule) {
  const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat);
  if (!rate_and_step_.defined()) rate_and_step_ = at::empty({2}, options.device(device_.torch_device()));
  const at::Tensor values = at::tensor({rule.learning_rate, static_cast<double>(rule.step)}, options);
  rate_and_step_.copy_(values.pin_memory(), /*non_blocking=*/true);
  UpdateRule there = rule;
  there.rate_and_step = rate_and_step_;
  return there;
}

void IterationRecord::run(const std::function<void()>& perform) {
  const std::size_t action = next_action_++;
  if (mode_ == Mode::first) {
    const DeviceCopies::Keep keep(copies_);
    return perform();
  }
  if (mode_ == Mode::record) {
    const DeviceCopies::Reuse reuse(copies_);
    work_->record(perform);
  }
  work_->replay(action);
}

}  // namespace frostpipe
