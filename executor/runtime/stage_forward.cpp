#include "executor/runtime/stage_forward.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "executor/device/to_device.h"
#include "executor/models/functions.h"
#include "executor/models/layers.h"

namespace frostpipe {

int StageForward::frozen_end() const { return std::clamp(first_trainable_layer_, range_.begin, range_.end); }

at::Tensor StageForward::up_to(int end, at::Tensor input, const MicroBatch& batch) const {
  const at::NoGradGuard no_grad;
  const int frozen_end = std::min(end, this->frozen_end());
  at::Tensor boundary = run_frozen(range_.begin, frozen_end, std::move(input), as_frozen(batch));
  return run(frozen_end, end, std::move(boundary), batch);
}

at::Tensor StageForward::frozen(at::Tensor input, const MicroBatch& batch) const {
  const at::NoGradGuard no_grad;
  return run_frozen(range_.begin, frozen_end(), std::move(input), as_frozen(batch));
}

at::Tensor StageForward::frozen_from(const CachedRows& rows, const MicroBatch& trained) const {
  const at::NoGradGuard no_grad;
  const MicroBatch batch = as_frozen(trained);
  const int end = frozen_end();
  const std::set<int> starts(rows.layers.begin(), rows.layers.end());
  const RankRows tokens = rows_of(batch, tensor_ranks_);
  if (starts.size() == 1) {
    const at::Tensor from = rows.activations.defined() ? tokens.own(rows.activations) : at::Tensor();
    return run_frozen(*starts.begin(), end, from, batch);
  }
  at::Tensor activations = rows.activations.clone();
  for (auto start = starts.begin(); start != starts.end() && *start < end; ++start) {
    std::vector<std::int64_t> members;
    for (std::size_t i = 0; i < rows.layers.size(); ++i) {
      if (rows.layers[i] <= *start) members.push_back(static_cast<std::int64_t>(i));
    }
    const MicroBatch selected = batch.select(members);
    if (selected.num_tokens() == 0) continue;  // all of them end before the slice
    const at::Tensor index = to_device(rows_of_samples(batch.lengths, members), activations.device());
    const RankRows joined = rows_of(selected, tensor_ranks_);
    const at::Tensor from = *start > 0 ? joined.own(activations.index_select(0, index)) : at::Tensor();
    const int next = std::next(start) == starts.end() ? end : std::min(end, *std::next(start));
    activations.index_copy_(0, index, joined.gathered(run_frozen(*start, next, from, selected)));
  }
  return tokens.are_split() ? tokens.own(activations).clone() : activations;
}

at::Tensor StageForward::run(int begin, int end, at::Tensor activation, const MicroBatch& batch) const {
  for (int layer = begin; layer < end; ++layer)
    activation = forward_layer(config_, layer, layers_.at(layer).parameters, activation, batch, tensor_ranks_);
  return activation;
}

/// Runs frozen layers. Activations enter and leave in the run's dtype, which represents all values of the frozen
/// layers' dtype.
at::Tensor StageForward::run_frozen(int begin, int end, at::Tensor activation, const MicroBatch& batch) const {
  if (begin >= end) return activation;
  if (activation.defined()) activation = activation.to(types_.frozen);
  return run(begin, end, std::move(activation), batch).to(types_.computed);
}

/// Returns the batch for frozen layers: in evaluation mode and in their dtype.
MicroBatch StageForward::as_frozen(const MicroBatch& trained) const {
  MicroBatch batch = trained.without_dropout();
  batch.type = types_.frozen;
  return batch;
}

}  // namespace frostpipe
