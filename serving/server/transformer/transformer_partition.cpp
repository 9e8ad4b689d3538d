// This file implements the partition of a Transformer that a worker holds, as evaluation stages of the executor. Shared
// layers form one stage, and the later layers of each head another.
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "executor/device/device.h"
#include "executor/models/folder/model_folder.h"
#include "executor/runtime/transformer_stage.h"
#include "serving/server/worker/partition_compute.h"

namespace frostpipe {
namespace {

/// The requests of a batch, read from its buffer.
class BatchSamples final : public Samples {
 public:
  explicit BatchSamples(Task task, std::int64_t image_size) : task_(task), image_size_(image_size) {}
  void look_at(const BatchOrder& order, BatchBuffer& buffer) {
    lengths_ = order.lengths;
    tokens_ = buffer.tokens();
    pixels_ = buffer.pixels();
  }

  int size() const override { return static_cast<int>(lengths_.size()); }
  int tokens(int sample) const override { return static_cast<int>(lengths_[sample]); }
  std::uint64_t key(int) const override { return 0; }
  std::vector<std::int64_t> distinct_tokens(std::span<const int>) const override { return {}; }
  std::uint64_t fingerprint() const override { return 0; }
  MicroBatch load(const MiniBatch&, std::span<const int>, at::ScalarType type, bool with_input) const override {
    MicroBatch batch{
        .lengths = lengths_, .input = {}, .token_types = {}, .labels = {}, .dropout_keys = {}, .type = type};
    if (task_ == Task::causal_language_modeling) batch.labels = ids();
    if (!with_input) return batch;
    batch.input = task_ == Task::image_classification ? pictures().to(type) : ids();
    return batch;
  }

 private:
  at::Tensor ids() const {
    const std::int64_t count = std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0});
    at::Tensor ids = at::empty({count}, at::kLong);
    std::copy_n(tokens_.begin(), count, ids.data_ptr<std::int64_t>());
    return ids;
  }
  at::Tensor pictures() const {
    return at::from_blob(const_cast<float*>(pixels_.data()), {size(), 3, image_size_, image_size_}, at::kFloat).clone();
  }

  Task task_;
  std::int64_t image_size_;
  std::vector<std::int64_t> lengths_;
  std::span<const std::int32_t> tokens_;
  std::span<const float> pixels_;
};

/// Returns the pipeline's partitions as stages; a partition in which the shared layers end becomes two stages.
Phase phase_of(const PartitionLoad& load) {
  std::set<int> bounds(load.layers.begin(), load.layers.end());
  bounds.insert(load.shared_layers);
  Phase phase;
  phase.first_trainable_layer = load.layers.back() - 1;  // for evaluation
  for (auto bound = bounds.begin(); std::next(bound) != bounds.end(); ++bound)
    phase.partition.push_back({*bound, *std::next(bound)});
  phase.layout.pipeline_parallel_size = static_cast<int>(phase.partition.size());
  return phase;
}

/// A range of a folder's layers, with their weights, as a stage.
class FolderLayers {
 public:
  FolderLayers(const std::string& folder, const PartitionLoad& load, LayerRange range, const Samples& samples,
               const at::Device& device)
      : folder_(open_model_folder(folder)),
        model_(model_of(folder_.config, folder_.name)),
        factory_({.config = folder_.config,
                  .model = model_,
                  .data = samples,
                  .types = layer_types_of(load.dtype),
                  .device = device}) {
    const WeightFiles weights(folder_.path);
    for (int layer = range.begin; layer < range.end; ++layer) {
      layers_.emplace(layer, factory_.make_layer(layer, /*trains=*/false, TensorSlice{}));
      load_layer(folder_, weights, layer, /*seed=*/0, layers_.at(layer));
    }
    const Phase phase = phase_of(load);
    const auto stage = std::ranges::find(phase.partition, range.begin, &LayerRange::begin) - phase.partition.begin();
    stage_ = factory_.make_stage(phase, static_cast<int>(stage), layers_, /*ranks=*/{});
  }
  FolderLayers(const FolderLayers&) = delete;
  FolderLayers& operator=(const FolderLayers&) = delete;

  at::Tensor evaluate(const MiniBatch& batch, at::Tensor input) { return stage_->evaluate(batch, std::move(input)); }

