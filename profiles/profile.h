#pragma once
#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "profiles/cluster.h"
#include "profiles/dtype.h"
#include "profiles/model.h"
#include "profiles/optimizer.h"

namespace frostpipe {

/// What a measurement was taken for. `tokens`: per sample, on average over the micro-batch, which is packed: it costs
/// by its tokens, and nothing is padded. `context_tokens`: of each sample before them, where they are a token slice.
struct MeasurementKey {
  int layer = 0;
  std::string device_type = "cpu";
  DType dtype = DType::kFloat32;
  int micro_batch_size = 1;
  int tokens = 1;
  int context_tokens = 0;
  int tensor_parallel_size = 1;
  bool sequence_parallel = false;  // tensor ranks split activations between matrices by tokens
  auto operator<=>(const MeasurementKey&) const = default;
};
/// "layer 2 on cpu in float32, context 0, tensor-parallel size 1"
std::string describe(const MeasurementKey& key);

/// A backward in two pieces: I computes the input's gradient, and the small parameters' (biases, norms); W multiplies
/// the weights' gradients later.
struct SplitBackward {
  Nanoseconds input_ns = 0;   // I
  Nanoseconds weight_ns = 0;  // W
  /// Held from I until W: inputs and output gradients of the layer's matrices. The input of the layer counts here, if
  /// one of them reads it.
  Bytes kept_bytes = 0;
  bool operator==(const SplitBackward&) const = default;
};

/// Time and memory of one layer for one micro-batch.
///
/// weight_gradient_ns is the backward of a layer whose input needs no gradient (the first trainable layer of a run);
/// input_gradient_ns is what a full backward costs beyond that; so B = input_gradient_ns + weight_gradient_ns.
struct LayerCost {
  Nanoseconds forward_ns = 0;
  Nanoseconds input_gradient_ns = 0;
  Nanoseconds weight_gradient_ns = 0;
  /// Forward in evaluation mode that keeps nothing for a backward.
  Nanoseconds frozen_forward_ns = 0;
  Bytes output_activation_bytes = 0;
  /// Kept from forward until backward, the layer's own output included, its input not (the layer before keeps that).
  Bytes saved_activation_bytes = 0;
  /// Largest extra live bytes at any moment inside forward or backward, beyond what is kept afterwards.
  Bytes workspace_bytes = 0;
  /// None in profiles that did not measure it: no schedule that splits the backward is planned then.
  std::optional<SplitBackward> split_backward = std::nullopt;
  bool operator==(const LayerCost&) const = default;
};

/// The split backward of a layer that trains. I of the run's first trainable layer computes no input gradient: what is
/// left of that layer's backward is not less than 0. Throws InvalidInput where it was not measured.
SplitBackward split_backward_of(const LayerCost& cost, bool with_input_gradient);

/// Times and bytes of a part of the micro-batch, as its share; rounded up. `share` 1 changes nothing.
LayerCost share_of(LayerCost cost, double share);

/// Every time in it, to change.
std::vector<Nanoseconds*> times_in(LayerCost& cost);

struct Measurement {
  MeasurementKey key;
  LayerCost cost;
  bool operator==(const Measurement&) const = default;
};

/// Cost of one layer per optimizer step, whatever the batch: clearing gradients, their norm, the update.
struct UpdateMeasurement {
  int layer = 0;
  std::string device_type = "cpu";
  DType dtype = DType::kFloat32;
  Optimizer optimizer = Optimizer::kAdamW;
  Nanoseconds update_ns = 0;
  bool operator==(const UpdateMeasurement&) const = default;
};

/// The data that the profile was taken with; lets a planner know the length of a run and of a sample.
struct Workload {
  std::string name;
  int num_samples = 0;
  /// Mean length of a sample. What a profile has measured under it rounded, such as 11, was measured with the mean
  /// itself, such as 11.4; a cache's entries have it rounded up.
  double tokens = 0;
  /// Standard deviation of a sample's length; none: not known.
  std::optional<double> tokens_deviation = std::nullopt;
  /// Length of the longest sample, also of those that were held out: another seed trains on them.
  int longest_tokens = 0;
  /// Mini-batch size that the profile was taken for.
  int global_batch_size = 0;
  /// How samples were made of texts (SampleOptions in executor/execute.h); none: not known, or pictures.
  std::optional<int> max_tokens = std::nullopt;
  std::optional<int> window_overlap = std::nullopt;  // of contexts of questions
  bool operator==(const Workload&) const = default;
};

/// Speed of a node's activation cache in host memory, as each of its ranks sees it while all use it: latency per
/// entry (one sample), bandwidth for its bytes as stored.
struct CacheSpeed {
  Link read;  // find, copy, check
  Link write;
  bool operator==(const CacheSpeed&) const = default;
};

/// What is: a model's layers as measured on a device.
struct Profile {
  Model model;
  /// Folder that the weights were read from; empty for a model that has none (random weights).
  std::string model_path;
  std::string machine;  // for people: processor, threads, how many ranks measured at the same time
  bool quick = false;   // measured with few sizes and repetitions: predictions from it are rough
  /// That frozen_forward_ns was measured in: bfloat16. None: the measurement's own.
  std::optional<DType> frozen_dtype = std::nullopt;
  std::optional<Workload> workload = std::nullopt;
  /// In ascending order of keys, each key once: cost_of searches by bisection. profile_from_json sorts; who fills a
  /// Profile otherwise keeps the order.
  std::vector<Measurement> measurements;
  std::vector<UpdateMeasurement> updates;
  /// None in profiles that did not measure it: nothing is planned with a cache then.
  std::optional<CacheSpeed> cache = std::nullopt;
  bool operator==(const Profile&) const = default;
};

/// Cost for `key`: the measurement itself where there is one, else bilinear in (micro_batch_size, tokens) between the
/// four measured neighbours of the same layer, device type, dtype, context, tensor-parallel size and sequence
/// parallelism, and linear between two contexts, as attention is. A size that was measured is a grid line of its own;
/// token counts are those measured on every size line in use. micro_batch_size 0 costs nothing. Beyond the measured
/// grid: linear through the two nearest grid lines up to twice the largest and down to half the smallest measured
/// value, clamped at 0; farther out, or with fewer than two grid lines where one is needed, throws InvalidInput that
/// names the key and the measured range (never a silent nearest neighbour).
LayerCost cost_of(const Profile& profile, const MeasurementKey& key);

/// Of a token slice, key.tokens of each sample after key.context_tokens: cost_of, and where it is shorter than half the
/// shortest that was measured, the cost of one as long as that. None where slices were not measured.
std::optional<LayerCost> cost_of_slice(const Profile& profile, MeasurementKey key);

/// frozen_forward_ns of `samples` samples of `key`'s micro-batch, an expected number that need not be whole: linear
/// between whole numbers, and in proportion below half the smallest measured micro-batch (or below key's own, where
/// that alone was measured). Fewer samples cost more than their share, as some work does not depend on their number.
Nanoseconds expected_frozen_forward_ns(const Profile& profile, MeasurementKey key, double samples);

/// Throws InvalidInput when that layer, device type, dtype and optimizer were not measured.
Nanoseconds update_cost_of(const Profile& profile, int layer, std::string_view device_type, DType dtype,
                           Optimizer optimizer);

/// Envelope {"format": "frostpipe.profile", "version": 1, ...}, of version 2 with sequence parallelism; reading checks
/// every field and names file, place, rule, value.
std::string to_json(const Profile& profile);
Profile profile_from_json(std::string_view json, std::string_view source);

}  // namespace frostpipe
