#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace frostpipe {

struct StreamHash::State {
  XXH3_state_t value;
};

std::uint64_t hash_bytes(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

StreamHash::StreamHash() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->value); }
StreamHash::~StreamHash() = default;
void StreamHash::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->value, bytes.data(), bytes.size());
}
std::uint64_t StreamHash::value() const { return XXH3_64bits_digest(&state_->value); }

}  // namespace frostpipe
