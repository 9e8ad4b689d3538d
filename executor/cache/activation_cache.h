#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace frostpipe {

class ActivationStore;

/// Where the frozen prefix ends, and everything else that decides what its output is.
struct CacheBoundary {
  int layer = 0;          // the first layer after the prefix
  std::uint64_t key = 0;  // of the prefix's weights
  bool operator==(const CacheBoundary&) const = default;
};

/// What a cache has to know of a sample.
struct CacheableSample {
  std::int64_t tokens = 0;
  std::uint64_t key = 0;  // changes with what the model is shown of the sample
};

/// Samples' activations as far as they were found.
struct CachedRows {
  at::Tensor activations;   // packed, [tokens, hidden], 0 where not found; undefined if nothing was found
  std::vector<int> layers;  // per sample: the layer that its row is the input of, 0 = not found
};

/// Samples that a cache was asked for or given.
struct CacheCounts {
  std::map<int, std::int64_t> found;  // asked for, by the layer that the entry is the input of; 0 = not found
  std::int64_t written = 0;
};

/// One rank's view of its node's activation cache: lists of samples, by number, in and out of the store, read ahead by
/// a thread.
///
/// An entry's key is made of the boundary and of the sample's own: there is no other way to change what the prefix
/// gives. Not for data whose view of a sample changes between epochs.
class ActivationCache {
 public:
  /// `samples` are all that there are, by number. `store`: null if none has a slot; it must outlive the cache.
  /// `slot_of_sample`: the sample's number in the store, -1 = has none.
  ActivationCache(ActivationStore* store, std::vector<CacheableSample> samples, std::vector<int> slot_of_sample,
                  std::int64_t hidden_size, at::ScalarType stored, at::TensorOptions compute);
  ~ActivationCache();

  /// Entries are written for this boundary from now on, and read from it or an earlier one.
  void set_boundary(const CacheBoundary& boundary);
  /// Nothing is found until the next boundary is set.
  void forget_boundaries();

  /// Starts to read; entries stored after `deepest_layer` count as not found. A second call replaces what was not
  /// taken.
  void read_ahead(std::span<const int> samples, int deepest_layer);
  /// The rows of these samples: as read ahead, or read now where others were.
  CachedRows take(std::span<const int> samples, int deepest_layer);
  /// For counts(), once it is certain which of the rows that were taken are used.
  void count_found(const CachedRows& rows);
  /// Places in the list of the samples whose entry at the boundary is missing and has room in the store, ascending.
  std::vector<int> missing(std::span<const int> samples) const;
  /// Stores the rows of those samples at the boundary; only they leave the device. `activations`: the packed rows of
  /// all `samples`, [tokens, hidden].
  void write(std::span<const int> samples, const at::Tensor& activations);

  /// Bytes that a sample of `tokens` tokens takes in a store.
  static std::int64_t entry_bytes(std::int64_t tokens, std::int64_t hidden_size, at::ScalarType stored);

  const CacheCounts& counts() const { return counts_; }

 private:
  struct Request {
    std::vector<int> samples;
    int deepest_layer = 0;
    bool operator==(const Request&) const = default;
  };
  class Reader;
  CachedRows read(const Request& request) const;
  /// Of the samples at these places, from the packed rows of all.
  at::Tensor rows_at(const std::vector<int>& places, std::span<const int> samples, const at::Tensor& activations) const;
  std::uint64_t entry_key(const CacheBoundary& boundary, int sample) const;

  ActivationStore* store_;
  std::vector<CacheableSample> samples_;
  std::vector<int> slot_of_sample_;
  std::int64_t hidden_size_;
  at::ScalarType stored_;
  at::TensorOptions compute_;
  std::vector<CacheBoundary> boundaries_;  // ascending
  CacheCounts counts_;
  std::unique_ptr<Reader> reader_;
};

}  // namespace frostpipe
