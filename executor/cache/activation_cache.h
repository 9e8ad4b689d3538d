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

/// Identifies the output of the frozen prefix.
struct CacheBoundary {
  int layer = 0;          // the first layer after the prefix
  std::uint64_t key = 0;  // hash of the prefix's weights
  bool operator==(const CacheBoundary&) const = default;
};

/// The properties of a sample that a cache needs.
struct CacheableSample {
  std::int64_t tokens = 0;
  std::uint64_t key = 0;  // changes with the model's input for the sample
};

/// The activations of several samples, as far as the cache has them.
struct CachedRows {
  at::Tensor activations;   // packed, [tokens, hidden], 0 for missing samples; undefined if all are missing
  std::vector<int> layers;  // per sample: the layer whose input its rows are; 0 = missing
};

/// Counts of the samples that were requested from a cache and written to it.
struct CacheCounts {
  std::map<int, std::int64_t> found;  // requested samples, by the layer whose input the entry is; 0 = missing
  std::int64_t written = 0;
};

/// One rank's view of its node's activation cache. Reads and writes lists of samples, which are identified by number; a
/// thread reads ahead.
///
/// An entry's key is computed from the boundary and the sample's key, which determine the prefix's output. Do not use
/// it for data with augmentation, where a sample's input changes between epochs.
class ActivationCache {
 public:
  /// `samples` are all samples, by number. `store` must outlive the cache; null if no sample has a slot.
  /// `slot_of_sample` gives the sample's number in the store, -1 if it has no slot. `counts` are those to go on from.
  ActivationCache(ActivationStore* store, std::vector<CacheableSample> samples, std::vector<int> slot_of_sample,
                  std::int64_t hidden_size, at::ScalarType stored, at::TensorOptions compute, CacheCounts counts = {});
  ~ActivationCache();

  /// Sets the boundary at which entries are written from now on; its layer must not be before that of the last one.
  /// Entries are read from it and from earlier boundaries.
  void set_boundary(const CacheBoundary& boundary);
  /// Forgets all boundaries: entries count as missing until set_boundary() is called with the boundary of their keys.
  void forget_boundaries();

  /// Starts to read the samples in a thread. Entries stored for a layer after `deepest_layer` count as missing. A
  /// second call discards rows that have not been taken.
  void read_ahead(std::span<const int> samples, int deepest_layer);
  /// Returns the rows of these samples: those that were read ahead if the arguments are equal, otherwise read now.
  CachedRows take(std::span<const int> samples, int deepest_layer);
  /// Adds the rows to counts(). Call it once it is certain that the rows are used.
  void count_found(const CachedRows& rows);
  /// Returns the positions in `samples`, ascending, of those that have a slot but no entry at the boundary, which must
  /// be set.
  std::vector<int> missing(std::span<const int> samples) const;
  /// Stores the rows of `samples` that are missing() at the boundary. Only these are copied from the device.
  /// `activations` has the packed rows of all `samples`, [tokens, hidden].
  void write(std::span<const int> samples, const at::Tensor& activations);

  /// Returns the size of the entry of a sample of `tokens` tokens.
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
  /// Selects the rows of the samples at these positions from the packed rows of all.
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
