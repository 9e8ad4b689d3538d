#pragma once
#include <numeric>
#include <utility>
#include <vector>

#include "executor/cache/activation_cache.h"
#include "executor/communication/tensor_parallel.h"
#include "executor/loading/samples.h"
#include "plan/batch.h"

namespace frostpipe {

/// The cached rows that a rank with stage 0 uses in one iteration: those of its replica's share of the mini-batch. They
/// are read together and given out by micro-batch.
class CachedShare {
 public:
  /// Reads nothing if `cache` is null. Entries for layers after `deepest_layer`, the end of the stage's frozen layers,
  /// are not used. `ranks` are the tensor ranks of the stage: a sample counts as missing unless all of them have found
  /// it at the same layer.
  CachedShare(ActivationCache* cache, int deepest_layer, TensorRanks ranks = {})
      : cache_(cache), deepest_layer_(deepest_layer), ranks_(std::move(ranks)) {}

  /// Gets the rows of `share` of `batch`, and starts to read those of `next_share` of `next`, the mini-batch to read
  /// ahead, unless it is null.
  void begin_iteration(const MiniBatch& batch, SampleRange share, const MiniBatch* next, SampleRange next_share) {
    if (!cache_) return;
    share_ = share;
    lengths_ = lengths_of(batch, share);
    rows_ = cache_->take(samples_of(batch, share), deepest_layer_);
    if (ranks_) agree();
    cache_->count_found(rows_);
    if (next) cache_->read_ahead(samples_of(*next, next_share), deepest_layer_);
  }

  /// Returns the rows of samples `range` of the mini-batch, which must lie in the share.
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
  /// Treats entries as missing that only some tensor ranks have found, since one may read before an entry is written.
  /// The layers on all t ranks are equal if and only if t times the sum of their squares is the square of their sum.
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
  std::vector<std::int64_t> lengths_;  // tokens of the share's samples
  CachedRows rows_;
};

}  // namespace frostpipe
