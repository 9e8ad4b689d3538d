#include "executor/data/data_shards.h"

#include <algorithm>

#include "executor/data/split.h"
#include "plan/batch.h"

namespace frostpipe {

std::vector<int> nodes_of_logical_ranks(std::span<const int> logical_ranks, int num_logical_ranks, int num_nodes) {
  std::vector<int> nodes;
  for (const int logical_rank : logical_ranks) nodes.push_back(logical_rank * num_nodes / num_logical_ranks);
  return nodes;
}

std::vector<std::vector<int>> data_shards(const std::vector<int>& samples, int num_shards) {
  std::vector<std::vector<int>> shards(num_shards);
  for (std::size_t i = 0; i < samples.size(); ++i) shards[i % num_shards].push_back(samples[i]);
  return shards;
}

void group_by_length(std::vector<int>& order, const LengthGrouping& grouping, std::uint64_t seed, int epoch,
                     const std::function<int(int sample)>& length_of) {
  const auto& [global_batch_size, num_shards, num_mini_batches] = grouping;
  const std::size_t batch = static_cast<std::size_t>(global_batch_size);
  const std::size_t all_batches = (order.size() + batch - 1) / batch;
  for (std::size_t first = 0; first < all_batches; first += static_cast<std::size_t>(num_mini_batches)) {
    const int count = static_cast<int>(std::min<std::size_t>(num_mini_batches, all_batches - first));
    const std::vector<int> turns = epoch_order(count, seed + first, epoch);  // the k-th shortest samples go to
                                                                             // mini-batch turns[k]
    for (int shard = 0; shard < num_shards; ++shard) {
      const auto part_of = [&](int turn) {
        const std::size_t begin = (first + static_cast<std::size_t>(turn)) * batch;
        const int size = static_cast<int>(std::min(batch, order.size() - begin));
        const SampleRange part = split_evenly(size, num_shards)[shard];
        return std::span(order).subspan(begin + static_cast<std::size_t>(part.begin),
                                        static_cast<std::size_t>(part.end - part.begin));
      };
      std::vector<int> samples;
      for (const int turn : turns) samples.insert(samples.end(), part_of(turn).begin(), part_of(turn).end());
      std::stable_sort(samples.begin(), samples.end(), [&](int a, int b) { return length_of(a) < length_of(b); });
      auto next = samples.begin();
      for (const int turn : turns) {
        const std::span<int> part = part_of(turn);
        std::copy_n(next, part.size(), part.begin());
        next += static_cast<std::ptrdiff_t>(part.size());
      }
    }
  }
}

void sort_by_length(std::vector<int>& order, int global_batch_size, int num_shards,
                    const std::function<int(int sample)>& length_of) {
  for (std::size_t begin = 0; begin < order.size(); begin += static_cast<std::size_t>(global_batch_size)) {
    const int size = static_cast<int>(std::min<std::size_t>(global_batch_size, order.size() - begin));
    for (const SampleRange& part : split_evenly(size, num_shards)) {
      const auto first = order.begin() + static_cast<std::ptrdiff_t>(begin);
      std::stable_sort(first + part.begin, first + part.end, [&](int a, int b) { return length_of(a) < length_of(b); });
    }
  }
}

std::vector<int> sharded_epoch_order(const std::vector<std::vector<int>>& shards, int global_batch_size,
                                     std::uint64_t seed, int epoch) {
  const int num_shards = static_cast<int>(shards.size());
  std::vector<std::vector<int>> waiting;  // by shard; the next sample is last
  std::size_t total = 0;
  for (int shard = 0; shard < num_shards; ++shard) {
    std::vector<int> order =
        epoch_order(static_cast<int>(shards[shard].size()), seed + static_cast<std::uint64_t>(shard), epoch);
    for (int& index : order) index = shards[shard][index];
    std::reverse(order.begin(), order.end());
    total += order.size();
    waiting.push_back(std::move(order));
  }
  std::vector<int> order;
  while (order.size() < total) {
    const int size = static_cast<int>(std::min<std::size_t>(global_batch_size, total - order.size()));
    std::vector<int> shares;
    for (const SampleRange& range : split_evenly(size, num_shards)) shares.push_back(range.end - range.begin);
    int missing = 0;  // samples that an exhausted shard lacks are taken from the others
    for (int shard = 0; shard < num_shards; ++shard) {
      const int given = std::min(shares[shard], static_cast<int>(waiting[shard].size()));
      missing += shares[shard] - given;
      shares[shard] = given;
    }
    for (int shard = 0; shard < num_shards; ++shard) {
      const int more = std::min(missing, static_cast<int>(waiting[shard].size()) - shares[shard]);
      missing -= more;
      std::vector<int>& from = waiting[shard];
      order.insert(order.end(), from.rbegin(), from.rbegin() + shares[shard] + more);
      from.resize(from.size() - shares[shard] - more);
    }
  }
  return order;
}

std::vector<int> training_order(const std::vector<std::vector<int>>& shards, int global_batch_size, int num_grouped,
                                std::uint64_t seed, int epoch, const std::function<int(int sample)>& length_of) {
  const int num_shards = static_cast<int>(shards.size());
  std::vector<int> order = sharded_epoch_order(shards, global_batch_size, seed, epoch);
  if (num_grouped > 1) group_by_length(order, {global_batch_size, num_shards, num_grouped}, seed, epoch, length_of);
  sort_by_length(order, global_batch_size, num_shards, length_of);
  return order;
}

}  // namespace frostpipe
