// Oracle: the same job without a cache. Losses of every step and all weights after it must be equal within the design's
// bounds: cached activations equal computed ones, whether they are found, missing, or found at an earlier boundary.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "executor/cache/node_cache.h"
#include "executor/data/split.h"
#include "executor/runtime/rank_session.h"
#include "executor/runtime/transformer_stage.h"
#include "plan/memory.h"
#include "tests/executor/agreed_loss.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/ranks.h"
#include "tests/executor/small_model.h"
#include "tests/executor/test_device.h"

namespace frostpipe::test {
namespace {

constexpr std::uint64_t kSeed = 5;
constexpr int kSamples = 13, kBatch = 4, kStepsPerEpoch = 4;  // the last mini-batch of an epoch is short

struct Part {
  int p, d, m, first_trainable, steps;
  std::string schedule = "1F1B";
  std::vector<int> token_slices{};
};

struct CacheCase {
  DType dtype = DType::kFloat64;
  std::optional<DType> frozen_dtype = std::nullopt;
  DType stored = DType::kFloat32;  // a double run stores doubles
  Bytes memory_bytes = 1 << 20;
  Bytes disk_bytes = 0;
  bool damaged = false;  // the test writes into the store while it is used
  bool refused = false;  // rank 1 cannot open another file when the store is made
  double tolerance = 1e-9;
};

/// Flips a bit in every 100th byte of every activation store that this process has mapped.
int damage_stores() {
  int flipped = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/frostpipe-") == std::string::npos || line.find("rw-s") == std::string::npos) continue;
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    for (std::uintptr_t at = begin; at < end; at += 100, ++flipped) *reinterpret_cast<unsigned char*>(at) ^= 0x10;
  }
  return flipped;
}

/// Counts of requested samples: found at the current boundary, at an earlier one, or not at all.
struct Counts {
  std::int64_t hits = 0, rebased = 0, misses = 0;
  void add(const std::map<int, std::int64_t>& before, const std::map<int, std::int64_t>& after, int boundary) {
    for (const auto& [layer, count] : after) {
      const auto old = before.find(layer);
      (layer == 0 ? misses : layer == boundary ? hits : rebased) += count - (old == before.end() ? 0 : old->second);
    }
  }
};

struct Outcome {
  std::vector<double> losses;
  std::vector<double> weights;  // of all layers, in one row
  Counts counts;
};

/// The node's cache with the options in `with`.
std::unique_ptr<NodeCache> make_cache(const RankEnvironment& self, Communicator& communicator, const at::Device& device,
                                      const Samples& data, const TransformerConfig& config, const CacheCase& with) {
  std::vector<int> samples(kSamples);
  std::iota(samples.begin(), samples.end(), 0);
  std::vector<CacheableSample> cacheable;
  for (const int sample : samples) cacheable.push_back({.tokens = data.tokens(sample), .key = data.key(sample)});
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{3, before.rlim_max};
  if (with.refused && self.rank == 1) setrlimit(RLIMIT_NOFILE, &none);
  auto cache = std::make_unique<NodeCache>(
      NodeCacheOptions{
          .limits = {.dtype = with.stored, .memory_bytes = with.memory_bytes, .disk_bytes = with.disk_bytes},
          .disk_folder = std::filesystem::temp_directory_path(),
          .node = 0,
          .samples = samples,
          .hidden_size = config.hidden_size,
          .compute = at::TensorOptions().dtype(layer_types_of(with.dtype).computed).device(device)},
      cacheable, communicator);
  setrlimit(RLIMIT_NOFILE, &before);
  const bool says_so = cache->note().starts_with("no cache at all: rank 1: ") &&
                       cache->note().find("Too many open files") != std::string::npos;
  CHECK_RANK(says_so == with.refused, "every rank has the note: " + cache->note());
  return cache;
}

/// One rank damages the store that all use.
void damage_together(const RankEnvironment& self, Communicator& communicator) {
  communicator.control_group().barrier();
  if (self.rank == 0) CHECK_RANK(damage_stores() > 0, "a store is mapped");
  communicator.control_group().barrier();
}

/// The weights of all layers in one row, on every rank.
std::vector<double> weights_of(RankSession& session, const Model& model, Communicator& communicator) {
  const auto holders = session.parts_of_layers();
  std::vector<double> weights;
  for (int layer = 0; layer < static_cast<int>(model.layers.size()); ++layer) {
    std::vector<double> values(model.layers[layer].parameter_count, 0.0);
    if (holders[layer].front().rank == communicator.rank()) {
      const at::Tensor all = session.layers().at(layer).weights.to(at::kCPU, at::kDouble);
      std::copy_n(all.data_ptr<double>(), values.size(), values.begin());
    }
    values = communicator.sum(std::move(values));
    weights.insert(weights.end(), values.begin(), values.end());
  }
  return weights;
}

Outcome run(const RankEnvironment& self, Communicator& communicator, ComputeDevice& device,
            const std::vector<Part>& parts, const CacheCase& with, bool cached) {
  const bool is_sliced = std::ranges::any_of(parts, [](const Part& part) { return !part.token_slices.empty(); });
  const TransformerConfig config =
      is_sliced ? small_config(Family::gpt2, Task::causal_language_modeling) : small_config();
  const Model model = model_of(config, "small");
  const std::unique_ptr<Samples> data = small_samples(config, kSamples);
  const std::unique_ptr<NodeCache> cache =
      cached ? make_cache(self, communicator, device.torch_device(), *data, config, with) : nullptr;
  const TransformerStageFactory factory({.config = config,
                                         .model = model,
                                         .data = *data,
                                         .types = layer_types_of(with.dtype, with.frozen_dtype),
                                         .device = device.torch_device(),
                                         .optimizer = Optimizer::kSgd,
                                         .cache = cached ? &cache->view() : nullptr});
  RankSession session(model, factory, communicator, device, Optimizer::kSgd, with.dtype);
  Outcome outcome;
  const auto batch_of = [&](int step, std::vector<int>& order) {
    order = epoch_order(kSamples, kSeed, step / kStepsPerEpoch);
    return mini_batch(*data, order, kBatch, step % kStepsPerEpoch);
  };
  int step = 0;
  for (const Part& part : parts) {
    const auto found_before = cached ? cache->view().counts().found : std::map<int, std::int64_t>{};
    Phase phase = small_phase(part.p, part.d, part.m, part.schedule, part.first_trainable);
    phase.token_slices = part.token_slices;
    phase.cache.on = cached && part.first_trainable > 0;
    if (step == 0) {
      session.start(phase, step, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
        randomise_layer(config, layer, kSeed, state);
      });
    } else {
      session.enter(phase);
    }
    if (phase.cache.on) cache->set_boundary(phase.first_trainable_layer, session.layers(), session.parts_of_layers());
    for (int i = 0; i < part.steps; ++i, ++step) {
      if (phase.cache.on && with.damaged && i % 3 == 1) damage_together(self, communicator);
      std::vector<int> order, next_order;
      const MiniBatch batch = batch_of(step, order), next = batch_of(step + 1, next_order);
      Trace trace;
      IterationResult result;
      if (session.runner()) {
        result = session.runner()->run_iteration(
            batch, &next, step,
            {.rule = {.optimizer = Optimizer::kSgd, .learning_rate = 0.05, .step = step + 1}, .gradient_clip = 1},
            trace);
      }
      outcome.losses.push_back(agreed_loss(communicator, result));
    }
    if (cached) outcome.counts.add(found_before, cache->view().counts().found, part.first_trainable);
  }
  outcome.weights = weights_of(session, model, communicator);
  return outcome;
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0, reference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += (a[i] - b[i]) * (a[i] - b[i]);
    reference += b[i] * b[i];
  }
  return std::sqrt(squares / reference);
}