 private:
  ModelFolder folder_;
  Model model_;
  TransformerStageFactory factory_;
  std::map<int, LayerState> layers_;
  std::unique_ptr<StageCompute> stage_;
};

class TransformerPartition final : public PartitionCompute {
 public:
  explicit TransformerPartition(const PartitionLoad& load)
      : config_(open_model_folder(load.folders.front()).config),
        type_(layer_types_of(load.dtype).computed),
        device_(make_device(load.device, load.device_index, load.threads, /*is_alone=*/true)),
        samples_(config_.task, config_.image_size),
        shared_layers_(load.shared_layers),
        begin_(load.layers.at(load.partition)) {
    const int end = load.layers.at(load.partition + 1), split = std::clamp(shared_layers_, begin_, end);
    const auto layers_of = [&](const std::string& folder, LayerRange range) {
      return std::make_unique<FolderLayers>(folder, load, range, samples_, device_->torch_device());
    };
    if (begin_ < split) shared_ = layers_of(load.folders.front(), {begin_, split});
    if (split < end)
      for (const std::string& folder : load.folders) own_.push_back(layers_of(folder, {split, end}));
    is_last_ = end == load.layers.back();
  }

  void compute(const BatchOrder& order, BatchBuffer& buffer) override {
    samples_.look_at(order, buffer);
    numbers_.resize(order.lengths.size());
    std::iota(numbers_.begin(), numbers_.end(), 0);
    const MiniBatch batch{.samples = numbers_, .lengths = order.lengths};
    const bool is_behind_shared = begin_ > shared_layers_;
    at::Tensor shared;  // input of all heads' own layers
    if (!is_behind_shared) shared = activation(order, buffer, 0);
    if (shared_) shared = shared_->evaluate(batch, shared);
    if (own_.empty()) return put(shared, buffer.activation());
    // In reverse order, because the common input may still be in the buffer, in the place of head 0.
    for (int head = static_cast<int>(own_.size()) - 1; head >= 0; --head) {
      const at::Tensor input = is_behind_shared ? activation(order, buffer, head) : shared;
      const at::Tensor output = own_[head]->evaluate(batch, input);
      if (is_last_)
        put_answers(output, head, buffer.answers());
      else
        put(output, buffer.activation(head));
    }
  }

 private:
  /// Returns the activation from the previous partition; undefined for the first one.
  at::Tensor activation(const BatchOrder& order, BatchBuffer& buffer, int head) const {
    if (begin_ == 0) return {};
    const std::int64_t tokens = std::accumulate(order.lengths.begin(), order.lengths.end(), std::int64_t{0});
    return at::from_blob(buffer.activation(head).data(), {tokens, config_.hidden_size}, type_)
        .to(device_->torch_device());
  }

  static void put(const at::Tensor& activation, std::span<std::byte> target) {
    const at::Tensor output = activation.to(at::kCPU).contiguous();
    FROSTPIPE_CHECK(output.nbytes() <= target.size(), "a batch fits into its buffer");
    std::memmove(target.data(), output.data_ptr(), output.nbytes());
  }

  /// Writes a head's answers into `answers`, [requests, heads, size].
  void put_answers(const at::Tensor& output, int head, std::span<double> answers) const {
    const auto heads = static_cast<std::int64_t>(own_.size());
    FROSTPIPE_CHECK(output.numel() * heads <= static_cast<std::int64_t>(answers.size()), "answers fit into the buffer");
    at::from_blob(answers.data(), {output.size(0), heads, output.size(1)}, at::kDouble).select(1, head).copy_(output);
  }

  TransformerConfig config_;  // of the first head
  at::ScalarType type_;
  std::unique_ptr<ComputeDevice> device_;
  BatchSamples samples_;
  int shared_layers_, begin_;
  std::unique_ptr<FolderLayers> shared_;            // null if this partition has no shared layers
  std::vector<std::unique_ptr<FolderLayers>> own_;  // by head
  std::vector<int> numbers_;
  bool is_last_ = false;
};

}  // namespace

std::unique_ptr<PartitionCompute> load_partition(const PartitionLoad& load) {
  return std::make_unique<TransformerPartition>(load);
}

}  // namespace frostpipe
