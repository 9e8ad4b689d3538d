#include "operators/training/net_snapshot.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

namespace frostpipe {
namespace {

/// A tensor of a layer and its name in files.
struct LayerTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  at::Tensor& values;
};

std::vector<LayerTensor> tensors_of(const NetLayer& layer, WholeLayer& whole) {
  if (is_pooling(layer)) return {};
  const auto named = [&](const char* what) { return layer.name + what; };
  const std::int64_t weights = num_weights(layer), channels = layer.out_channels;
  std::vector<LayerTensor> tensors = {{named(".weights"), {weights}, whole.state.weights},
                                      {named(".momentum"), {weights}, whole.momentum.weights}};
  if (!layer.batch_norm) return tensors;
  tensors.push_back({named(".norm"), {2, channels}, whole.state.norm});
  tensors.push_back({named(".norm_momentum"), {2, channels}, whole.momentum.norm});
  tensors.push_back({named(".running_mean"), {channels}, whole.state.running_mean});
  tensors.push_back({named(".running_variance"), {channels}, whole.state.running_variance});
  return tensors;
}

std::string num_batches_name(const NetLayer& layer) { return layer.name + ".num_batches"; }

std::vector<SafetensorsWriter::Entry> entries_of(const NetShape& net) {
  std::vector<SafetensorsWriter::Entry> entries;
  WholeLayer none;
  for (const NetLayer& layer : net.layers) {
    for (const LayerTensor& tensor : tensors_of(layer, none)) entries.push_back({tensor.name, "F32", tensor.shape});
    if (layer.batch_norm) entries.push_back({num_batches_name(layer), "I64", {}});
  }
  return entries;
}

}  // namespace

NetStateWriter::NetStateWriter(const std::filesystem::path& path, const NetShape& net)
    : path_(path), net_(net), writer_(path, entries_of(net)) {}

void NetStateWriter::write(int layer, WholeLayer whole) {
  const NetLayer& shape = net_.layers[layer];
  for (const LayerTensor& tensor : tensors_of(shape, whole)) {
    const at::Tensor values = tensor.values.to(at::kFloat).contiguous();
    writer_.write({static_cast<const std::byte*>(values.data_ptr()), values.nbytes()});
  }
  if (shape.batch_norm) writer_.write(std::as_bytes(std::span(&whole.state.num_batches, 1)));
}

CheckpointFile NetStateWriter::finish() {
  writer_.finish();
  return {path_.filename(), writer_.bytes(), fmt::format("{:016x}", writer_.hash())};
}

WholeLayer stored_layer(const SafetensorsFile& file, const NetShape& net, int layer) {
  const NetLayer& shape = net.layers[layer];
  WholeLayer whole;
  for (const LayerTensor& tensor : tensors_of(shape, whole)) {
    tensor.values = at::empty(tensor.shape, at::kFloat);
    const StoredTensor& stored = file.tensor(tensor.name, tensor.shape);
    std::memcpy(tensor.values.data_ptr(), stored.data.data(), stored.data.size());
  }
  if (shape.batch_norm)
    std::memcpy(&whole.state.num_batches, file.tensor(num_batches_name(shape), {}).data.data(), sizeof(std::int64_t));
  return whole;
}

}  // namespace frostpipe