/// The counts over all ranks, for a test's expectations of hits.
Counts cached_equals_computed(const RankEnvironment& self, const std::vector<Part>& parts, const CacheCase& with) {
  const auto device = test_device(self.local_rank);
  const auto communicator = Communicator::connect(self, *device);
  const Outcome computed = run(self, *communicator, *device, parts, with, false);
  const Outcome cached = run(self, *communicator, *device, parts, with, true);
  for (std::size_t step = 0; step < computed.losses.size(); ++step) {
    CHECK_RANK(
        std::abs(cached.losses[step] - computed.losses[step]) <= with.tolerance * (1 + std::abs(computed.losses[step])),
        fmt::format("step {}: loss {} instead of {}", step, cached.losses[step], computed.losses[step]));
  }
  CHECK_RANK(difference(cached.weights, computed.weights) <= with.tolerance,
             fmt::format("weights differ by {}", difference(cached.weights, computed.weights)));
  const std::vector<double> sums =
      communicator->sum({double(cached.counts.hits), double(cached.counts.rebased), double(cached.counts.misses)});
  return {std::int64_t(sums[0]), std::int64_t(sums[1]), std::int64_t(sums[2])};
}

// Two steps without frozen layers; then 3 layers are frozen until the second epoch after that, then 5, then all except
// the head.
const std::vector<Part> kOneStageAlways{{1, 2, 2, 0, 2}, {1, 2, 2, 3, 10}, {1, 2, 1, 5, 6}, {1, 2, 1, 7, 10}};
const std::vector<Part> kFourTwoOne{{4, 1, 2, 0, 2},
                                    {4, 1, 2, 3, 8},
                                    {2, 2, 2, 3, 5},
                                    {2, 2, 2, 5, 7},
                                    {1, 4, 1, 7, 9}};  // prefixes over several stages
