#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "executor/checkpoint/safetensors.h"
#include "profiles/transformer/parameters.h"

namespace frostpipe {

/// The dtypes in which weights can be written.
enum class SavedDType { kFloat32, kBFloat16, kFloat16 };
/// Returns names as in config.json, such as "float32".
std::string_view to_string(SavedDType dtype);
/// Returns nothing for any other word.
std::optional<SavedDType> find_saved_dtype(std::string_view word);

struct SavedWeights {
  SavedDType dtype = SavedDType::kFloat32;
  Bytes max_bytes_of_file = kMaxBytesOfWeightsFile;  // larger models are written to several files with an index
};

/// Returns the shape in the file of one of the tensors that are stacked in `spec`.
std::vector<std::int64_t> stored_shape(const ParameterSpec& spec);

/// Writes model.safetensors, or model-00001-of-00002.safetensors and so on with model.safetensors.index.json, as
/// transformers does. `weights_of` returns a layer's parameters, [n] float32 on the host; it is called once per layer,
/// in order, and one layer is held at a time. With `embeddings_are_tied` the head's matrix is not written.
void write_weights(const TransformerConfig& config, bool embeddings_are_tied,
                   const std::function<at::Tensor(int layer)>& weights_of, const std::filesystem::path& target,
                   const SavedWeights& saved);

}  // namespace frostpipe
