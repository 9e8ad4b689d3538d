#include "executor/models/layer_state.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "executor/device/memory_meter.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

/// Views of `flat`, one per spec, in order.
std::vector<at::Tensor> views(const at::Tensor& flat, const std::vector<ParameterSpec>& specs) {
  std::vector<at::Tensor> result;
  std::int64_t offset = 0;
  for (const ParameterSpec& spec : specs) {
    result.push_back(flat.narrow(0, offset, spec.count()).view(spec.shape).detach());
    offset += spec.count();
  }
  return result;
}

/// Makes `parameters`, for projections that multiply in `type`; `rounded` is not filled.
void make_parameters(LayerState& state, const std::vector<ParameterSpec>& specs, at::ScalarType type) {
  std::int64_t num_projecting = 0;
  for (const ParameterSpec& spec : specs) {
    if (spec.projects) num_projecting += spec.count();
  }
  state.parameters.clear();
  state.rounded = at::Tensor();
  if (type != state.weights.scalar_type() && num_projecting > 0)
    state.rounded = at::empty({num_projecting}, state.weights.options().dtype(type));
  for (const at::Tensor& weights : views(state.weights, specs))
    state.parameters.push_back({.value = weights, .gradient = {}});
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (!state.rounded.defined() || !specs[i].projects) continue;
    state.parameters[i].value = state.rounded.narrow(0, offset, specs[i].count()).view(specs[i].shape).detach();
    offset += specs[i].count();
  }
}

/// Views of another version's buffers, in the shapes and types of the layer's parameters.
std::vector<Parameter> parameters_of_version(const LayerState& state, const WeightVersion& version) {
  std::vector<Parameter> parameters;
  std::int64_t offset = 0, rounded_offset = 0;
  for (const Parameter& parameter : state.parameters) {
    const std::int64_t count = parameter.value.numel();
    const bool is_rounded = state.rounded.defined() && parameter.value.scalar_type() == state.rounded.scalar_type();
    const at::Tensor& flat = is_rounded ? version.rounded : version.weights;
    at::Tensor value =
        flat.narrow(0, is_rounded ? rounded_offset : offset, count).view(parameter.value.sizes()).detach();
    value.requires_grad_(true);
    if (!is_rounded) value.mutable_grad() = parameter.gradient;
    parameters.push_back({.value = std::move(value), .gradient = parameter.gradient});
    offset += count;
    rounded_offset += is_rounded ? count : 0;
  }
  return parameters;
}

/// Makes the newest weights the older ones too, in the buffers that until now held those before them.
void rotate_versions(LayerState& state) {
  WeightVersion& older = state.older;
  older.weights.copy_(state.weights);
  std::swap(state.weights, older.weights);
  std::swap(state.rounded, older.rounded);
  std::swap(state.parameters, older.parameters);
}

void round_version(const at::Tensor& weights, const at::Tensor& rounded, const std::vector<Parameter>& parameters) {
  if (!rounded.defined()) return;
  const at::NoGradGuard no_grad;
  std::int64_t kept = 0, to = 0;
  for (const Parameter& parameter : parameters) {
    const std::int64_t count = parameter.value.numel();
    if (parameter.value.scalar_type() == rounded.scalar_type()) {
      rounded.narrow(0, to, count).copy_(weights.narrow(0, kept, count));
      to += count;
    }
    kept += count;
  }
}

at::Tensor part(const at::Tensor& flat, std::int64_t begin, std::int64_t end) {
  return flat.defined() ? flat.narrow(0, begin, end - begin) : flat;
}

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return at::kFloat;
    case DType::kFloat64:
      return at::kDouble;
    case DType::kBFloat16:
      return at::kBFloat16;
  }
  FROSTPIPE_CHECK(false, "all types of values have one of LibTorch's");
}

}  // namespace

LayerTypes layer_types_of(DType dtype, std::optional<DType> frozen_dtype) {
  const at::ScalarType computed = scalar_type(dtype);
  return {.kept = dtype == DType::kBFloat16 ? at::kFloat : computed,
          .computed = computed,
          .frozen = frozen_dtype ? scalar_type(*frozen_dtype) : computed};
}

LayerState make_layer_state(const std::vector<ParameterSpec>& specs, const LayerTypes& types, const at::Device& device,
                            bool trains, int num_moments) {
  const at::TensorOptions options = at::TensorOptions().dtype(types.kept).device(device);
  LayerState state;
  std::int64_t count = 0;
  for (const ParameterSpec& spec : specs) {
    count += spec.count();
    if (spec.matrix) state.num_decayed += spec.count();
  }
  state.weights = at::empty({count}, options);
  make_parameters(state, specs, types.computed);
  if (!trains) return state;
  state.gradients = at::zeros({count}, options);
  if (num_moments > 0) {
    state.first_moment = at::zeros({count}, options);
    state.second_moment = at::zeros({count}, options);
  }
  const std::vector<at::Tensor> gradients = views(state.gradients, specs);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    Parameter& parameter = state.parameters[i];
    parameter.gradient = gradients[i];
    parameter.value.requires_grad_(true);
    if (parameter.value.scalar_type() == types.kept) parameter.value.mutable_grad() = gradients[i];
  }
  return state;
}

