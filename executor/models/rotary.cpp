#include "executor/models/rotary.h"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <numbers>
#include <vector>

namespace frostpipe {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;

/// Scales frequencies as Grattafiori et al. 2024: those with wavelengths beyond the original training positions are
/// divided by the factor, those with short wavelengths are kept, and those in between are interpolated.
at::Tensor llama3_frequencies(const at::Tensor& frequencies, const RotaryScaling& scaling) {
  const double positions = static_cast<double>(scaling.original_positions),
               longest = positions / scaling.low_frequency_factor, shortest = positions / scaling.high_frequency_factor;
  const at::Tensor wave = 2 * std::numbers::pi / frequencies, slowed = frequencies / scaling.factor;
  const at::Tensor smooth = (positions / wave - scaling.low_frequency_factor) /
                            (scaling.high_frequency_factor - scaling.low_frequency_factor);
  const at::Tensor mixed = (1 - smooth) * slowed + smooth * frequencies;
  return at::where(wave > longest, slowed, at::where(wave < shortest, frequencies, mixed));
}

/// Scales frequencies as Peng et al. 2023: by a ramp over the pairs, which depends on their number of turns within the
/// original training positions.
at::Tensor yarn_frequencies(const at::Tensor& frequencies, const Rotary& rotary, std::int64_t size) {
  const RotaryScaling& scaling = rotary.scaling;
  const auto pair_that_turns = [&](double times) {
    return static_cast<double>(size) *
           std::log(static_cast<double>(scaling.original_positions) / (times * 2 * std::numbers::pi)) /
           (2 * std::log(rotary.theta));
  };
  double low = pair_that_turns(scaling.beta_fast), high = pair_that_turns(scaling.beta_slow);
  if (scaling.truncates) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(size - 1));
  if (low == high) high += 0.001;
  const at::Tensor pair = at::arange(size / 2, frequencies.options());
  const at::Tensor kept = 1 - ((pair - low) / (high - low)).clamp(0, 1);
  return frequencies / scaling.factor * (1 - kept) + frequencies * kept;
}

/// Cosines and sines of the angles at positions 0, 1, ...
struct Table {
  Rotary rotary;
  std::int64_t head_size;
  at::Device device;
  at::ScalarType type;
  at::Tensor cosine, sine;
};

Table table_of(const Rotary& rotary, std::int64_t head_size, std::int64_t places, const at::Device& device,
               at::ScalarType type) {
  const at::NoGradGuard no_grad;
  const Frequencies frequencies =
      frequencies_of(rotary, rotary.size(head_size), type == at::kDouble ? at::kDouble : at::kFloat);
  const at::Tensor angles =
      at::arange(places, frequencies.values.options()).unsqueeze(1) * frequencies.values.unsqueeze(0);
  // The table is copied only once, and therefore not by to_device(), whose copies belong to a pass (DeviceCopies).
  const auto kept = [&](const at::Tensor& values) { return (values * frequencies.factor).to(type).to(device); };
  return {rotary, head_size, device, type, kept(angles.cos()), kept(angles.sin())};
}

template <class T>
void rotate_rows(const at::Tensor& x, const RotaryAngles& angles, std::int64_t head_size, std::int64_t num_heads,
                 T direction) {
  const std::int64_t half = angles.cosine.size(1), row_size = x.stride(0);
  T* const values = x.mutable_data_ptr<T>();
  const T* const cosines = angles.cosine.const_data_ptr<T>();
  const T* const sines = angles.sine.const_data_ptr<T>();
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / (num_heads * head_size));
  at::parallel_for(0, x.size(0), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T *const cosine = cosines + row * half, *const sine = sines + row * half;
      for (std::int64_t head = 0; head < num_heads; ++head) {
        T *const first = values + row * row_size + head * head_size, *const second = first + half;
        for (std::int64_t i = 0; i < half; ++i) {
          const T a = first[i], b = second[i], s = direction * sine[i];
          first[i] = a * cosine[i] - b * s;
          second[i] = b * cosine[i] + a * s;
        }
      }
    }
  });
}

