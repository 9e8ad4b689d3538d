#include "executor/models/layer_state.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>

#include <limits>
#include <utility>

#include "base/error.h"
#include "executor/device/memory_meter.h"
#include "executor/models/shards.h"

namespace frostpipe {
namespace {

/// The shape of a parameter, and whether its value is a view of the rounded matrices.
struct ParameterShape {
  std::vector<std::int64_t> sizes;
  bool is_rounded = false;
};

/// Returns an uninitialized buffer; undefined if nothing is to be rounded to `type`.
at::Tensor make_rounded(const at::Tensor& weights, const std::vector<ParameterSpec>& specs, at::ScalarType type) {
  std::int64_t num_projecting = 0;
  for (const ParameterSpec& spec : specs) num_projecting += spec.projects ? spec.count() : 0;
  if (type == weights.scalar_type() || num_projecting == 0) return {};
  return at::empty({num_projecting}, weights.options().dtype(type));
}

std::vector<ParameterShape> shapes_of(const std::vector<ParameterSpec>& specs, const at::Tensor& rounded) {
  std::vector<ParameterShape> shapes;
  for (const ParameterSpec& spec : specs)
    shapes.push_back({.sizes = spec.shape, .is_rounded = spec.projects && rounded.defined()});
  return shapes;
}

/// Returns the shapes of the layer's parameters.
std::vector<ParameterShape> shapes_of(const LayerState& state) {
  std::vector<ParameterShape> shapes;
  for (const Parameter& parameter : state.parameters) {
    const bool is_rounded = state.rounded.defined() && parameter.value.scalar_type() == state.rounded.scalar_type();
    shapes.push_back({.sizes = parameter.value.sizes().vec(), .is_rounded = is_rounded});
  }
  return shapes;
}

/// Makes views of one version's buffers. If `gradients` is defined, the parameters train, and their gradients are views
/// of it.
std::vector<Parameter> make_parameters(const at::Tensor& weights, const at::Tensor& rounded,
                                       const at::Tensor& gradients, const std::vector<ParameterShape>& shapes) {
  std::vector<Parameter> parameters;
  std::int64_t offset = 0, rounded_offset = 0;
  for (const auto& [sizes, is_rounded] : shapes) {
    const std::int64_t count = c10::multiply_integers(sizes);
    const auto view = [&, &sizes = sizes](const at::Tensor& flat, std::int64_t begin) {
      return flat.narrow(0, begin, count).view(sizes).detach();
    };
    Parameter parameter{.value = is_rounded ? view(rounded, rounded_offset) : view(weights, offset), .gradient = {}};
    if (gradients.defined()) {
      parameter.gradient = view(gradients, offset);
      parameter.value.requires_grad_(true);
      if (!is_rounded) parameter.value.mutable_grad() = parameter.gradient;
    }
    parameters.push_back(std::move(parameter));
    offset += count;
    rounded_offset += is_rounded ? count : 0;
  }
  return parameters;
}

/// Copies the newest weights to the older version, swapping the buffers of the two.
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

LayerState make_layer_state(const std::vector<ParameterSpec>& whole, const LayerTypes& types, const at::Device& device,
                            bool trains, int num_moments, const TensorSlice& slice) {
  const at::TensorOptions options = at::TensorOptions().dtype(types.kept).device(device);
  LayerState state;
  state.whole = whole;
  state.slice = slice;
  const std::vector<ParameterSpec> specs = cut(whole, slice);
  std::int64_t count = 0;
  for (const ParameterSpec& spec : specs) {
    if (spec.share != ParameterSpec::Share::whole) state.shared.push_back({count, spec.count()});
    count += spec.count();
    if (spec.matrix) state.num_decayed += spec.count();
  }
  state.weights = at::empty({count}, options);
  state.rounded = make_rounded(state.weights, specs, types.computed);
  if (trains) state.gradients = at::zeros({count}, options);
  if (trains) state.moments = make_moments(state.weights, num_moments);
  state.parameters = make_parameters(state.weights, state.rounded, state.gradients, shapes_of(specs, state.rounded));
  return state;
}

void compute_in(LayerState& state, at::ScalarType type) {
  FROSTPIPE_CHECK(!state.trains(), "only frozen layers change their type");
  const std::vector<ParameterSpec> specs = cut(state.whole, state.slice);
  state.rounded = make_rounded(state.weights, specs, type);
  state.parameters = make_parameters(state.weights, state.rounded, state.gradients, shapes_of(specs, state.rounded));
  round_weights(state);
}

void keep_older_weights(LayerState& state) {
  FROSTPIPE_CHECK(state.trains(), "only what trains has two versions");
  WeightVersion& older = state.older;
  older.weights = state.weights.clone();
  if (state.rounded.defined()) older.rounded = state.rounded.clone();
  older.parameters = make_parameters(older.weights, older.rounded, state.gradients, shapes_of(state));
}

void round_weights(LayerState& state) {
  round_version(state.weights, state.rounded, state.parameters);
  round_version(state.older.weights, state.older.rounded, state.older.parameters);
}

std::vector<at::Tensor> kept_parameters(const LayerState& state) {
  std::vector<at::Tensor> kept;
  for (const Parameter& parameter :
       make_parameters(state.weights, {}, {}, shapes_of(cut(state.whole, state.slice), {})))
    kept.push_back(parameter.value);
  return kept;
}

OffloadedMoments freeze(LayerState& state) {
  OffloadedMoments offloaded;
  if (!defined_tensors(state.moments).empty()) {
    const UncountedMemory outside_the_device;
    offloaded = {
        .moments = state.moments, .weights = state.weights.detach().cpu(), .whole = state.whole, .slice = state.slice};
    for (const auto& [name, moment] : kMoments) {
      at::Tensor& values = offloaded.moments.*moment;
      if (!values.defined()) continue;
      values = values.cpu();
      MemoryMeter::stop_counting(values.storage().data_ptr());
    }
  }
  for (Parameter& parameter : state.parameters) {
    parameter.value.requires_grad_(false);
    parameter.value.mutable_grad() = at::Tensor();
    parameter.gradient = at::Tensor();
  }
  state.gradients = at::Tensor();
  state.moments = {};
  state.older = {};
  return offloaded;
}

void update(const std::vector<LayerState*>& layers, const UpdateRule& rule) {
  const at::NoGradGuard no_grad;
  std::vector<UpdatedValues> values;
  for (LayerState* const state : layers) {
    FROSTPIPE_CHECK(state->trains(), "only trainable layers are updated");
    if (state->older.weights.defined()) rotate_versions(*state);
    values.push_back({.weights = state->weights,
                      .gradients = state->gradients,
                      .moments = state->moments,
                      .num_decayed = state->num_decayed});
  }
  update(values, rule);
  for (const LayerState* const state : layers) round_version(state->weights, state->rounded, state->parameters);
}

std::vector<FlatRange> whole_ranges(const LayerState& state) {
  std::vector<FlatRange> ranges;
  std::int64_t begin = 0;
  const auto add_up_to = [&](std::int64_t end) {
    if (end > begin) ranges.push_back({begin, end - begin});
  };
  for (const FlatRange& shared : state.shared) {
    add_up_to(shared.begin);
    begin = shared.begin + shared.count;
  }
  add_up_to(state.weights.numel());
  return ranges;
}

at::Tensor square_sum_of(const at::Tensor& values) {
  at::Tensor sum;
  for (const at::Tensor& piece : values.split(std::numeric_limits<int>::max())) {  // the most that a GPU's dot takes
    const at::Tensor of_piece = at::dot(piece, piece).to(at::kDouble);
    sum = sum.defined() ? sum + of_piece : of_piece;
  }
  return sum;
}

at::Tensor shared_square_sum(const LayerState& state) {
  at::Tensor sum = at::zeros({}, state.gradients.options().dtype(at::kDouble));
  for (const FlatRange& range : state.shared) {
    sum += square_sum_of(state.gradients.narrow(0, range.begin, range.count));
  }
  return sum;
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

void TouchedGradients::write_back() const {
  if (rows_.defined()) table_.index_copy_(0, rows_, tensors_.front().view({rows_.numel(), table_.size(1)}));
}

void TouchedGradients::clear() const {
  if (rows_.defined()) table_.index_fill_(0, rows_, 0);
  tensors_.back().zero_();
}

at::Tensor TouchedGradients::square_sum() const {
  at::Tensor sum;
  for (const at::Tensor& tensor : tensors_) {
    const at::Tensor own = square_sum_of(tensor);
    sum = sum.defined() ? sum + own : own;
  }
  return sum;
}

}  // namespace frostpipe
