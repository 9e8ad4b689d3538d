#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "profiles/optimizer.h"

// The optimizer of all layers: those of a pipeline (executor/models/layer_state.h) and those of a net
// (operators/executor/device_runner.h).

namespace frostpipe {

/// The state that an optimizer keeps of flat values between its steps: both moments for AdamW, the momentum as the
/// first moment for SGD with momentum, nothing for SGD. Moments that are not kept are undefined.
struct Moments {
  at::Tensor first, second;
};

/// A moment and the name of its tensor in a layer's file of a checkpoint.
struct NamedMoment {
  const char* name;
  at::Tensor Moments::*moment;
};
/// An optimizer keeps the first optimizer_moments() of these.
inline constexpr std::array kMoments{NamedMoment{"first_moment", &Moments::first},
                                     NamedMoment{"second_moment", &Moments::second}};

/// Returns the first `num_moments` moments as zeros in the shape of `values`; the others are undefined.
Moments make_moments(const at::Tensor& values, int num_moments);
/// Returns those of `moments` that are defined, in their order.
std::vector<at::Tensor> defined_tensors(const Moments& moments);

/// The rule of an optimizer's step: AdamW (Loshchilov and Hutter 2019), SGD, or SGD with momentum as torch.optim.SGD
/// does it:
///   first = momentum x first + gradient + weight_decay x weight;  weight -= learning_rate x first
/// SGD without momentum has no weight decay.
struct UpdateRule {
  Optimizer optimizer = Optimizer::kAdamW;
  double learning_rate = 1e-4;
  double momentum = 0;  // of SGD; if it is above 0, the values have a first moment
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;
  std::int64_t step = 1;  // 1 for the first update
  /// Divisor of the gradients, for clipping: one value on their device, of the weights' dtype; undefined: no division.
  at::Tensor gradient_divisor = {};
  /// learning_rate and step as [2] float32 on the device, in place of the numbers above, for updates that are captured
  /// once and replayed with other values; undefined: the numbers are used. For AdamW only.
  at::Tensor rate_and_step = {};
};

/// The values that a step updates: weights with their gradients and moments, all [n] and contiguous.
struct UpdatedValues {
  at::Tensor weights, gradients;
  Moments moments;
  std::int64_t num_decayed = 0;  // number of leading values with weight decay
};

/// Performs one step, in place, on values of one dtype and device. Gradients may be divided in place; they are not
/// cleared. Does not make the host wait.
void update(const std::vector<UpdatedValues>& values, const UpdateRule& rule);

}  // namespace frostpipe
