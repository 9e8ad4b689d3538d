#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "executor/data/tokenizers/models/flat_table.h"

namespace frostpipe {

inline constexpr std::int32_t kNoToken = -1;

/// Finds the tokens with which a text begins. It is a trie over bytes.
class TokenTree {
 public:
  void add(std::string_view token, std::int32_t id) {
    std::int32_t node = 0;
    for (const char c : token) {
      const auto [child, is_new] =
          children_.emplace(node, static_cast<unsigned char>(c), {static_cast<std::int32_t>(ids_.size()), 0});
      if (is_new) ids_.push_back(kNoToken);
      node = child.first;
    }
    ids_[static_cast<std::size_t>(node)] = id;
  }

  /// Calls found(size in bytes, id) for each token that is a prefix of `text`, the shortest first.
  template <typename Found>
  void for_each_prefix(std::string_view text, Found found) const {
    std::int32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const FlatTable::Value* child = children_.find(node, static_cast<unsigned char>(text[i]));
      if (child == nullptr) return;
      node = child->first;
      if (const std::int32_t id = ids_[static_cast<std::size_t>(node)]; id != kNoToken) found(i + 1, id);
    }
  }

 private:
  FlatTable children_;
  std::vector<std::int32_t> ids_{kNoToken};  // by node
};

}  // namespace frostpipe