void compute_in(LayerState& state, const std::vector<ParameterSpec>& specs, at::ScalarType type) {
  FROSTPIPE_CHECK(!state.trains(), "only frozen layers change their type");
  make_parameters(state, specs, type);
  round_weights(state);
}

void keep_older_weights(LayerState& state) {
  FROSTPIPE_CHECK(state.trains(), "only what trains has two versions");
  state.older.weights = state.weights.clone();
  if (state.rounded.defined()) state.older.rounded = state.rounded.clone();
  state.older.parameters = parameters_of_version(state, state.older);
}

void round_weights(LayerState& state) {
  round_version(state.weights, state.rounded, state.parameters);
  round_version(state.older.weights, state.older.rounded, state.older.parameters);
}

std::vector<at::Tensor> kept_parameters(const LayerState& state, const std::vector<ParameterSpec>& specs) {
  return views(state.weights, specs);
}

OffloadedMoments freeze(LayerState& state) {
  OffloadedMoments offloaded;
  if (state.first_moment.defined()) {
    const UncountedMemory outside_the_device;
    offloaded = {state.first_moment.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true),
                 state.second_moment.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true),
                 state.weights.detach().to(at::kCPU, /*non_blocking=*/false, /*copy=*/true)};
  }
  for (Parameter& parameter : state.parameters) {
    parameter.value.requires_grad_(false);
    parameter.value.mutable_grad() = at::Tensor();
    parameter.gradient = at::Tensor();
  }
  state.gradients = state.first_moment = state.second_moment = at::Tensor();
  state.older = {};
  return offloaded;
}

void update(LayerState& state, const UpdateRule& rule) {
  FROSTPIPE_CHECK(state.trains(), "only trainable layers are updated");
  const at::NoGradGuard no_grad;
  if (state.older.weights.defined()) rotate_versions(state);
  if (rule.optimizer == Optimizer::kSgd) {
    state.weights.add_(state.gradients, -rule.learning_rate * rule.gradient_scale);
  } else {
    const std::int64_t count = state.weights.numel();
    const at::Tensor step = at::full({}, static_cast<double>(rule.step), state.weights.options().dtype(at::kFloat));
    // The kernel divides the gradients by this on its way, but knows it in single precision only.
    std::optional<at::Tensor> scale;
    if (rule.gradient_scale != 1 && state.weights.scalar_type() == at::kFloat) {
      scale = at::full({}, 1 / rule.gradient_scale, state.weights.options());
    } else if (rule.gradient_scale != 1) {
      state.gradients.mul_(rule.gradient_scale);
    }
    const auto step_range = [&](std::int64_t begin, std::int64_t end, double decay) {
      if (begin == end) return;
      at::_fused_adamw_({part(state.weights, begin, end)}, {part(state.gradients, begin, end)},
                        {part(state.first_moment, begin, end)}, {part(state.second_moment, begin, end)}, {}, {step},
                        rule.learning_rate, rule.beta1, rule.beta2, decay, rule.epsilon, /*amsgrad=*/false,
                        /*maximize=*/false, scale, /*found_inf=*/{});
    };
    step_range(0, state.num_decayed, rule.weight_decay);
    step_range(state.num_decayed, count, 0);
  }
  round_version(state.weights, state.rounded, state.parameters);
}

TouchedGradients::TouchedGradients(const LayerState& state, at::Tensor rows) : rows_(std::move(rows)) {
  if (!rows_.defined()) {
    tensors_ = {state.gradients};
    return;
  }
  table_ = state.parameters.front().gradient;
  const std::int64_t of_table = table_.numel();
  tensors_ = {table_.index_select(0, rows_).view(-1),
              state.gradients.narrow(0, of_table, state.gradients.numel() - of_table)};
}

void TouchedGradients::put_back() const {
  if (rows_.defined()) table_.index_copy_(0, rows_, tensors_.front().view({rows_.numel(), table_.size(1)}));
}

void TouchedGradients::clear() const {
  if (rows_.defined()) table_.index_fill_(0, rows_, 0);
  tensors_.back().zero_();
}

at::Tensor TouchedGradients::square_sum() const {
  at::Tensor sum;
  for (const at::Tensor& tensor : tensors_) {
    const at::Tensor own = at::dot(tensor, tensor).to(at::kDouble);
    sum = sum.defined() ? sum + own : own;
  }
  return sum;
}

}  // namespace frostpipe