const std::vector<Part> kJoinedLater{
    {2, 1, 2, 0, 1}, {2, 1, 2, 3, 7}, {1, 4, 1, 3, 6}, {1, 4, 1, 5, 6}};  // ranks 2 and 3 idle at first

RANK_TEST(Cache, AcrossReBasesEqualsComputing, 2) {
  const Counts counts = cached_equals_computed(self, kOneStageAlways, {});
  CHECK_RANK(counts.hits > 0 && counts.rebased > 0 && counts.misses > 0, "all three occur");
  // From step 4 on, every sample has been seen at the first boundary once the epoch that began with step 4 is over:
  // steps 8 to 11 only hit (13 samples).
  CHECK_RANK(counts.misses <= 2 * kSamples, fmt::format("{} misses", counts.misses));
}

RANK_TEST(Cache, InSinglePrecisionEqualsComputing, 2) {
  cached_equals_computed(self, kOneStageAlways,
                         {.dtype = DType::kFloat32, .stored = DType::kFloat32, .tolerance = 1e-5});
}

// bfloat16 keeps 8 bits: relative rounding 2^-9 = 0.002 of each stored value.
RANK_TEST(Cache, StoredAsBfloat16IsWithinItsRounding, 2) {
  cached_equals_computed(self, kOneStageAlways,
                         {.dtype = DType::kFloat32, .stored = DType::kBFloat16, .tolerance = 4e-3});
}

// A cached row has the same bfloat16 values; an activation computed in a batch with other samples may be rounded
// differently.
RANK_TEST(Cache, OfFrozenLayersInBfloat16EqualsComputing, 2) {
  cached_equals_computed(
      self, kOneStageAlways,
      {.dtype = DType::kFloat32, .frozen_dtype = DType::kBFloat16, .stored = DType::kBFloat16, .tolerance = 4e-3});
}

RANK_TEST(Cache, WithAPrefixOverSeveralStagesEqualsComputing, 4) { cached_equals_computed(self, kFourTwoOne, {}); }

/// Three of the first stage's four layers are frozen, so the cached activation is the input of the fourth's I and W.
RANK_TEST(Cache, WithASplitBackwardEqualsComputing, 2) {
  const Counts counts = cached_equals_computed(self, {{2, 1, 3, 0, 2, "ZB-H1"}, {2, 1, 3, 3, 10, "ZB-H1"}}, {});
  CHECK_RANK(counts.hits > 0 && counts.misses > 0, "both occur");
}

/// Samples have 3 to 9 tokens, so some end before the last slices. Entries are whole samples, whatever the slices.
RANK_TEST(Cache, WithTokenSlicesAcrossReBasesEqualsComputing, 2) {
  const Counts counts = cached_equals_computed(self,
                                               {{1, 2, 2, 0, 2, "TeraPipe", {2, 3, 1, 3}},
                                                {1, 2, 2, 3, 10, "TeraPipe", {2, 3, 1, 3}},
                                                {1, 2, 1, 5, 6, "Seq1F1B", {4, 5}},
                                                {1, 2, 1, 7, 10, "1F1B"}},
                                               {});
  CHECK_RANK(counts.hits > 0 && counts.rebased > 0 && counts.misses > 0, "all three occur");
}

RANK_TEST(Cache, WithTokenSlicesAndAPrefixOverSeveralStagesEqualsComputing, 4) {
  cached_equals_computed(self,
                         {{4, 1, 2, 3, 8, "Seq1F1B", {4, 5}},
                          {2, 2, 2, 3, 5, "Seq1F1B", {1, 8}},
                          {2, 2, 2, 5, 7, "TeraPipe", {3, 3, 3}},
                          {1, 4, 1, 7, 9, "TeraPipe", {3, 6}}},
                         {});
}

