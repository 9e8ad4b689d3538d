// The partition of a Transformer that a worker holds: stages of the executor, which evaluate().
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "executor/device/device.h"
#include "executor/models/folder/model_folder.h"
#include "executor/runtime/transformer_stage.h"
#include "executor/serving/worker/partition_compute.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

/// The requests of one batch, in its buffer.
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

Phase phase_of(const PartitionLoad& load) {
  Phase phase;
  phase.first_trainable_layer = load.layers.back() - 1;  // as evaluate has it
  for (std::size_t i = 0; i + 1 < load.layers.size(); ++i)
    phase.partition.push_back({load.layers[i], load.layers[i + 1]});
  phase.layout.pipeline_parallel_size = static_cast<int>(phase.partition.size());
  return phase;
}

class TransformerPartition final : public PartitionCompute {
 public:
  explicit TransformerPartition(const PartitionLoad& load)
      : folder_(open_model_folder(load.model)),
        model_(model_of(folder_.config, folder_.name)),
        types_(layer_types_of(load.dtype)),
        device_(make_device(load.device, load.device_index, load.threads)),
        samples_(folder_.config.task, folder_.config.image_size),
        factory_({.config = folder_.config,
                  .model = model_,
                  .data = samples_,
                  .types = types_,
                  .device = device_->torch_device()}) {
    const WeightFiles weights(folder_.path);
    const int end = load.layers.at(load.partition + 1);
    for (int layer = load.layers.at(load.partition); layer < end; ++layer) {
      layers_.emplace(layer, factory_.make_layer(layer, /*trains=*/false, TensorSlice{}));
      load_layer(folder_, weights, layer, /*seed=*/0, layers_.at(layer));
    }
    is_first_ = load.partition == 0;
    is_last_ = end == load.layers.back();
    stage_ = factory_.make_stage(phase_of(load), load.partition, layers_, /*ranks=*/{});
  }

  void compute(const BatchOrder& order, BatchBuffer& buffer) override {
    samples_.look_at(order, buffer);
    numbers_.resize(order.lengths.size());
    std::iota(numbers_.begin(), numbers_.end(), 0);
    const at::Tensor output = stage_->evaluate({.samples = numbers_, .lengths = order.lengths}, input(order, buffer))
                                  .to(at::kCPU)
                                  .contiguous();
    const std::span<std::byte> target = is_last_ ? std::as_writable_bytes(buffer.answers()) : buffer.activation();
    FROSTPIPE_CHECK(output.nbytes() <= target.size(), "a batch fits into its buffer");
    std::memmove(target.data(), output.data_ptr(), output.nbytes());
  }

 private:
  at::Tensor input(const BatchOrder& order, BatchBuffer& buffer) const {
    if (is_first_) return {};
    const std::int64_t tokens = std::accumulate(order.lengths.begin(), order.lengths.end(), std::int64_t{0});
    return at::from_blob(buffer.activation().data(), {tokens, folder_.config.hidden_size}, types_.computed)
        .to(device_->torch_device());
  }

  ModelFolder folder_;
  Model model_;
  LayerTypes types_;
  std::unique_ptr<ComputeDevice> device_;
  BatchSamples samples_;
  TransformerStageFactory factory_;
  std::map<int, LayerState> layers_;
  std::unique_ptr<StageCompute> stage_;
  std::vector<int> numbers_;
  bool is_first_ = false, is_last_ = false;
};

}  // namespace

std::unique_ptr<PartitionCompute> load_partition(const PartitionLoad& load) {
  return std::make_unique<TransformerPartition>(load);
}

}  // namespace frostpipe
