#pragma once
#include <span>

#include "executor/activation_cache.h"
#include "plan/batch.h"

namespace frostpipe {

/// What position 0 reads of the cache in one iteration: its replica's share of the mini-batch at once, handed out by
/// micro-batch.
class CachedShare {
 public:
  /// Reads nothing where `cache` is null. `deepest_layer`: entries from behind the stage are of no use to it.
  CachedShare(ActivationCache* cache, int deepest_layer) : cache_(cache), deepest_layer_(deepest_layer) {}

  /// Takes the rows of `share` of `batch`, and starts to read those of `next_share` of the mini-batch after it, if
  /// there is one.
  void begin_iteration(const MiniBatch& batch, SampleRange share, const MiniBatch* next, SampleRange next_share) {
    if (!cache_) return;
    share_ = share;
    rows_ = cache_->take(samples_of(batch, share), batch.tokens, deepest_layer_);
    if (next) cache_->read_ahead(samples_of(*next, next_share), next->tokens, deepest_layer_);
  }

  /// Of samples `range` of the mini-batch, which lie in the share.
  CachedRows rows(SampleRange range) const {
    const int offset = range.begin - share_.begin, count = range.end - range.begin;
    CachedRows rows;
    rows.layers.assign(rows_.layers.begin() + offset, rows_.layers.begin() + offset + count);
    if (rows_.activations.defined()) rows.activations = rows_.activations.narrow(0, offset, count);
    return rows;
  }

  static std::span<const int> samples_of(const MiniBatch& batch, SampleRange range) {
    return batch.samples.subspan(range.begin, range.end - range.begin);
  }

 private:
  ActivationCache* cache_;
  int deepest_layer_;
  SampleRange share_{};
  CachedRows rows_;
};

}  // namespace frostpipe
