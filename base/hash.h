#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace frostpipe {

/// Returns the 64-bit XXH3 hash. It detects accidental changes, not deliberate ones.
std::uint64_t hash_bytes(std::span<const std::byte> bytes);

/// Hashes bytes that come in parts: value() equals hash_bytes() of all bytes added so far.
class StreamHash {
 public:
  StreamHash();
  ~StreamHash();
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace frostpipe
