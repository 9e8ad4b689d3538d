#include "executor/optimizer/parameter_update.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <optional>
#include <span>

#include "base/error.h"

namespace frostpipe {
namespace {

/// Parts of buffers for one call of a multi-tensor kernel.
struct FlatTensors {
  std::vector<at::Tensor> weights, gradients, first_moments, second_moments;

  void add(const UpdatedValues& values, std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    weights.push_back(values.weights.narrow(0, begin, end - begin));
    gradients.push_back(values.gradients.narrow(0, begin, end - begin));
    first_moments.push_back(values.moments.first.narrow(0, begin, end - begin));
    second_moments.push_back(values.moments.second.narrow(0, begin, end - begin));
  }
};

void adamw_step(const FlatTensors& tensors, const UpdateRule& rule, double decay,
                const std::optional<at::Tensor>& divisor) {
  if (tensors.weights.empty()) return;
  const bool is_on_device = rule.rate_and_step.defined();
  const at::Tensor step =
      is_on_device ? rule.rate_and_step[1]
                   : at::full({}, static_cast<double>(rule.step), tensors.weights.front().options().dtype(at::kFloat));
  const std::vector<at::Tensor> steps(tensors.weights.size(), step);
  const auto step_with = [&](const auto& learning_rate) {
    at::_fused_adamw_(tensors.weights, tensors.gradients, tensors.first_moments, tensors.second_moments, {}, steps,
                      learning_rate, rule.beta1, rule.beta2, decay, rule.epsilon, /*amsgrad=*/false,
                      /*maximize=*/false, divisor, /*found_inf=*/{});
  };
  is_on_device ? step_with(rule.rate_and_step[0]) : step_with(rule.learning_rate);
}

/// Performs a step of AdamW. The kernel can divide gradients, but takes the divisor in single precision only.
void adamw_step(const std::vector<UpdatedValues>& values, const UpdateRule& rule, std::optional<at::Tensor> divisor) {
  if (divisor && divisor->scalar_type() != at::kFloat) {
    for (const UpdatedValues& one : values) one.gradients.div_(*divisor);
    divisor.reset();
  }
  FlatTensors decayed, others;
  for (const UpdatedValues& one : values) {
    decayed.add(one, 0, one.num_decayed);
    others.add(one, one.num_decayed, one.weights.numel());
  }
  adamw_step(decayed, rule, rule.weight_decay, divisor);
  adamw_step(others, rule, 0, divisor);
}

void momentum_step(const UpdatedValues& values, const UpdateRule& rule, const std::optional<at::Tensor>& divisor) {
  const auto& [weights, gradients, moments, num_decayed] = values;
  if (divisor) gradients.div_(*divisor);
  moments.first.mul_(rule.momentum).add_(gradients);
  if (rule.weight_decay > 0)
    moments.first.narrow(0, 0, num_decayed).add_(weights.narrow(0, 0, num_decayed), rule.weight_decay);
  weights.add_(moments.first, -rule.learning_rate);
}

void sgd_step(const UpdatedValues& values, const UpdateRule& rule, const std::optional<at::Tensor>& divisor) {
  if (divisor)
    values.weights.addcdiv_(values.gradients, *divisor, -rule.learning_rate);
  else
    values.weights.add_(values.gradients, -rule.learning_rate);
}

}  // namespace

Moments make_moments(const at::Tensor& values, int num_moments) {
  Moments moments;
  for (const auto& [name, moment] : std::span(kMoments).first(num_moments)) moments.*moment = at::zeros_like(values);
  return moments;
}

std::vector<at::Tensor> defined_tensors(const Moments& moments) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, moment] : kMoments)
    if ((moments.*moment).defined()) tensors.push_back(moments.*moment);
  return tensors;
}

void update(const std::vector<UpdatedValues>& values, const UpdateRule& rule) {
  const at::NoGradGuard no_grad;
  FROSTPIPE_CHECK(rule.optimizer == Optimizer::kAdamW || !rule.rate_and_step.defined(),
                  "SGD reads its learning rate on the host");
  std::optional<at::Tensor> divisor;
  const bool is_one = rule.gradient_divisor.defined() && rule.gradient_divisor.is_cpu() &&
                      rule.gradient_divisor.item<double>() == 1;  // on the CPU the value is known without a
                                                                  // synchronization
  if (rule.gradient_divisor.defined() && !is_one) divisor = rule.gradient_divisor;
  switch (rule.optimizer) {
    case Optimizer::kAdamW:
      return adamw_step(values, rule, divisor);
    case Optimizer::kSgd:
      for (const UpdatedValues& one : values)
        rule.momentum > 0 ? momentum_step(one, rule, divisor) : sgd_step(one, rule, divisor);
      return;
  }
}

}  // namespace frostpipe