/// Changes x in place.
void rotate(const at::Tensor& x, const RotaryAngles& angles, std::int64_t head_size, std::int64_t num_heads,
            bool back) {
  const bool is_plain = x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble);
  if (is_plain && x.stride(1) == 1) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rotate_rows", [&] {
      rotate_rows<scalar_t>(x, angles, head_size, num_heads, back ? scalar_t(-1) : scalar_t(1));
    });
    return;
  }
  const std::int64_t half = angles.cosine.size(1);
  const at::Tensor heads = x.narrow(1, 0, num_heads * head_size).view({x.size(0), num_heads, head_size});
  const at::Tensor first = heads.narrow(2, 0, half), second = heads.narrow(2, half, half);
  const at::Tensor cosine = angles.cosine.unsqueeze(1),
                   sine = back ? -angles.sine.unsqueeze(1) : angles.sine.unsqueeze(1);
  const at::Tensor rotated_first = first * cosine - second * sine, rotated_second = second * cosine + first * sine;
  first.copy_(rotated_first);
  second.copy_(rotated_second);
}

struct Rotated : Function<Rotated> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cosine,
                            const at::Tensor& sine, std::int64_t head_size, std::int64_t num_heads) {
    rotate(x, {cosine, sine}, head_size, num_heads, /*back=*/false);
    context->mark_dirty({x});
    context->saved_data["cosine"] = cosine;
    context->saved_data["sine"] = sine;
    context->saved_data["head_size"] = head_size;
    context->saved_data["num_heads"] = num_heads;
    return x;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const at::Tensor gradient = gradients[0].contiguous().clone();
    rotate(gradient, {context->saved_data["cosine"].toTensor(), context->saved_data["sine"].toTensor()},
           context->saved_data["head_size"].toInt(), context->saved_data["num_heads"].toInt(), /*back=*/true);
    return {gradient, at::Tensor(), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

Frequencies frequencies_of(const Rotary& rotary, std::int64_t size, at::ScalarType type) {
  using Kind = RotaryScaling::Kind;
  const at::Tensor exponents = at::arange(0, size, 2, type) / static_cast<double>(size);
  const at::Tensor frequencies = 1.0 / at::pow(at::full({}, rotary.theta, at::TensorOptions().dtype(type)), exponents);
  switch (rotary.scaling.kind) {
    case Kind::linear:
      return {frequencies / rotary.scaling.factor};
    case Kind::llama3:
      return {llama3_frequencies(frequencies, rotary.scaling)};
    case Kind::yarn:
      return {yarn_frequencies(frequencies, rotary, size), rotary.scaling.attention_factor};
    default:  // dynamic scaling: samples are never longer than the positions at which it takes effect
      return {frequencies};
  }
}

RotaryAngles rotary_angles(const Rotary& rotary, std::int64_t head_size, const at::Tensor& places, std::int64_t longest,
                           at::ScalarType type) {
  constexpr std::int64_t kFirst = 2048;  // number of positions in the shortest table
  static std::mutex mutex;
  static std::vector<Table> tables;
  at::Tensor cosine, sine;
  {
    const std::lock_guard lock(mutex);
    auto table = std::ranges::find_if(tables, [&](const Table& one) {
      return one.rotary == rotary && one.head_size == head_size && one.device == places.device() && one.type == type &&
             one.cosine.size(0) >= longest;
    });
    if (table == tables.end()) {
      // Captured CUDA graphs may read a shorter table, so it stays. With powers of 2, all together have at most twice
      // the positions of the longest.
      const auto size = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(longest)));
      tables.push_back(table_of(rotary, head_size, std::max(kFirst, size), places.device(), type));
      table = std::prev(tables.end());
    }
    cosine = table->cosine;
    sine = table->sine;
  }
  return {cosine.index_select(0, places), sine.index_select(0, places)};
}

at::Tensor rotated(const at::Tensor& x, const RotaryAngles& angles, std::int64_t head_size, std::int64_t num_heads) {
  if (at::GradMode::is_enabled() && x.requires_grad())
    return Rotated::apply(x, angles.cosine, angles.sine, head_size, num_heads);
  rotate(x, angles, head_size, num_heads, /*back=*/false);
  return x;
}

}  // namespace frostpipe
