#pragma once
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "executor/cache/activation_cache.h"
#include "executor/communication/tensor_parallel.h"
#include "executor/loading/samples.h"
#include "plan/batch.h"

namespace frostpipe {

/// What pipeline rank 0 reads of the cache in one iteration: its replica's share of the mini-batch at once, handed out
/// by micro-batch.
class CachedShare {
 public:
  /// Reads nothing where `cache` is null. `deepest_layer`: entries from after the stage are of no use to it. `ranks`:
  /// that share the stage's layers; together they compute a sample that not all of them have found at the same layer.
  CachedShare(ActivationCache* cache, int deepest_layer, TensorRanks ranks = {})
      : cache_(cache), deepest_layer_(deepest_layer), ranks_(std::move(ranks)) {}

  /// Takes the rows of `share` of `batch`, and starts to read those of `next_share` of the mini-batch after it, if
  /// there is one.
  void begin_iteration(const MiniBatch& batch, SampleRange share, const MiniBatch* next, SampleRange next_share) {
    if (!cache_) return;
    share_ = share;
    lengths_ = lengths_of(batch, share);
    rows_ = cache_->take(samples_of(batch, share), deepest_layer_);
    if (ranks_) agree();
    cache_->count_found(rows_);
    if (next) cache_->read_ahead(samples_of(*next, next_share), deepest_layer_);
  }

  /// Of samples `range` of the mini-batch, which lie in the share.
  CachedRows rows(SampleRange range) const {
    const auto begin = lengths_.begin() + (range.begin - share_.begin), end = begin + (range.end - range.begin);
    const auto layers = rows_.layers.begin() + (range.begin - share_.begin);
    CachedRows rows{.activations = {}, .layers = {layers, layers + (range.end - range.begin)}};
    if (rows_.activations.defined())
      rows.activations = rows_.activations.narrow(0, std::accumulate(lengths_.begin(), begin, std::int64_t{0}),
                                                  std::accumulate(begin, end, std::int64_t{0}));
    return rows;
  }

 private:
  /// A rank may have come too early for an entry that another one finds. Layers are the same on all t ranks where
  /// t times the sum of their squares is the square of their sum.
  void agree() {
    const auto t = static_cast<double>(ranks_->slice.of);
    std::vector<double> sums;
    for (const int layer : rows_.layers) sums.insert(sums.end(), {layer * 1.0, layer * 1.0 * layer});
    sums = ranks_->sum(std::move(sums));
    for (std::size_t i = 0; i < rows_.layers.size(); ++i)
      if (t * sums[2 * i + 1] != sums[2 * i] * sums[2 * i]) rows_.layers[i] = 0;
  }

  static std::vector<std::int64_t> lengths_of(const MiniBatch& batch, SampleRange range) {
    return {batch.lengths.begin() + range.begin, batch.lengths.begin() + range.end};
  }

  ActivationCache* cache_;
  int deepest_layer_;
  TensorRanks ranks_;
  SampleRange share_{};
  std::vector<std::int64_t> lengths_;  // of the share's samples
  CachedRows rows_;
};

}  // namespace frostpipe
