#include "executor/cache/activation_cache.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <future>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "executor/cache/store/activation_store.h"
#include "executor/device/to_device.h"

namespace frostpipe {
namespace {

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

}  // namespace

/// Reads one request ahead in a thread.
class ActivationCache::Reader {
 public:
  void start(Request request, const ActivationCache& cache) {
    request_ = std::move(request);
    rows_ = std::async(std::launch::async, [this, &cache] { return cache.read(request_); });
  }
  /// Returns the rows if `request` is the one that was started.
  std::optional<CachedRows> take(const Request& request) {
    if (!rows_.valid()) return std::nullopt;
    CachedRows rows = rows_.get();
    return request == request_ ? std::optional(std::move(rows)) : std::nullopt;
  }
  void forget() {
    if (rows_.valid()) rows_.wait();
    rows_ = {};
  }

 private:
  Request request_;
  std::future<CachedRows> rows_;
};

ActivationCache::ActivationCache(ActivationStore* store, std::vector<CacheableSample> samples,
                                 std::vector<int> slot_of_sample, std::int64_t hidden_size, at::ScalarType stored,
                                 at::TensorOptions compute, CacheCounts counts)
    : store_(store),
      samples_(std::move(samples)),
      slot_of_sample_(std::move(slot_of_sample)),
      hidden_size_(hidden_size),
      stored_(stored),
      compute_(compute),
      counts_(std::move(counts)),
      reader_(std::make_unique<Reader>()) {}

ActivationCache::~ActivationCache() { reader_->forget(); }

void ActivationCache::set_boundary(const CacheBoundary& boundary) {
  FROSTPIPE_CHECK(boundary.layer > 0, "a boundary has a prefix");
  FROSTPIPE_CHECK(boundaries_.empty() || boundaries_.back().layer <= boundary.layer, "a prefix only grows");
  reader_->forget();
  if (boundaries_.empty() || boundaries_.back() != boundary) boundaries_.push_back(boundary);
}

void ActivationCache::forget_boundaries() {
  reader_->forget();
  boundaries_.clear();
}

std::uint64_t ActivationCache::entry_key(const CacheBoundary& boundary, int sample) const {
  const std::array<std::uint64_t, 3> parts{static_cast<std::uint64_t>(boundary.layer), boundary.key,
                                           samples_[sample].key};
  return std::max<std::uint64_t>(1, hash_bytes(std::as_bytes(std::span(parts))));
}

std::int64_t ActivationCache::entry_bytes(std::int64_t tokens, std::int64_t hidden_size, at::ScalarType stored) {
  return tokens * hidden_size * static_cast<std::int64_t>(c10::elementSize(stored));
}

CachedRows ActivationCache::read(const Request& request) const {
  CachedRows rows;
  const auto count = static_cast<std::int64_t>(request.samples.size());
  rows.layers.assign(request.samples.size(), 0);
  std::int64_t all_tokens = 0;
  for (const int sample : request.samples) all_tokens += samples_[sample].tokens;
  at::Tensor host;
  std::int64_t end = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const int sample = request.samples[i];
    const std::int64_t tokens = samples_[sample].tokens, begin = std::exchange(end, end + tokens);
    if (slot_of_sample_[sample] < 0) continue;
    std::vector<std::uint64_t> keys;
    for (const CacheBoundary& boundary : boundaries_) {
      if (boundary.layer <= request.deepest_layer) keys.push_back(entry_key(boundary, sample));
    }
    const at::Tensor entry = at::empty({tokens, hidden_size_}, stored_);
    const std::uint64_t found = store_->read(slot_of_sample_[sample], keys, bytes_of(entry));
    if (found == 0) continue;
    // boundaries_ ascend, so the usable ones come first: keys[k] belongs to boundaries_[k].
    rows.layers[i] = boundaries_[std::find(keys.begin(), keys.end(), found) - keys.begin()].layer;
    if (!host.defined()) host = at::zeros({all_tokens, hidden_size_}, compute_.device(at::kCPU));
    host.narrow(0, begin, tokens).copy_(entry);
  }
  if (host.defined()) rows.activations = to_device(host, compute_.device());
  return rows;
}

void ActivationCache::read_ahead(std::span<const int> samples, int deepest_layer) {
  reader_->forget();
  if (boundaries_.empty()) return;
  reader_->start({{samples.begin(), samples.end()}, deepest_layer}, *this);
}

CachedRows ActivationCache::take(std::span<const int> samples, int deepest_layer) {
  const Request request{{samples.begin(), samples.end()}, deepest_layer};
  std::optional<CachedRows> ready = reader_->take(request);
  return ready ? std::move(*ready) : read(request);
}

void ActivationCache::count_found(const CachedRows& rows) {
  for (const int layer : rows.layers) ++counts_.found[layer];
}

std::vector<int> ActivationCache::missing(std::span<const int> samples) const {
  std::vector<int> places;
  for (int i = 0; i < static_cast<int>(samples.size()); ++i) {
    const int slot = slot_of_sample_[samples[i]];
    if (slot >= 0 && store_->has_slot(slot) && !store_->holds(slot, entry_key(boundaries_.back(), samples[i])))
      places.push_back(i);
  }
  return places;
}

at::Tensor ActivationCache::rows_at(const std::vector<int>& places, std::span<const int> samples,
                                    const at::Tensor& activations) const {
  if (places.size() == samples.size()) return activations;
  std::vector<std::int64_t> begins;
  std::int64_t end = 0;
  for (const int sample : samples) begins.push_back(std::exchange(end, end + samples_[sample].tokens));
  std::vector<at::Tensor> rows;
  for (const int place : places) rows.push_back(activations.narrow(0, begins[place], samples_[samples[place]].tokens));
  return at::cat(rows);
}

void ActivationCache::write(std::span<const int> samples, const at::Tensor& activations) {
  const std::vector<int> places = missing(samples);
  if (places.empty()) return;
  const at::Tensor host = rows_at(places, samples, activations.detach()).to(stored_).to(at::kCPU);
  std::int64_t end = 0;
  for (const int place : places) {
    const int sample = samples[place];
    const std::int64_t begin = std::exchange(end, end + samples_[sample].tokens);
    const at::Tensor entry = host.narrow(0, begin, samples_[sample].tokens);
    if (store_->write(slot_of_sample_[sample], entry_key(boundaries_.back(), sample), bytes_of(entry)))
      ++counts_.written;
  }
}

}  // namespace frostpipe
