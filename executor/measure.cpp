#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>

#include "executor/dataset.h"
#include "executor/execute.h"
#include "executor/measure_cache.h"
#include "executor/model_folder.h"
#include "executor/models/task.h"
#include "executor/rank_session.h"
#include "profiles/error.h"
#include "profiles/link_fit.h"
#include "profiles/time_left.h"

namespace frostpipe {
namespace {

Nanoseconds now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

Nanoseconds median(std::vector<Nanoseconds> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// A time that is expected to occur: times of layers add up to an iteration's, and so do means (medians do not).
struct Mean {
  double sum_ns = 0;
  double count = 0;
  void add(Nanoseconds duration) {
    sum_ns += static_cast<double>(duration);
    ++count;
  }
  Nanoseconds value() const { return static_cast<Nanoseconds>(count > 0 ? sum_ns / count : 0); }
};

/// Layers of one kind have one shape and share their measurements: more samples for each.
struct KindSamples {
  Mean forward, backward, backward_without_input, frozen_forward;
  Bytes output_bytes = 0, stashed_bytes = 0, workspace_bytes = 0;
  std::array<Mean*, 4> times() { return {&forward, &backward, &backward_without_input, &frozen_forward}; }
};
using KindSamplesByKind = std::map<LayerKind, KindSamples>;

LayerCost cost_from(const KindSamples& kept) {
  const Nanoseconds backward = kept.backward.value();
  const Nanoseconds weight = std::min(backward, kept.backward_without_input.value());
  return {.forward_ns = kept.forward.value(),
          .input_gradient_ns = backward - weight,
          .weight_gradient_ns = weight,
          .frozen_forward_ns = kept.frozen_forward.value(),
          .output_activation_bytes = kept.output_bytes,
          .stashed_bytes = kept.stashed_bytes,
          .workspace_bytes = kept.workspace_bytes};
}

/// Sums each mean's terms over all ranks: what a rank of the job takes, not what rank 0 takes.
void average_over_ranks(Communicator& communicator, const std::vector<Mean*>& means) {
  std::vector<double> terms;
  for (const Mean* mean : means) terms.insert(terms.end(), {mean->sum_ns, mean->count});
  terms = communicator.sum(std::move(terms));
  for (std::size_t i = 0; i < means.size(); ++i) *means[i] = {terms[2 * i], terms[2 * i + 1]};
}

class Bench {
 public:
  Bench(const TransformerConfig& config, const Model& model, std::map<int, LayerState>& layers, ComputeDevice& device,
        at::TensorOptions options)
      : config_(config), model_(model), layers_(layers), device_(device), options_(options) {}

  /// One pass over all layers with a micro-batch of that shape.
  void measure(int micro_batch_size, int tokens, KindSamplesByKind& samples) {
    one_pass(made_up_batch(micro_batch_size, tokens), samples);
  }

 private:
  MicroBatch made_up_batch(int samples, int tokens) const {
    const at::Device device = options_.device();
    const auto random_tokens = [&] {
      return at::randint(config_.vocab_size, {samples, tokens}, at::TensorOptions().dtype(at::kLong)).to(device);
    };
    const at::TensorOptions numbers = at::TensorOptions().dtype(at::kLong).device(device);
    MicroBatch batch;
    batch.input = config_.family == Family::vit
                      ? at::randn({samples, config_.num_channels, config_.image_size, config_.image_size}, options_)
                      : random_tokens();
    batch.mask = at::ones({samples, tokens}, options_);
    switch (config_.task) {
      case Task::question_answering:
        batch.labels = at::zeros({samples, 2}, numbers);
        break;
      case Task::causal_language_modeling:
        batch.labels = random_tokens();
        break;
      default:
        batch.labels = at::zeros({samples}, numbers);
    }
    return batch;
  }

  template <typename Call>
  Nanoseconds time(Call call) {
    device_.first_mark();
    call();
    device_.mark();
    const std::vector<Nanoseconds> marks = device_.marked_ns();
    return marks[1] - marks[0];
  }

  at::Tensor run(int layer, const at::Tensor& input, const MicroBatch& batch) {
    at::Tensor output = forward_layer(config_, layer, layers_.at(layer).parameters, input, batch);
    if (model_.layers[layer].kind == LayerKind::head)
      output = loss_sum(config_.task, output, batch, /*label_smoothing=*/0);
    return output;
  }

  /// All layers in order, as a training run touches them: forward of each, then backward of each, then the rarer
  /// variants.
  void one_pass(const MicroBatch& batch, KindSamplesByKind& samples) {
    const int num_layers = static_cast<int>(model_.layers.size());
    std::vector<at::Tensor> inputs(num_layers), outputs(num_layers);
    for (int layer = 0; layer < num_layers; ++layer) {
      KindSamples& kept = samples[model_.layers[layer].kind];
      if (layer > 0) inputs[layer] = outputs[layer - 1].detach().requires_grad_(true);
      const Bytes before = device_.live_bytes();
      device_.reset_peak();
      kept.forward.add(time([&] { outputs[layer] = run(layer, inputs[layer], batch); }));
      kept.output_bytes = static_cast<Bytes>(outputs[layer].nbytes());
      kept.stashed_bytes = device_.live_bytes() - before;
      kept.workspace_bytes = std::max(kept.workspace_bytes, device_.peak_bytes() - device_.live_bytes());
    }
    at::Tensor gradient;
    for (int layer = num_layers - 1; layer >= 0; --layer) {
      KindSamples& kept = samples[model_.layers[layer].kind];
      const Bytes before = device_.live_bytes();
      device_.reset_peak();
      const Nanoseconds duration = time([&] { torch::autograd::backward({outputs[layer]}, {gradient}); });
      kept.backward.add(duration);
      if (layer == 0) kept.backward_without_input.add(duration);  // its input is token ids
      kept.workspace_bytes = std::max(kept.workspace_bytes, device_.peak_bytes() - before);
      if (layer > 0) gradient = inputs[layer].grad();
      outputs[layer] = at::Tensor();
    }
    for (const int layer : {1, 2, num_layers - 1}) {
      const at::Tensor input = inputs[layer].detach();
      const at::Tensor output = run(layer, input, batch);
      const at::Tensor ones = at::ones_like(output);
      samples[model_.layers[layer].kind].backward_without_input.add(
          time([&] { torch::autograd::backward({output}, {ones}); }));
    }
    const at::NoGradGuard no_grad;
    for (int layer = 0; layer < num_layers; ++layer) {
      const at::Tensor input = layer > 0 ? inputs[layer].detach() : at::Tensor();
      samples[model_.layers[layer].kind].frozen_forward.add(time([&] { run(layer, input, batch); }));
    }
    for (auto& [layer, state] : layers_) state.gradients.zero_();
  }

  const TransformerConfig& config_;
  const Model& model_;
  std::map<int, LayerState>& layers_;
  ComputeDevice& device_;
  at::TensorOptions options_;
};

/// Small micro-batches are quick to measure and most disturbed by what else the machine does.
int passes_of(int micro_batch_size) { return std::clamp(16 / micro_batch_size, 1, 4); }

/// Micro-batch sizes between which the others are interpolated: powers of 2 up to the mini-batch, or of 8 where it must
/// be quick.
std::vector<int> suited_sizes(int global_batch_size, bool quick) {
  std::vector<int> sizes;
  for (int size = 1; size < global_batch_size; size *= quick ? 8 : 2) sizes.push_back(size);
  sizes.push_back(global_batch_size);
  return sizes;
}

/// One optimizer step of every layer.
void measure_updates(const Model& model, std::map<int, LayerState>& layers, ComputeDevice& device,
                     const std::string& optimizer, std::map<LayerKind, Mean>& means) {
  for (auto& [layer, state] : layers) {
    state.gradients.fill_(1e-3);
    device.first_mark();
    const double square_sum = gradient_square_sum(state);
    update(state, {.optimizer = optimizer, .learning_rate = 1e-12, .gradient_scale = square_sum > 0 ? 0.5 : 1});
    device.mark();
    const std::vector<Nanoseconds> marks = device.marked_ns();
    means[model.layers[layer].kind].add(marks[1] - marks[0]);
  }
}

/// What moves between ranks, and how long that took on this rank.
using Transfer = std::function<Nanoseconds(const at::Tensor&)>;

/// Half the time of a round trip between ranks 0 and 1.
Nanoseconds time_message(Communicator& communicator, ComputeDevice& device, const at::Tensor& tensor) {
  if (communicator.rank() > 1) return 0;
  const int other = 1 - communicator.rank();
  const Nanoseconds begin = now_ns();
  for (const bool sends : {communicator.rank() == 0, communicator.rank() == 1}) {
    if (sends) {
      communicator.movers().send(tensor, other, 0, "link measurement").wait();
    } else {
      communicator.movers().receive(tensor, other, 0, "link measurement").wait();
    }
  }
  device.synchronize();
  return (now_ns() - begin) / 2;
}

Nanoseconds time_all_reduce(Communicator& communicator, ComputeDevice& device, const at::Tensor& tensor) {
  communicator.everyone().barrier();
  const Nanoseconds begin = now_ns();
  communicator.movers().all_reduce_sum({tensor}, "link measurement");
  device.synchronize();
  return now_ns() - begin;
}

/// Rounds over all sizes, so that each is made of moments all over the measuring time; in a round, each size takes some
/// milliseconds. The figures are rank 0's, on all ranks. `wire_share`: of a tensor's bytes, those that pass a link.
Link measure_link(Communicator& communicator, const std::vector<Bytes>& sizes, double wire_share,
                  const at::TensorOptions& options, bool quick, const char* what, const Transfer& transfer) {
  constexpr double kNanosecondsPerSize = 5e6;
  const int num_rounds = quick ? 5 : 11;
  std::vector<at::Tensor> tensors;
  std::vector<int> repetitions;
  const auto of_first_rank = [&](Nanoseconds time) {
    return communicator.sum({communicator.rank() == 0 ? static_cast<double>(time) : 0.0}).front();
  };
  for (const Bytes bytes : sizes) {
    tensors.push_back(at::zeros({bytes / 4}, options.dtype(at::kFloat)));
    transfer(tensors.back());  // the first one connects, and touches memory
    repetitions.push_back(static_cast<int>(
        std::clamp(kNanosecondsPerSize / std::max(1.0, of_first_rank(transfer(tensors.back()))), 1.0, 50.0)));
  }
  std::vector<LinkRound> rounds(num_rounds);
  for (LinkRound& round : rounds) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::vector<Nanoseconds> times;
      for (int repetition = 0; repetition < repetitions[i]; ++repetition) times.push_back(transfer(tensors[i]));
      round.push_back({static_cast<Bytes>(wire_share * static_cast<double>(sizes[i])),
                       static_cast<Nanoseconds>(of_first_rank(median(std::move(times))))});
    }
  }
  return fit_link(rounds, what);
}

Cluster measure_links(Communicator& communicator, ComputeDevice& device, const at::TensorOptions& options,
                      const MeasureOptions& measure) {
  Cluster cluster{.name = fmt::format("{} local ranks", communicator.world_size()),
                  .devices = {},
                  .intra_node = {},
                  .inter_node = {}};
  for (int rank = 0; rank < communicator.world_size(); ++rank) {
    cluster.devices.push_back({.type = device.type(), .node = 0, .memory_limit_bytes = measure.memory_limit_bytes});
  }
  if (communicator.world_size() > 1) {
    constexpr Bytes kSmall = 8, kMebibyte = 1 << 20;
    const double d = communicator.world_size();
    cluster.intra_node.point_to_point = measure_link(
        communicator, {kSmall, kMebibyte / 4, kMebibyte, 4 * kMebibyte}, 1, options, measure.quick,
        "messages between ranks", [&](const at::Tensor& tensor) { return time_message(communicator, device, tensor); });
    cluster.intra_node.collective = measure_link(
        communicator, {kSmall, kMebibyte, 4 * kMebibyte, 16 * kMebibyte}, 2 * (d - 1) / d, options, measure.quick,
        "all-reduces", [&](const at::Tensor& tensor) { return time_all_reduce(communicator, device, tensor); });
  }
  cluster.inter_node = cluster.intra_node;
  return cluster;
}

/// Median time to build the groups of a pipeline over all ranks, and of replicas, as transformations do.
Nanoseconds measure_regrouping(Communicator& communicator) {
  const int world_size = communicator.world_size();
  std::vector<double> times;
  for (int round = 0; round < 4; ++round) {
    const bool pipeline = round % 2 == 0;
    const ParallelLayout layout{.pipeline_parallel_size = pipeline ? world_size : 1,
                                .data_parallel_size = pipeline ? 1 : world_size};
    communicator.everyone().barrier();
    const auto begin = std::chrono::steady_clock::now();
    const ActiveGroups groups = communicator.form(layout, 0);
    communicator.everyone().barrier();
    times.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  return static_cast<Nanoseconds>(communicator.sum({times[1]}).front() / world_size);
}

/// What the data asks of a run, and in `lengths` the two padded lengths to measure at: the 10th and the 90th percentile
/// of the mini-batches' (farther apart where they are one, or where the longest sample would lie beyond twice the
/// larger); the model takes `most_tokens`.
Workload describe_data(const Dataset& dataset, const MeasureOptions& options, int most_tokens,
                       std::vector<int>& lengths) {
  const Samples& data = *dataset.samples;
  const std::vector<int>& train = dataset.split.train;
  std::vector<int> order = epoch_order(static_cast<int>(train.size()), options.seed, 0);
  for (int& index : order) index = train[index];
  std::vector<int> padded;
  for (int index = 0; index * options.global_batch_size < static_cast<int>(order.size()); ++index) {
    padded.push_back(mini_batch(data, order, options.global_batch_size, index).tokens);
  }
  double total_tokens = 0;
  for (const int sample : train) total_tokens += static_cast<double>(data.tokens(sample));
  std::sort(padded.begin(), padded.end());
  int longest = padded.back();
  if (options.test_data.empty())
    longest = std::max(longest, longest_tokens(data, dataset.split.test));  // which another seed trains on
  lengths = {padded[padded.size() / 10], padded[padded.size() - 1 - padded.size() / 10]};
  if (padded.front() == longest) {  // pictures, or blocks of text
    lengths.pop_back();
  } else {
    if (lengths[0] == lengths[1]) lengths[1] = std::min(most_tokens, lengths[1] + std::max(4, lengths[0] / 4));
    if (lengths[0] == lengths[1]) lengths[0] = std::max(1, lengths[0] - std::max(4, lengths[0] / 4));
    lengths[1] = std::max(lengths[1], (longest + 1) / 2);
  }
  Workload workload{.name = options.data->filename().string(),
                    .num_samples = static_cast<int>(train.size()),
                    .tokens = padded[padded.size() / 2],
                    .longest_tokens = longest,
                    .mean_tokens = static_cast<int>(std::ceil(total_tokens / static_cast<double>(train.size()))),
                    .global_batch_size = options.global_batch_size};
  if (dataset.task != Task::image_classification) workload.max_tokens = options.samples.max_tokens;
  if (dataset.task == Task::question_answering) workload.window_overlap = options.samples.window_overlap;
  return workload;
}

}  // namespace

void check_inputs(const MeasureOptions& options) {
  ModelFolder folder = open_model_folder(options.model);
  if (options.data)
    load_dataset({*options.data, options.test_data, options.held_out, options.seed}, options.samples, folder);
  check_weights(folder, WeightFiles(folder.path));
  for (const int tokens : options.tokens) {
    if (folder.config.family == Family::vit && tokens != image_tokens(folder.config)) {
      throw InvalidInput(
          "--tokens",
          fmt::format("must be {}, the patches of a picture and the class token", image_tokens(folder.config)),
          std::to_string(tokens));
    }
    if (folder.config.family != Family::vit && tokens > folder.config.max_position_embeddings) {
      throw InvalidInput("--tokens",
                         fmt::format("must be at most the model's {} positions", folder.config.max_position_embeddings),
                         std::to_string(tokens));
    }
  }
}

MeasuredProfile measure_profile(const RankEnvironment& self, const MeasureOptions& options, const Progress& progress) {
  ModelFolder folder = open_model_folder(options.model);
  std::optional<Workload> workload;
  std::vector<int> lengths = options.tokens.empty() ? std::vector<int>{16, 32} : options.tokens;
  const int most_tokens = folder.config.family == Family::vit ? static_cast<int>(image_tokens(folder.config))
                                                              : static_cast<int>(folder.config.max_position_embeddings);
  if (options.tokens.empty() && most_tokens < lengths.back()) lengths = {std::max(1, most_tokens / 2), most_tokens};
  if (options.data) {
    const Dataset dataset =
        load_dataset({*options.data, options.test_data, options.held_out, options.seed}, options.samples, folder);
    std::vector<int> suited;
    workload = describe_data(dataset, options, most_tokens, suited);
    if (options.tokens.empty()) lengths = suited;
  }
  if (folder.config.family == Family::vit) lengths = {static_cast<int>(image_tokens(folder.config))};
  const std::vector<int> sizes = options.micro_batch_sizes.empty()
                                     ? suited_sizes(options.global_batch_size, options.quick)
                                     : options.micro_batch_sizes;
  const int num_rounds = options.quick ? 1 : 3;

  const std::unique_ptr<ComputeDevice> device = make_device(options.device, self.local_rank);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  const LayerTypes types = layer_types_of(options.dtype);
  const at::TensorOptions tensor_options = at::TensorOptions().dtype(types.computed).device(device->torch_device());
  MeasuredProfile result;
  Profile& profile = result.profile;
  profile.model = model_of(folder.config, folder.name);
  profile.model_path = options.model.string();
  profile.machine =
      fmt::format("{}; {} ranks measured at the same time{}", device->description(), communicator->world_size(),
                  communicator->talks_through_host() ? ", some on one device, with messages through host memory" : "");
  profile.quick = options.quick;
  profile.workload = workload;
  if (self.rank == 0) progress(0, "links between ranks, and the cache");
  result.cluster = measure_links(*communicator, *device, tensor_options, options);
  if (communicator->world_size() > 1) result.cluster.regroup_ns = measure_regrouping(*communicator);
  const int entry_tokens = workload ? workload->mean_tokens : lengths.front();
  profile.cache = measure_cache(*communicator, folder.config.hidden_size, entry_tokens, tensor_options);

  std::map<int, LayerState> layers;
  const WeightFiles weights(folder.path);
  for (int layer = 0; layer < static_cast<int>(profile.model.layers.size()); ++layer) {
    layers.emplace(layer, make_layer_state(parameters_of(folder.config, layer), types, device->torch_device(),
                                           /*trains=*/true, /*num_moments=*/2));
    load_layer(folder, weights, layer, options.seed, layers.at(layer));
    round_weights(layers.at(layer));
  }
  // Whole rounds, so that each figure is made of moments all over the measuring time: a machine's speed drifts.
  const std::string optimizer = "adamw";
  Bench bench(folder.config, profile.model, layers, *device, tensor_options);
  std::map<std::pair<int, int>, KindSamplesByKind> samples;  // by micro-batch size and tokens
  std::map<LayerKind, Mean> updates, unmeasured;
  const auto work_of = [](int size, int tokens) { return static_cast<double>(size) * tokens * passes_of(size); };
  double work_done = 0, work = 0;
  for (const int tokens : lengths) {
    for (const int size : sizes) work += num_rounds * work_of(size, tokens);
  }
  measure_updates(profile.model, layers, *device, optimizer, unmeasured);  // first touch of memory and code
  KindSamplesByKind first_touch;
  bench.measure(std::min(8, sizes.back()), lengths.back(), first_touch);
  const Nanoseconds begin = now_ns();
  for (int round = 0; round < num_rounds; ++round) {
    communicator->everyone().barrier();
    measure_updates(profile.model, layers, *device, optimizer, updates);
    for (const int tokens : lengths) {
      for (const int size : sizes) {
        for (int pass = 0; pass < passes_of(size); ++pass) bench.measure(size, tokens, samples[{size, tokens}]);
        work_done += work_of(size, tokens);
        if (self.rank != 0) continue;
        progress(work_done / work,
                 fmt::format("round {} of {}: micro-batches of {} samples x {} tokens{}", round + 1, num_rounds, size,
                             tokens, time_left(now_ns() - begin, work_done / work)));
      }
    }
  }
  std::vector<Mean*> means;
  for (auto& [kind, mean] : updates) means.push_back(&mean);
  for (auto& [shape, kinds] : samples) {
    for (auto& [kind, kept] : kinds) {
      for (Mean* mean : kept.times()) means.push_back(mean);
    }
  }
  average_over_ranks(*communicator, means);
  for (int layer = 0; layer < static_cast<int>(profile.model.layers.size()); ++layer) {
    const LayerKind kind = profile.model.layers[layer].kind;
    profile.updates.push_back({layer, device->type(), options.dtype, optimizer, updates.at(kind).value()});
    for (const auto& [shape, kinds] : samples) {
      profile.measurements.push_back({{.layer = layer,
                                       .device_type = device->type(),
                                       .dtype = options.dtype,
                                       .micro_batch_size = shape.first,
                                       .tokens = shape.second},
                                      cost_from(kinds.at(kind))});
    }
  }
  std::sort(profile.measurements.begin(), profile.measurements.end(),
            [](const Measurement& a, const Measurement& b) { return a.key < b.key; });
  return result;
}

}  // namespace frostpipe
