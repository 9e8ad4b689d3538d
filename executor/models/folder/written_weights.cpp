#include "executor/models/folder/written_weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "base/files.h"
#include "executor/device/memory_meter.h"

namespace frostpipe {
namespace {

constexpr const char* kIndexName = "model.safetensors.index.json";

struct TypeNames {
  SavedDType dtype;
  const char *word, *in_file;
  at::ScalarType type;
};

constexpr std::array<TypeNames, 3> kTypes{{{SavedDType::kFloat32, "float32", "F32", at::kFloat},
                                           {SavedDType::kBFloat16, "bfloat16", "BF16", at::kBFloat16},
                                           {SavedDType::kFloat16, "float16", "F16", at::kHalf}}};

const TypeNames& names_of(SavedDType dtype) { return kTypes[static_cast<std::size_t>(dtype)]; }

/// Returns one of the tensors that are stacked in a parameter, in the file's layout.
at::Tensor piece_of(const at::Tensor& weights, const ParameterSpec& spec, std::int64_t offset, std::size_t piece) {
  const std::int64_t count = spec.count() / static_cast<std::int64_t>(spec.names.size());
  const at::Tensor values = weights.narrow(0, offset + static_cast<std::int64_t>(piece) * count, count);
  if (spec.stored_heads > 0) return values.view({3, spec.stored_heads, -1}).transpose(0, 1).contiguous();
  if (!spec.transposed) return values;
  return values.view({spec.shape[0], spec.shape[1]}).t().contiguous();
}

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

/// Distributes tensors over files, in order.
class FilesOfWeights {
 public:
  FilesOfWeights(const std::filesystem::path& folder, const SavedWeights& saved) : folder_(folder), saved_(saved) {}

  void plan(const std::string& name, const std::vector<std::int64_t>& shape) {
    const Bytes bytes = count_of(shape) * static_cast<Bytes>(c10::elementSize(names_of(saved_.dtype).type));
    if (parts_.empty() || (bytes_ + bytes > saved_.max_bytes_of_file && !parts_.back().empty())) {
      parts_.emplace_back();
      bytes_ = 0;
    }
    bytes_ += bytes;
    total_ += bytes;
    parts_.back().push_back({name, names_of(saved_.dtype).in_file, shape});
  }
  /// Must be called in the order of plan().
  void write(const at::Tensor& values) {
    if (part_ == 0 && !writer_ && parts_.size() > 1) remove_other_files();  // model.safetensors would take precedence
    if (!writer_) writer_ = std::make_unique<SafetensorsWriter>(folder_ / file_name(part_), parts_[part_]);
    const at::Tensor converted = values.to(names_of(saved_.dtype).type).contiguous();
    writer_->write({static_cast<const std::byte*>(converted.const_data_ptr()), converted.nbytes()});
    if (++written_ < parts_[part_].size()) return;
    writer_->finish();
    writer_.reset();
    written_ = 0;
    ++part_;
  }
  void finish() const {
    if (parts_.size() == 1) return remove_other_files();
    nlohmann::ordered_json index;
    index["metadata"]["total_size"] = total_;
    for (std::size_t part = 0; part < parts_.size(); ++part)
      for (const SafetensorsWriter::Entry& entry : parts_[part]) index["weight_map"][entry.name] = file_name(part);
    write_file_atomically(folder_ / kIndexName, index.dump(2) + "\n");
  }

 private:
  /// Removes weights that an earlier run has left here in other files, and the index, which finish() writes.
  void remove_other_files() const {
    std::set<std::string> own;
    for (std::size_t part = 0; part < parts_.size(); ++part) own.insert(file_name(part));
    std::vector<std::filesystem::path> others;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      const bool is_weights = name == "model.safetensors" || name == kIndexName ||
                              (name.starts_with("model-") && name.ends_with(".safetensors"));
      if (is_weights && !own.contains(name)) others.push_back(entry.path());
    }
    for (const std::filesystem::path& other : others) std::filesystem::remove(other);
  }
  std::string file_name(std::size_t part) const {
    return parts_.size() == 1 ? "model.safetensors"
                              : fmt::format("model-{:05}-of-{:05}.safetensors", part + 1, parts_.size());
  }

  std::filesystem::path folder_;
  SavedWeights saved_;
  std::vector<std::vector<SafetensorsWriter::Entry>> parts_;
  Bytes bytes_ = 0, total_ = 0;
  std::size_t part_ = 0, written_ = 0;
  std::unique_ptr<SafetensorsWriter> writer_;
};

}  // namespace

std::string_view to_string(SavedDType dtype) { return names_of(dtype).word; }

std::optional<SavedDType> find_saved_dtype(std::string_view word) {
  for (const TypeNames& names : kTypes)
    if (word == names.word) return names.dtype;
  return std::nullopt;
}

std::vector<std::int64_t> stored_shape(const ParameterSpec& spec) {
  if (!spec.stored_shape.empty()) return spec.stored_shape;
  std::vector<std::int64_t> shape = spec.shape;
  shape[0] = spec.stored_rows > 0 ? spec.stored_rows : shape[0] / static_cast<std::int64_t>(spec.names.size());
  if (spec.transposed) std::swap(shape[0], shape[1]);
  return shape;
}

void write_weights(const TransformerConfig& config, bool embeddings_are_tied,
                   const std::function<at::Tensor(int layer)>& weights_of, const std::filesystem::path& target,
                   const SavedWeights& saved) {
  const at::NoGradGuard no_grad;
  const UncountedMemory host;
  const auto is_written = [&](const ParameterSpec& spec) {
    return !(embeddings_are_tied && spec.role == Role::classes);
  };
  FilesOfWeights files(target, saved);
  for (int layer = 0; layer < num_layers(config); ++layer)
    for (const ParameterSpec& spec : parameters_of(config, layer))
      for (const std::string& name : spec.names)
        if (is_written(spec) && spec.stored_begin == 0) files.plan(name, stored_shape(spec));
  for (int layer = 0; layer < num_layers(config); ++layer) {
    const at::Tensor weights = weights_of(layer);
    std::int64_t offset = 0;
    std::vector<at::Tensor> rows;  // rows of a tensor that several parameters form
    for (const ParameterSpec& spec : parameters_of(config, layer)) {
      for (std::size_t i = 0; i < spec.names.size() && is_written(spec); ++i) {
        const at::Tensor piece = piece_of(weights, spec, offset, i);
        if (spec.stored_rows == 0) {
          files.write(piece);
          continue;
        }
        rows.push_back(piece);
        if (spec.stored_begin + spec.shape[0] == spec.stored_rows) files.write(at::cat(std::exchange(rows, {})));
      }
      offset += spec.count();
    }
  }
  files.finish();
}

}  // namespace frostpipe
