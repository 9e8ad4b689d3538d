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

/// The conditions of a measurement. `tokens` is the mean per sample of the micro-batch, which is packed without
/// padding, so its tokens determine its cost. For a token slice, `context_tokens` is the number of tokens before it in
/// each sample.
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
/// Returns "layer 2 on cpu in float32, context 0, tensor-parallel size 1".
std::string describe(const MeasurementKey& key);

/// A backward in two pieces. I computes the gradients of the input and of the small parameters (biases, norms); W
/// computes the gradients of the weight matrices later.
struct SplitBackward {
  Nanoseconds input_ns = 0;   // I
  Nanoseconds weight_ns = 0;  // W
  /// The bytes kept from I until W: inputs and output gradients of the layer's matrices, including the layer's input if
  /// a matrix reads it.
  Bytes kept_bytes = 0;
  bool operator==(const SplitBackward&) const = default;
};

/// Time and memory of one layer for one micro-batch.
///
/// weight_gradient_ns is the backward of a layer whose input needs no gradient (the first trainable layer of a run),
/// and input_gradient_ns the additional time of a full backward, so B = input_gradient_ns + weight_gradient_ns.
struct LayerCost {
  Nanoseconds forward_ns = 0;
  Nanoseconds input_gradient_ns = 0;
  Nanoseconds weight_gradient_ns = 0;
  /// The time of a forward in evaluation mode, which keeps nothing for a backward.
  Nanoseconds frozen_forward_ns = 0;
  Bytes output_activation_bytes = 0;
  /// The bytes kept from forward until backward, including the layer's own output but not its input (which the layer
  /// before keeps).
  Bytes saved_activation_bytes = 0;
  /// Largest extra live bytes at any moment inside forward or backward, beyond what is kept afterwards.
  Bytes workspace_bytes = 0;
  /// None if it was not measured: then no schedule that splits the backward is planned.
  std::optional<SplitBackward> split_backward = std::nullopt;
  bool operator==(const LayerCost&) const = default;
};

/// Returns the split backward of a trainable layer. Without input gradient (the run's first trainable layer) I is the
/// rest of that layer's backward, at least 0. Throws InvalidInput if the split backward was not measured.
SplitBackward split_backward_of(const LayerCost& cost, bool with_input_gradient);

/// Scales times and bytes to a part of the micro-batch, rounded up. `share` 1 changes nothing.
LayerCost share_of(LayerCost cost, double share);

/// Returns pointers to all times of `cost`.
std::vector<Nanoseconds*> times_in(LayerCost& cost);

struct Measurement {
  MeasurementKey key;
  LayerCost cost;
  bool operator==(const Measurement&) const = default;
};

/// The time of one layer per optimizer step, independent of the batch: clearing gradients, their norm, the update.
struct UpdateMeasurement {
  int layer = 0;
  std::string device_type = "cpu";
  DType dtype = DType::kFloat32;
  Optimizer optimizer = Optimizer::kAdamW;
  Nanoseconds update_ns = 0;
  bool operator==(const UpdateMeasurement&) const = default;
};

/// Describes the data with which the profile was measured, so that a planner knows the length of a run and of a sample.
struct Workload {
  std::string name;
  int num_samples = 0;
  /// Mean length of a sample. Measurements with this mean have it rounded in their key (11 for 11.4), and an entry of
  /// the activation cache is assumed to have it rounded up.
  double tokens = 0;
  /// Standard deviation of a sample's length; none = unknown.
  std::optional<double> tokens_deviation = std::nullopt;
  /// Length of the longest sample, including held-out ones: with another seed they are trained on.
  int longest_tokens = 0;
  /// Mini-batch size for which the profile was measured.
  int global_batch_size = 0;
  /// The options with which texts became samples (SampleOptions in executor/execute.h); none = unknown, or images.
  std::optional<int> max_tokens = std::nullopt;
  std::optional<int> window_overlap = std::nullopt;  // between windows of a question's context
  bool operator==(const Workload&) const = default;
};

/// Speed of a node's activation cache in host memory, as seen by each of its ranks while all use it: latency per entry
/// (one sample), and bandwidth for the stored bytes.
struct CacheSpeed {
  Link read;  // look up, copy, check
  Link write;
  bool operator==(const CacheSpeed&) const = default;
};

/// A model's layers as measured on a device.
struct Profile {
  Model model;
  /// Folder from which the weights were read; empty if the model has none (random weights).
  std::string model_path;
  std::string machine;  // for the user: processor, threads, how many ranks measured at the same time
  bool quick = false;   // measured with few sizes and repetitions, so predictions are rough
  /// Type in which frozen_forward_ns was measured: bfloat16. None = the measurement's own type.
  std::optional<DType> frozen_dtype = std::nullopt;
  std::optional<Workload> workload = std::nullopt;
  /// FLOP of the whole model's forward on one sample of the workload's mean tokens, rounded; none = unknown.
  std::optional<double> forward_flops = std::nullopt;
  /// In ascending order of keys, each key once: cost_of uses binary search. profile_from_json sorts them; any other
  /// code that fills a Profile must keep the order.
  std::vector<Measurement> measurements;
  std::vector<UpdateMeasurement> updates;
  /// None if it was not measured: then nothing is planned with a cache.
  std::optional<CacheSpeed> cache = std::nullopt;
  bool operator==(const Profile&) const = default;
};

/// Returns the cost for `key`: the measurement itself if there is one, else the bilinear interpolation in
/// (micro_batch_size, tokens) between the four measured neighbours of the same layer, device type, dtype, context,
/// tensor-parallel size and sequence parallelism, and linear between two contexts, as attention is. Grid lines are the
/// measured sizes, and the token counts measured for every size line in use. A micro_batch_size of 0 costs nothing.
/// Outside the grid, up to twice the largest and down to half the smallest measured value, it is linear through the two
/// nearest grid lines and at least 0. Farther out, or with fewer than two grid lines where two are needed, it throws
/// InvalidInput that names the key and the measured range; it never takes the nearest neighbour silently.
LayerCost cost_of(const Profile& profile, const MeasurementKey& key);

/// Returns the cost of a token slice, key.tokens of each sample after key.context_tokens. A slice shorter than half the
/// shortest measured one costs as much as that half. Returns none if slices were not measured.
std::optional<LayerCost> cost_of_slice(const Profile& profile, MeasurementKey key);

/// Returns frozen_forward_ns for an expected number `samples` of samples, which need not be whole, of `key`'s
/// micro-batch. The time is linear between whole numbers, and proportional below half the smallest measured micro-batch
/// (or below key's own if no other was measured). Fewer samples cost more than their share, as some work does not
/// depend on their number.
Nanoseconds expected_frozen_forward_ns(const Profile& profile, MeasurementKey key, double samples);

/// Returns the time of an optimizer step of the layer. Throws InvalidInput if it was not measured for this device type,
/// dtype and optimizer.
Nanoseconds update_cost_of(const Profile& profile, int layer, std::string_view device_type, DType dtype,
                           Optimizer optimizer);

/// Writes the envelope {"format": "frostpipe.profile", "version": 1, ...}; the version is 2 with sequence parallelism,
/// and 3 if layers share measurements.
std::string to_json(const Profile& profile);
/// Reads what to_json writes, at most 64 MiB, and checks every field. Ignores rows of unknown dtypes and optimizers.
/// Throws InvalidInput that names file, place, rule and value.
Profile profile_from_json(std::string_view json, std::string_view source);

}  // namespace frostpipe
