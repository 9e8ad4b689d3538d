#pragma once
#include <numeric>
#include <span>
#include <vector>

#include "executor/cache/activation_cache.h"
#include "executor/loading/samples.h"
#include "plan/batch.h"

namespace frostpipe {

/// What pipeline rank 0 reads of the cache in one iteration: its replica's share of the mini-batch at once, handed out
/// by micro-batch.
class CachedShare {
 public:
  /// Reads nothing where `cache` is null. `deepest_layer`: entries from after the stage are of no use to it.
  CachedShare(ActivationCache* cache, int deepest_layer) : cache_(cache), deepest_layer_(deepest_layer) {}

  /// Takes the rows of `share` of `batch`, and starts to read those of `next_share` of the mini-batch after it, if
  /// there is one.
  void begin_iteration(const MiniBatch& batch, SampleRange share, const MiniBatch* next, SampleRange next_share) {
    if (!cache_) return;
    share_ = share;
    lengths_ = lengths_of(batch, share);
    rows_ = cache_->take(samples_of(batch, share), deepest_layer_);
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
  static std::vector<std::int64_t> lengths_of(const MiniBatch& batch, SampleRange range) {
    return {batch.lengths.begin() + range.begin, batch.lengths.begin() + range.end};
  }

  ActivationCache* cache_;
  int deepest_layer_;
  SampleRange share_{};
  std::vector<std::int64_t> lengths_;  // of the share's samples
  CachedRows rows_;
};

}  // namespace frostpipe
