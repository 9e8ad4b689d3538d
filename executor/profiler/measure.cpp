#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/communication/hosts.h"
#include "executor/execute.h"
#include "executor/loading/dataset.h"
#include "executor/models/folder/model_folder.h"
#include "executor/profiler/layer_bench.h"
#include "executor/profiler/measure_cache.h"
#include "executor/profiler/measure_links.h"
#include "profiles/error.h"
#include "profiles/steady_clock.h"
#include "profiles/time_left.h"

namespace frostpipe {
namespace {

constexpr Optimizer kOptimizer = Optimizer::kAdamW;  // whose steps are timed

/// Of a micro-batch: tokens of each sample, as a token slice after `context` others where that is not 0.
struct Shape {
  int samples = 1, tokens = 1, context = 0;
  auto operator<=>(const Shape&) const = default;
};

/// What was measured on one type of device.
struct Timings {
  std::map<Shape, SamplesByClass> layers;
  std::map<LayerKind, Mean> updates;
};

/// Sums each mean's terms over all ranks that took part: what a rank of the job takes, not what rank 0 takes.
void average_over_ranks(Communicator& communicator, const std::set<LayerClass>& classes, Timings& timings) {
  std::vector<Mean*> means;
  for (const LayerClass& one : classes) {
    timings.updates[one.kind];  // also on a rank that took no part
    for (auto& [shape, samples] : timings.layers) {
      for (Mean* mean : samples[one].times()) means.push_back(mean);
    }
  }
  for (auto& [kind, mean] : timings.updates) means.push_back(&mean);
  std::vector<double> terms;
  for (const Mean* mean : means) terms.insert(terms.end(), {mean->sum_ns, mean->count});
  terms = communicator.sum(std::move(terms));
  for (std::size_t i = 0; i < means.size(); ++i) *means[i] = {terms[2 * i], terms[2 * i + 1]};
}

void add_to(Profile& profile, const TransformerConfig& config, const std::string& device_type, DType dtype,
            const Timings& timings) {
  for (int layer = 0; layer < static_cast<int>(profile.model.layers.size()); ++layer) {
    const LayerKind kind = profile.model.layers[layer].kind;
    profile.updates.push_back({layer, device_type, dtype, kOptimizer, timings.updates.at(kind).value()});
    for (const auto& [shape, classes] : timings.layers) {
      profile.measurements.push_back({{.layer = layer,
                                       .device_type = device_type,
                                       .dtype = dtype,
                                       .micro_batch_size = shape.samples,
                                       .tokens = shape.tokens,
                                       .context_tokens = shape.context},
                                      cost_from(classes.at(class_of(config, profile.model, layer)))});
    }
  }
}

/// Threads per rank, ascending; with several, that many ranks' cores are one rank's, on the node that they share.
std::vector<int> threads_to_measure(const MeasureOptions& options, const std::vector<int>& nodes) {
  if (options.threads_per_rank > 0) return {options.threads_per_rank};
  int common = 0;  // divisor of all nodes' numbers of ranks
  for (const int node : nodes) common = std::gcd(common, static_cast<int>(std::ranges::count(nodes, node)));
  std::vector<int> counts;
  for (int threads = 1; threads <= (options.device == "cpu" ? common : 1); ++threads) {
    if (common % threads == 0) counts.push_back(threads);
  }
  return counts;
}

/// As a cluster lists them. Throws InvalidInput unless they are numbered host by host.
std::vector<int> nodes_of_ranks(Communicator& communicator) {
  std::vector<int> nodes = hosts_of_ranks(communicator);
  if (!std::is_sorted(nodes.begin(), nodes.end()))
    throw InvalidInput("ranks", "must be numbered host by host (mpirun --map-by slot, srun --distribution=block)",
                       fmt::format("on hosts {}", fmt::join(nodes, ", ")));
  return nodes;
}

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

/// Tokens of the samples to train on, ascending.
std::vector<int> lengths_of(const Dataset& dataset) {
  std::vector<int> lengths;
  for (const int sample : dataset.split.train) lengths.push_back(dataset.samples->tokens(sample));
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

/// What the data asks of a run; `lengths` of the samples to train on, ascending.
Workload describe_data(const Dataset& dataset, const std::vector<int>& lengths, const MeasureOptions& options) {
  int longest = lengths.back();
  if (options.test_data.empty())
    longest = std::max(longest, longest_tokens(*dataset.samples, dataset.split.test));  // which another seed trains on
  const auto count = static_cast<double>(lengths.size());
  const double mean = std::accumulate(lengths.begin(), lengths.end(), 0.0) / count;
  double squares = 0;
  for (const int length : lengths) squares += (length - mean) * (length - mean);
  Workload workload{.name = options.data->filename().string(),
                    .num_samples = static_cast<int>(lengths.size()),
                    .tokens = mean,
                    .tokens_deviation = std::sqrt(squares / count),
                    .longest_tokens = longest,
                    .global_batch_size = options.global_batch_size};
  if (dataset.task != Task::image_classification) workload.max_tokens = options.samples.max_tokens;
  if (dataset.task == Task::question_answering) workload.window_overlap = options.samples.window_overlap;
  return workload;
}

/// Tokens per sample to measure at: the data's mean, which times are predicted with, and one from which the longest
/// sample, which memory is planned for, is not beyond twice; the model takes `most_tokens`.
std::vector<int> suited_tokens(const Workload& workload, int most_tokens) {
  const int mean = static_cast<int>(std::lround(workload.tokens)), longest = workload.longest_tokens;
  if (mean == longest) return {mean};  // pictures, or blocks of text
  const int larger = std::min(most_tokens, std::max(mean + std::max(4, mean / 2), (longest + 1) / 2));
  return larger > mean ? std::vector<int>{mean, larger} : std::vector<int>{std::max(1, mean / 2), mean};
}

/// Parts of a sample, beside the whole, to measure a causal model's token slices at: their lengths, each as the first
/// slice and after half of the sample. Attention is linear in the context, the other layers do not know it.
std::vector<int> slice_lengths(int longest) {
  if (longest < 8) return {};
  return {longest / 8, longest / 4, longest / 2};
}

/// Shapes of the micro-batches to measure, and what the data asks of a run.
struct Shapes {
  std::vector<int> tokens;           // per sample
  std::vector<int> sizes;            // samples
  std::vector<int> data_lengths;     // tokens of the samples to train on, ascending; empty without data
  std::optional<Workload> workload;  // with data
  std::vector<int> slices;           // lengths of token slices; empty where none are measured

  std::vector<Shape> all() const {
    std::set<int> wholes(tokens.begin(), tokens.end());
    wholes.insert(slices.begin(), slices.end());
    std::vector<Shape> all;
    for (const int length : wholes)
      for (const int size : sizes) all.push_back({size, length});
    const int half = *std::max_element(tokens.begin(), tokens.end()) / 2;
    for (const int length : slices)
      for (const int size : sizes) all.push_back({size, length, half});
    return all;
  }
};

/// Reads the data, which may give `folder` its task.
Shapes shapes_to_measure(const MeasureOptions& options, ModelFolder& folder) {
  Shapes shapes;
  const bool is_of_pictures = folder.config.family == Family::vit;
  const int most_tokens =
      static_cast<int>(is_of_pictures ? image_tokens(folder.config) : folder.config.max_position_embeddings);
  shapes.tokens = options.tokens.empty() ? std::vector<int>{16, 32} : options.tokens;
  if (options.tokens.empty() && most_tokens < shapes.tokens.back())
    shapes.tokens = {std::max(1, most_tokens / 2), most_tokens};
  if (options.data) {
    const Dataset dataset =
        load_dataset({*options.data, options.test_data, options.held_out, options.seed}, options.samples, folder);
    shapes.data_lengths = lengths_of(dataset);
    shapes.workload = describe_data(dataset, shapes.data_lengths, options);
    if (options.tokens.empty()) shapes.tokens = suited_tokens(*shapes.workload, most_tokens);
  }
  if (is_of_pictures) shapes.tokens = {most_tokens};
  shapes.sizes = options.micro_batch_sizes.empty() ? suited_sizes(options.global_batch_size, options.quick)
                                                   : options.micro_batch_sizes;
  if (model_of(folder.config, folder.name).is_causal && !options.quick)
    shapes.slices = slice_lengths(*std::max_element(shapes.tokens.begin(), shapes.tokens.end()));
  return shapes;
}

/// All layers of the model, as they train.
std::map<int, LayerState> load_layers(const ModelFolder& folder, int num_layers, const LayerTypes& types,
                                      at::Device device, std::uint64_t seed) {
  std::map<int, LayerState> layers;
  const WeightFiles weights(folder.path);
  for (int layer = 0; layer < num_layers; ++layer) {
    layers.emplace(layer, make_layer_state(parameters_of(folder.config, layer), types, device, /*trains=*/true,
                                           /*num_moments=*/2));
    load_layer(folder, weights, layer, seed, layers.at(layer));
    round_weights(layers.at(layer));
  }
  return layers;
}

/// Timings by type of device; of this rank alone. Whole rounds, so that each figure is made of moments all over the
/// measuring time: a machine's speed drifts.
std::map<std::string, Timings> measure_rounds(LayerBench& bench, const Shapes& shapes, const MeasureOptions& options,
                                              ComputeDevice& device, Communicator& communicator,
                                              const Progress& progress) {
  const int num_rounds = options.quick ? 1 : 3;
  const std::vector<int> thread_counts = threads_to_measure(options, hosts_of_ranks(communicator));
  const std::vector<Shape> all = shapes.all();
  const auto work_of = [](const Shape& shape) {
    return static_cast<double>(shape.samples) * shape.tokens * passes_of(shape.samples);
  };
  double work_done = 0, work = 0;
  for (const Shape& shape : all) work += num_rounds * static_cast<double>(thread_counts.size()) * work_of(shape);
  Timings first_touch;
  bench.measure_updates(kOptimizer, first_touch.updates);  // of memory and code
  bench.measure(std::min(8, shapes.sizes.back()), shapes.tokens.back(), first_touch.layers[{}]);
  std::map<std::string, Timings> timings;
  const Nanoseconds begin = steady_now_ns();
  for (int round = 0; round < num_rounds; ++round) {
    for (const int threads : thread_counts) {
      // The ranks between compute nothing: their cores are this one's.
      const bool takes_part = communicator.rank() % (threads / thread_counts.front()) == 0;
      communicator.control_group().barrier();
      device.set_num_threads(threads);
      Timings& here = timings[device.type()];
      if (takes_part) bench.measure_updates(kOptimizer, here.updates);
      for (const Shape& shape : all) {
        const auto& [size, tokens, context] = shape;
        SamplesByClass& samples = here.layers[shape];
        for (int pass = 0; takes_part && pass < passes_of(size); ++pass) {
          if (context > 0)
            bench.measure_slice(size, tokens, context, samples);
          else
            bench.measure(size, tokens, samples);
        }
        work_done += work_of(shape);
        if (communicator.rank() != 0) continue;
        progress(work_done / work,
                 fmt::format("round {} of {}: micro-batches of {} samples x {} tokens{}{}{}", round + 1, num_rounds,
                             size, tokens, context > 0 ? fmt::format(" after {}", context) : "",
                             threads > 1 ? fmt::format(", {} threads", threads) : "",
                             time_left(steady_now_ns() - begin, work_done / work)));
      }
    }
  }
  return timings;
}

}  // namespace

std::vector<std::string> check_inputs(const MeasureOptions& options) {
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
  return notes_on_bfloat16(options.device, options.dtype, options.frozen_dtype);
}

MeasuredProfile measure_profile(const RankEnvironment& self, const MeasureOptions& options, const Progress& progress) {
  ModelFolder folder = open_model_folder(options.model);
  const Shapes shapes = shapes_to_measure(options, folder);
  const std::unique_ptr<ComputeDevice> device =
      make_device(options.device, self.local_rank, std::max(1, options.threads_per_rank));
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  const LayerTypes types = layer_types_of(options.dtype, options.frozen_dtype);
  const at::TensorOptions tensor_options = at::TensorOptions().dtype(types.computed).device(device->torch_device());
  MeasuredProfile result;
  Profile& profile = result.profile;
  profile.model = model_of(folder.config, folder.name);
  profile.model_path = options.model.string();
  profile.machine =
      fmt::format("{}; {} ranks measured at the same time{}", device->description(), communicator->world_size(),
                  communicator->uses_host_staging() ? ", some on one device, with messages through host memory" : "");
  profile.quick = options.quick;
  profile.frozen_dtype = options.frozen_dtype;
  profile.workload = shapes.workload;
  if (self.rank == 0) progress(0, "links between ranks, and the cache");
  result.cluster = measure_links(*communicator, *device, tensor_options, options.memory_limit_bytes, options.quick,
                                 nodes_of_ranks(*communicator));
  if (communicator->world_size() > 1) result.cluster.regroup_ns = measure_regrouping(*communicator, *device);
  const int entry_tokens =
      shapes.workload ? static_cast<int>(std::ceil(shapes.workload->tokens)) : shapes.tokens.front();
  profile.cache = measure_cache(*communicator, folder.config.hidden_size, entry_tokens, tensor_options);

  const int num_layers = static_cast<int>(profile.model.layers.size());
  std::map<int, LayerState> layers = load_layers(folder, num_layers, types, device->torch_device(), options.seed);
  LayerBench bench(folder.config, profile.model, layers, *device, types, shapes.data_lengths);
  std::map<std::string, Timings> timings = measure_rounds(bench, shapes, options, *device, *communicator, progress);
  std::set<LayerClass> classes;
  for (int layer = 0; layer < num_layers; ++layer) classes.insert(class_of(folder.config, profile.model, layer));
  for (auto& [type, here] : timings) {
    average_over_ranks(*communicator, classes, here);
    add_to(profile, folder.config, type, options.dtype, here);
  }
  std::sort(profile.measurements.begin(), profile.measurements.end(),
            [](const Measurement& a, const Measurement& b) { return a.key < b.key; });
  return result;
}

}  // namespace frostpipe
