#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace frostpipe {

/// A hash map from pairs of numbers to pairs of numbers, without removal. It uses open addressing, so a look-up touches
/// one place of memory where std::unordered_map touches two or three.
class FlatTable {
 public:
  struct Value {
    std::int32_t first = 0;
    std::int32_t second = 0;
  };

  explicit FlatTable(std::size_t expected = 0) : entries_(size_for(expected)) {}

  /// Returns the value of the pair (a, b); null if there is none. The next emplace() invalidates it.
  const Value* find(std::int32_t a, std::int32_t b) const {
    const std::uint64_t key = key_of(a, b);
    for (std::size_t i = place_of(key);; i = (i + 1) & (entries_.size() - 1)) {
      if (entries_[i].key == key) return &entries_[i].value;
      if (entries_[i].key == kNoKey) return nullptr;
    }
  }

  /// Inserts `value` unless the pair is present. Returns the pair's value, and whether it is new. Neither `a` nor `b`
  /// may be negative.
  std::pair<Value, bool> emplace(std::int32_t a, std::int32_t b, Value value) {
    if (2 * (size_ + 1) > entries_.size()) grow();
    const std::uint64_t key = key_of(a, b);
    std::size_t i = place_of(key);
    while (entries_[i].key != key && entries_[i].key != kNoKey) i = (i + 1) & (entries_.size() - 1);
    if (entries_[i].key == key) return {entries_[i].value, false};
    entries_[i] = {key, value};
    ++size_;
    return {value, true};
  }

 private:
  static constexpr std::uint64_t kNoKey = ~std::uint64_t{0};
  struct Entry {
    std::uint64_t key = kNoKey;
    Value value;
  };

  static std::uint64_t key_of(std::int32_t a, std::int32_t b) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 | static_cast<std::uint32_t>(b);
  }
  static std::size_t size_for(std::size_t expected) {
    std::size_t size = 16;
    while (size < 2 * expected + 2) size *= 2;
    return size;
  }
  std::size_t place_of(std::uint64_t key) const {
    key *= 0x9E3779B97F4A7C15;
    return static_cast<std::size_t>(key ^ key >> 32) & (entries_.size() - 1);
  }
  void grow() {
    std::vector<Entry> old(2 * entries_.size());
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.key == kNoKey) continue;
      std::size_t i = place_of(entry.key);
      while (entries_[i].key != kNoKey) i = (i + 1) & (entries_.size() - 1);
      entries_[i] = entry;
    }
  }

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

}  // namespace frostpipe