RANK_TEST(Cache, ReadByRanksThatJoinedLaterEqualsComputing, 4) {
  const Counts counts = cached_equals_computed(self, kJoinedLater, {});
  CHECK_RANK(counts.hits > kSamples, "the newcomers read what others have written");
}

RANK_TEST(Cache, WithRoomForSomeSamplesEqualsComputing, 2) {
  // There is room for about a third of the samples (3 to 9 tokens of 16 doubles); the others are computed each time.
  const Counts counts = cached_equals_computed(self, kOneStageAlways, {.memory_bytes = 4096});
  CHECK_RANK(counts.hits > 0 && counts.misses > 2 * kSamples,
             fmt::format("{} hits, {} misses", counts.hits, counts.misses));
}

RANK_TEST(Cache, SpilledToDiskEqualsComputing, 2) {
  const Counts counts = cached_equals_computed(self, kOneStageAlways, {.memory_bytes = 4096, .disk_bytes = 1 << 20});
  CHECK_RANK(counts.hits > 0 && counts.misses <= 2 * kSamples,
             fmt::format("{} hits, {} misses", counts.hits, counts.misses));
}

RANK_TEST(Cache, DamagedWhileInUseEqualsComputing, 2) {
  const Counts counts = cached_equals_computed(self, kOneStageAlways, {.damaged = true});
  CHECK_RANK(counts.misses > 2 * kSamples, fmt::format("{} hits, {} misses", counts.hits, counts.misses));
}

RANK_TEST(Cache, WithoutRoomEqualsComputing, 2) {
  const Counts counts = cached_equals_computed(self, kOneStageAlways, {.memory_bytes = 0});
  CHECK_RANK(counts.hits == 0 && counts.rebased == 0, "nothing is kept");
}

RANK_TEST(Cache, IsUsedByNoRankIfOneRankCannotUseIt, 2) {
  const Counts counts = cached_equals_computed(self, kOneStageAlways, {.refused = true});
  CHECK_RANK(counts.hits == 0 && counts.rebased == 0, "nobody has it: rank 0 neither");
}

/// A GPU that waits for a lost rank goes on with undefined data when its rank ends the groups. If that were written to
/// the cache, it would be found for ever. On the CPU no operation is pending. Oracle: the rule.
RANK_TEST(Cache, KeepsNothingThatAGpuHadAfterALoss, 1) {
  const auto device = test_device(self.local_rank);
  const auto communicator = Communicator::connect(self, *device);
  const TransformerConfig config = small_config();
  const Model model = model_of(config, "small");
  const std::unique_ptr<Samples> data = small_samples(config, kSamples);
  const auto cache = make_cache(self, *communicator, device->torch_device(), *data, config, {});
  const TransformerStageFactory factory({.config = config,
                                         .model = model,
                                         .data = *data,
                                         .types = layer_types_of(DType::kFloat32),
                                         .device = device->torch_device(),
                                         .cache = &cache->view()});
  RankSession session(model, factory, *communicator, *device, Optimizer::kSgd, DType::kFloat32);
  Phase phase = small_phase(1, 1, 2, "1F1B", /*first_trainable_layer=*/3);
  phase.cache.on = true;
  session.start(phase, 0, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>&) {
    randomise_layer(config, layer, kSeed, state);
  });
  cache->set_boundary(phase.first_trainable_layer, session.layers(), session.parts_of_layers());
  const std::vector<int> order = epoch_order(kSamples, kSeed, 0);
  const MiniBatch batch = mini_batch(*data, order, kBatch, 0);
  communicator->close_connections();
  bool is_lost = false;
  try {
    Trace trace;
    session.runner()->run_iteration(batch, nullptr, 0, {.rule = {.optimizer = Optimizer::kSgd}}, trace);
  } catch (const PeerLost&) {
    is_lost = true;
  }
  CHECK_RANK(is_lost == !device->torch_device().is_cpu(), "the iteration counts on a CPU alone");
  CHECK_RANK(cache->view().counts().written == (is_lost ? 0 : kBatch),
             fmt::format("{} entries", cache->view().counts().written));
}

}  // namespace
}  // namespace frostpipe::test
