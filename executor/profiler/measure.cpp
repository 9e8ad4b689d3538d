#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/steady_clock.h"
#include "base/time_left.h"
#include "executor/communication/communicator.h"
#include "executor/communication/hosts.h"
#include "executor/communication/registration.h"
#include "executor/execute.h"
#include "executor/inputs/run_inputs.h"
#include "executor/loading/dataset.h"
#include "executor/models/folder/model_folder.h"
#include "executor/profiler/layer_bench.h"
#include "executor/profiler/measure_cache.h"
#include "executor/profiler/measure_links.h"
#include "executor/profiler/measured_shapes.h"
#include "plan/plan.h"
#include "profiles/estimates/layer_work.h"

namespace frostpipe {
namespace {

constexpr Optimizer kOptimizer = Optimizer::kAdamW;  // the steps of this optimizer are timed

/// The measurements on one device type, for layers shared by a number of tensor ranks.
struct Timings {
  std::map<Shape, SamplesByClass> layers;
  UpdatesByKind updates;
};

/// Sums the terms of each mean over all ranks that took part, so that the means are over these ranks and not of rank 0
/// only.
void average_over_ranks(Communicator& communicator, const std::set<LayerClass>& classes, Timings& timings) {
  std::vector<Mean*> means;
  for (const LayerClass& one : classes) {
    timings.updates[one.kind];  // adds the entry on a rank that did not take part
    for (auto& [shape, samples] : timings.layers) {
      for (Mean* mean : samples[one].times()) means.push_back(mean);
    }
  }
  for (auto& [kind, samples] : timings.updates)
    for (Mean* mean : samples.times()) means.push_back(mean);
  std::vector<double> terms;
  for (const Mean* mean : means) terms.insert(terms.end(), {mean->sum_ns, mean->count});
  terms = communicator.sum(std::move(terms));
  for (std::size_t i = 0; i < means.size(); ++i) *means[i] = {terms[2 * i], terms[2 * i + 1]};
}

/// Adds the timings to the profile. `key` gives device type, dtype and number of tensor ranks. Updates are measured for
/// whole layers only.
void add_to(Profile& profile, const TransformerConfig& config, MeasurementKey key, const Timings& timings) {
  for (int layer = 0; layer < static_cast<int>(profile.model.layers.size()); ++layer) {
    const LayerKind kind = profile.model.layers[layer].kind;
    if (key.tensor_parallel_size == 1)
      profile.updates.push_back({layer, key.device_type, key.dtype, kOptimizer, timings.updates.at(kind).value()});
    for (const auto& [shape, classes] : timings.layers) {
      key.layer = layer;
      key.micro_batch_size = shape.samples;
      key.tokens = shape.tokens;
      key.context_tokens = shape.context;
      profile.measurements.push_back({key, cost_from(classes.at(class_of(config, profile.model, layer)))});
    }
  }
}

/// Returns the numbers of threads per rank to measure, ascending. A rank with several threads uses the cores of as many
/// ranks of its node.
std::vector<int> threads_to_measure(const MeasureOptions& options, const std::vector<int>& nodes) {
  if (options.threads_per_rank > 0) return {options.threads_per_rank};
  int common = 0;  // common divisor of all nodes' numbers of ranks
  for (const int node : nodes) common = std::gcd(common, static_cast<int>(std::ranges::count(nodes, node)));
  std::vector<int> counts;
  for (int threads = 1; threads <= (options.device == "cpu" ? common : 1); ++threads) {
    if (common % threads == 0) counts.push_back(threads);
  }
  return counts;
}

/// Returns the node of each rank. Throws InvalidInput unless the ranks are numbered host by host, as a cluster lists
/// them.
std::vector<int> nodes_of_ranks(Communicator& communicator) {
  std::vector<int> nodes = hosts_of_ranks(communicator);
  if (!std::is_sorted(nodes.begin(), nodes.end()))
    throw InvalidInput("ranks", "must be numbered host by host (mpirun --map-by slot, srun --distribution=block)",
                       fmt::format("on hosts {}", fmt::join(nodes, ", ")));
  return nodes;
}

struct Readied {
  ModelFolder folder;
  Shapes shapes;
  std::unique_ptr<ComputeDevice> device;
};

/// Does everything that precedes the rendezvous. If this host's files are wrong, or it lacks the device, all ranks end
/// with that error.
Readied made_ready(const RankEnvironment& self, const MeasureOptions& options) {
  try {
    if (!self.watched_by_launcher) check_inputs(options, self.world_size);  // otherwise the launcher has checked them
    ModelFolder folder = open_model_folder(options.model);
    Shapes shapes = shapes_to_measure(options, folder);
    return {std::move(folder), std::move(shapes),
            make_device(options.device, self.local_rank, std::max(1, options.threads_per_rank),
                        /*is_alone=*/self.world_size == 1)};
  } catch (const InvalidInput& error) {
    if (self.watched_by_launcher) throw;
    register_failure(self, error.what());
  } catch (const RuntimeFailure& error) {  // this host lacks the device
    if (self.watched_by_launcher) throw;
    register_failure(self, error.what());
  }
}

/// Returns the number of times that a micro-batch is measured per round. It is larger for small ones, which take little
/// time and suffer most from other load on the machine.
int passes_of(int micro_batch_size) { return std::clamp(16 / micro_batch_size, 1, 4); }

/// The division of the measured layers among ranks.
struct Sharing {
  int tensor_parallel_size = 1;
  bool sequence_parallel = false;
};

/// The objects that a measuring rank uses.
struct MeasuringRank {
  const MeasureOptions& options;
  ComputeDevice& device;
  Communicator& communicator;
  const Progress& progress;
};

/// Returns a phase in which consecutive ranks form tensor groups, each of which has all layers.
Phase phase_of_tensor_ranks(int world_size, int tensor_parallel_size, int num_layers) {
  return {
      .layout = {.data_parallel_size = world_size / tensor_parallel_size, .tensor_parallel_size = tensor_parallel_size},
      .partition = {{0, num_layers}}};
}

/// Loads all layers of the model, or this rank's part of them, as trainable.
std::map<int, LayerState> load_layers(const ModelFolder& folder, const LayerTypes& types, const MeasuringRank& rank,
                                      const TensorSlice& slice) {
  std::map<int, LayerState> layers;
  const WeightFiles weights(folder.path);
  const int num_layers = static_cast<int>(model_of(folder.config, folder.name).layers.size());
  for (int layer = 0; layer < num_layers; ++layer) {
    layers.emplace(layer, make_layer_state(parameters_of(folder.config, layer), types, rank.device.torch_device(),
                                           /*trains=*/true, /*num_moments=*/2, slice));
    load_layer(folder, weights, layer, rank.options.seed, layers.at(layer));
    round_weights(layers.at(layer));
  }
  return layers;
}

/// Returns this rank's timings by device type. It measures all shapes in every round, so that each figure averages over
/// the whole measuring time, because a machine's speed drifts.
std::map<std::string, Timings> measure_rounds(LayerBench& bench, const Shapes& shapes, const Sharing& sharing,
                                              const MeasuringRank& rank) {
  const auto& [tensor_parallel_size, sequence_parallel] = sharing;
  const auto& [options, device, communicator, progress] = rank;
  const int num_rounds = options.quick ? 1 : 3;
  std::vector<int> thread_counts = threads_to_measure(options, hosts_of_ranks(communicator));
  if (tensor_parallel_size > 1) thread_counts.resize(1);  // all ranks are needed
  const std::vector<Shape> all = shapes.all();
  const auto work_of = [](const Shape& shape) {
    return static_cast<double>(shape.samples) * shape.tokens * passes_of(shape.samples);
  };
  double work_done = 0, work = 0;
  for (const Shape& shape : all) work += num_rounds * static_cast<double>(thread_counts.size()) * work_of(shape);
  const auto measure = [&bench](const Shape& shape, SamplesByClass& samples) {
    if (shape.context > 0)
      bench.measure_slice(shape.samples, shape.tokens, shape.context, samples);
    else
      bench.measure(shape.samples, shape.tokens, samples);
  };
  // Load code and touch memory before anything counts, with the largest shape: on a virtual machine a new page can take
  // 11 us, which made forwards take up to 1.7 times as long. The second pass allocates its blocks elsewhere.
  Timings first_touch;
  bench.measure_updates(kOptimizer, first_touch.updates);
  for (int pass = 0; pass < 2; ++pass) measure(*std::ranges::max_element(all, {}, work_of), first_touch.layers[{}]);
  if (!device.torch_device().is_cpu())  // other shapes load, and compile, other kernels
    for (const Shape& shape : all) measure(shape, first_touch.layers[{}]);
  std::map<std::string, Timings> timings;
  const Nanoseconds begin = steady_now_ns();
  for (int round = 0; round < num_rounds; ++round) {
    for (const int threads : thread_counts) {
      // Of `threads` consecutive ranks only the first takes part, and uses the cores of the others.
      const bool takes_part = communicator.rank() % (threads / thread_counts.front()) == 0;
      communicator.control_group().barrier();
      device.set_num_threads(threads);
      Timings& here = timings[device.type()];
      if (takes_part) bench.measure_updates(kOptimizer, here.updates);
      for (const Shape& shape : all) {
        const auto& [size, tokens, context] = shape;
        SamplesByClass& samples = here.layers[shape];
        for (int pass = 0; takes_part && pass < passes_of(size); ++pass) measure(shape, samples);
        work_done += work_of(shape);
        if (communicator.rank() != 0) continue;
        progress(work_done / work,
                 fmt::format("round {} of {}: micro-batches of {} samples x {} tokens{}{}{}{}", round + 1, num_rounds,
                             size, tokens, context > 0 ? fmt::format(" after {}", context) : "",
                             threads > 1 ? fmt::format(", {} threads", threads) : "",
                             tensor_parallel_size > 1 ? fmt::format(", {} tensor ranks{}", tensor_parallel_size,
                                                                    sequence_parallel ? " with split tokens" : "")
                                                      : "",
                             time_left(steady_now_ns() - begin, work_done / work)));
      }
    }
  }
  return timings;
}

/// Measures the layers, divided in this way, and adds the results to the profile.
void measure_layers(const ModelFolder& folder, const Shapes& shapes, const Sharing& sharing, const MeasuringRank& rank,
                    Profile& profile) {
  const auto& [tensor_parallel_size, sequence_parallel] = sharing;
  const auto& [options, device, communicator, progress] = rank;
  const int num_layers = static_cast<int>(profile.model.layers.size());
  const Phase phase = phase_of_tensor_ranks(communicator.world_size(), tensor_parallel_size, num_layers);
  ActiveGroups groups;
  TensorRanks tensor_ranks;
  if (tensor_parallel_size > 1) {
    groups = communicator.form(phase);
    const int number = find_coordinate(phase.layout, communicator.rank())->tensor;
    tensor_ranks = c10::make_intrusive<TensorParallel>(groups.tensor, slice_of(number, tensor_parallel_size),
                                                       device.torch_device(), sequence_parallel);
  }
  const LayerTypes types = layer_types_of(options.dtype, options.frozen_dtype);
  std::map<int, LayerState> layers = load_layers(folder, types, rank, slice_of(tensor_ranks));
  LayerBench bench(folder.config, profile.model, layers, device, types, shapes.data_lengths, tensor_ranks,
                   shapes.learned_part);
  std::map<std::string, Timings> timings = measure_rounds(bench, shapes, sharing, rank);
  std::set<LayerClass> classes;
  for (int layer = 0; layer < num_layers; ++layer) classes.insert(class_of(folder.config, profile.model, layer));
  for (auto& [type, here] : timings) {
    average_over_ranks(communicator, classes, here);
    add_to(profile, folder.config,
           {.device_type = type,
            .dtype = options.dtype,
            .tensor_parallel_size = tensor_parallel_size,
            .sequence_parallel = sequence_parallel},
           here);
  }
}

/// Returns the tensor-parallel sizes, ascending. 1 is among them because updates are measured for whole layers.
std::set<int> sizes_to_measure(const MeasureOptions& options, int world_size) {
  std::set<int> sizes{1};
  for (const int size : options.tensor_parallel_sizes) {
    if (world_size % size != 0)
      throw InvalidInput("--tensor-parallel", fmt::format("must divide the {} ranks that measure", world_size),
                         std::to_string(size));
    sizes.insert(size);
  }
  return sizes;
}

}  // namespace

std::vector<std::string> check_inputs(const MeasureOptions& options, int num_ranks) {
  ModelFolder folder = open_model_folder(options.model);
  if (options.data)
    load_dataset({*options.data, options.test_data, options.held_out, options.seed}, options.samples, folder);
  check_weights(folder, WeightFiles(folder.path));
  sizes_to_measure(options, num_ranks);
  for (const int size : options.tensor_parallel_sizes)
    if (size > max_tensor_ranks(folder.config))
      throw InvalidInput("--tensor-parallel",
                         fmt::format("must be at most {}, the model's attention heads that can be shared",
                                     max_tensor_ranks(folder.config)),
                         std::to_string(size));
  for (const int tokens : options.tokens) {
    if (folder.config.reads_pictures && tokens != image_tokens(folder.config)) {
      throw InvalidInput(
          "--tokens",
          fmt::format("must be {}, the patches of a picture and the class token", image_tokens(folder.config)),
          std::to_string(tokens));
    }
    if (!folder.config.reads_pictures && tokens > folder.config.max_position_embeddings) {
      throw InvalidInput("--tokens",
                         fmt::format("must be at most the model's {} positions", folder.config.max_position_embeddings),
                         std::to_string(tokens));
    }
  }
  return notes_on_bfloat16(options.device, options.dtype, options.frozen_dtype);
}

MeasuredProfile measure_profile(const RankEnvironment& self, const MeasureOptions& options, const Progress& progress) {
  auto [folder, shapes, device] = made_ready(self, options);
  device->expect_one_length(shapes.has_one_length);
  const std::unique_ptr<Communicator> communicator = Communicator::connect(self, *device);
  if (!self.watched_by_launcher && !self.is_on_one_host)
    require_equal_inputs(communicator->gather(to_text(run_inputs(options))));
  const at::TensorOptions tensor_options = at::TensorOptions()
                                               .dtype(layer_types_of(options.dtype, options.frozen_dtype).computed)
                                               .device(device->torch_device());
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
  if (shapes.workload)
    profile.forward_flops = forward_flops(folder.config, static_cast<int>(std::lround(shapes.workload->tokens)));
  if (self.rank == 0) progress(0, options.links ? "links between ranks, and the cache" : "the cache");
  if (options.links)
    result.cluster = measure_links(*communicator, *device, tensor_options, options.memory_limit_bytes, options.quick,
                                   nodes_of_ranks(*communicator));
  if (options.links && communicator->world_size() > 1) {
    result.cluster.regroup_ns = measure_regrouping(*communicator, *device);
    result.cluster.new_memory_bytes_per_second = measure_new_memory(*communicator, *device);
  }
  const int entry_tokens =
      shapes.workload ? static_cast<int>(std::ceil(shapes.workload->tokens)) : shapes.tokens.front();
  profile.cache = measure_cache(*communicator, folder.config.hidden_size, entry_tokens, tensor_options);

  for (const int t : sizes_to_measure(options, communicator->world_size()))
    for (const bool sequence_parallel : {false, true})
      if (!sequence_parallel || (options.sequence_parallel && t > 1))
        measure_layers(folder, shapes, {t, sequence_parallel}, {options, *device, *communicator, progress}, profile);
  std::sort(profile.measurements.begin(), profile.measurements.end(),
            [](const Measurement& a, const Measurement& b) { return a.key < b.key; });
  return result;
}

}  // namespace frostpipe
