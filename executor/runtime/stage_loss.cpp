#include "executor/runtime/stage_loss.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

namespace frostpipe {

void StageLoss::begin(bool in_place, const at::Device& device) {
  in_place_ = in_place;
  if (!in_place)
    sum_ = at::Tensor();
  else if (sum_.defined())
    sum_.zero_();
  else
    sum_ = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device));
}

void StageLoss::add(const at::Tensor& loss) {
  const at::Tensor precise = loss.to(at::kDouble);
  if (in_place_)
    sum_.add_(precise);
  else
    sum_ = sum_.defined() ? sum_ + precise : precise;
}

}  // namespace frostpipe
