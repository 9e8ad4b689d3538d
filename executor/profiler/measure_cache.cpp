#include "executor/profiler/measure_cache.h"

#include <ATen/ops/randn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/statistics.h"
#include "executor/cache/node_cache.h"
#include "profiles/link_fit.h"

namespace frostpipe {
namespace {

constexpr int kSamplesPerRank = 32, kRounds = 9;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Seconds {
  double read = 0, write = 0;  // seconds per entry: median over the rounds, mean over the ranks
};

std::optional<Seconds> time_per_entry(Communicator& communicator, std::int64_t hidden_size, int tokens,
                                      const at::TensorOptions& compute) {
  const int world = communicator.world_size();
  std::vector<int> samples(static_cast<std::size_t>(kSamplesPerRank) * world);
  std::iota(samples.begin(), samples.end(), 0);
  const Bytes memory =
      (ActivationCache::entry_bytes(tokens, hidden_size, at::kFloat) + 4096) * static_cast<Bytes>(samples.size());
  NodeCache cache({.limits = {.dtype = DType::kFloat32, .memory_bytes = memory, .disk_bytes = 0},
                   .disk_folder = {},
                   .node = 0,
                   .samples = samples,
                   .hidden_size = hidden_size,
                   .compute = compute},
                  std::vector<CacheableSample>(samples.size(), {.tokens = tokens, .key = 1}), communicator);
  const double notes = communicator.sum({cache.note().empty() ? 0.0 : 1.0}).front();
  if (notes > 0) return std::nullopt;
  const std::span<const int> own(samples.data() + static_cast<std::size_t>(communicator.rank()) * kSamplesPerRank,
                                 kSamplesPerRank);
  const at::Tensor activations = at::randn({std::int64_t{kSamplesPerRank} * tokens, hidden_size}, compute);
  std::vector<double> reads, writes;
  for (int round = 0; round < kRounds; ++round) {
    cache.view().set_boundary({.layer = round + 1, .key = 1});  // at a new boundary every entry is written again
    communicator.control_group().barrier();
    Clock::time_point begin = Clock::now();
    cache.view().write(own, activations);
    writes.push_back(seconds_since(begin) / kSamplesPerRank);
    communicator.control_group().barrier();
    begin = Clock::now();
    cache.view().take(own, round + 1);
    reads.push_back(seconds_since(begin) / kSamplesPerRank);
  }
  const std::vector<double> sums = communicator.sum({quantile(reads, 0.5), quantile(writes, 0.5)});
  return Seconds{sums[0] / world, sums[1] / world};
}

TransferTime transfer_time(Bytes bytes, double seconds) { return {bytes, std::llround(1e9 * seconds)}; }

}  // namespace

std::optional<CacheSpeed> measure_cache(Communicator& communicator, std::int64_t hidden_size, int tokens,
                                        const at::TensorOptions& compute) {
  const int small = 2, large = std::max(8, tokens);
  const std::optional<Seconds> few = time_per_entry(communicator, hidden_size, small, compute);
  const std::optional<Seconds> many = time_per_entry(communicator, hidden_size, large, compute);
  if (!few || !many) return std::nullopt;
  const Bytes small_bytes = ActivationCache::entry_bytes(small, hidden_size, at::kFloat),
              large_bytes = ActivationCache::entry_bytes(large, hidden_size, at::kFloat);
  return CacheSpeed{
      .read = link_through(transfer_time(small_bytes, few->read), transfer_time(large_bytes, many->read)),
      .write = link_through(transfer_time(small_bytes, few->write), transfer_time(large_bytes, many->write))};
}

}  // namespace frostpipe
