#include "executor/data/tokenizers/byte_level_bpe.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include "executor/data/tokenizers/byte_level_model.h"
#include "executor/data/tokenizers/byte_level_words.h"
#include "profiles/error.h"
#include "profiles/error_values.h"

namespace frostpipe {
namespace {

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace

/// One call of encode(): takes text, appends ids.
class ByteLevelBpe::Encoder {
 public:
  Encoder(const ByteLevelBpe& tokenizer, std::vector<std::int32_t>& ids) : tokenizer_(tokenizer), ids_(ids) {}

  /// Text without special tokens.
  void add_text(std::string_view text) {
    while (!text.empty()) {
      const std::size_t size = size_of_first_word(text);
      add_word(text.substr(0, size));
      text.remove_prefix(size);
    }
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  static constexpr std::int32_t kMergedAway = -1;
  static constexpr std::size_t kLongestWordRemembered = 64;  // bytes

  /// A token of the word that is being merged, in a doubly linked list by index.
  struct Symbol {
    std::int32_t id;
    std::size_t previous;
    std::size_t next;
  };
  /// Two neighbours that may be merged: what stood at `position` and after it when this was noted. Out of date if
  /// something else stands there now.
  struct Candidate {
    Merge merge;
    std::int32_t left;
    std::int32_t right;
    std::size_t position;
  };
  /// For a heap with the lowest rank on top, and leftmost among equals.
  static bool comes_later(const Candidate& a, const Candidate& b) {
    return a.merge.rank != b.merge.rank ? a.merge.rank > b.merge.rank : a.position > b.position;
  }
  /// Where in ids_ the tokens of a word stand.
  struct IdRange {
    std::size_t begin;
    std::size_t size;
  };

  void add_word(std::string_view word) {
    const bool remember = word.size() <= kLongestWordRemembered;
    if (remember) {
      if (const auto found = known_words_.find(word); found != known_words_.end()) return repeat(found->second);
    }
    const std::size_t begin = ids_.size();
    split_into_bytes(word);
    merge_by_rank();
    for (std::size_t i = 0; i != kNone; i = symbols_[i].next) ids_.push_back(symbols_[i].id);
    if (remember) known_words_.emplace(word, IdRange{.begin = begin, .size = ids_.size() - begin});
  }

  void repeat(IdRange range) {
    for (std::size_t i = 0; i < range.size; ++i) ids_.push_back(ids_[range.begin + i]);
  }

  void split_into_bytes(std::string_view word) {
    symbols_.clear();
    for (std::size_t position = 0; position < word.size();) {
      const std::size_t begin = position;
      const bool whole = next_code_point(word, position).has_value();
      for (const char byte : whole ? word.substr(begin, position - begin) : kReplacementCharacter) {
        const std::size_t i = symbols_.size();
        symbols_.push_back({.id = tokenizer_.id_of_byte_[static_cast<std::uint8_t>(byte)],
                            .previous = i == 0 ? kNone : i - 1,
                            .next = i + 1});
      }
    }
    symbols_.back().next = kNone;
  }

  void merge_by_rank() {
    candidates_.clear();
    for (std::size_t i = 0; i < symbols_.size(); ++i) note_candidate_at(i);
    while (!candidates_.empty()) {
      std::pop_heap(candidates_.begin(), candidates_.end(), comes_later);
      const Candidate best = candidates_.back();
      candidates_.pop_back();
      Symbol& symbol = symbols_[best.position];
      if (symbol.id != best.left || symbol.next == kNone || symbols_[symbol.next].id != best.right)
        continue;  // out of date
      Symbol& absorbed = symbols_[symbol.next];
      symbol.id = best.merge.id;
      symbol.next = absorbed.next;
      absorbed.id = kMergedAway;
      if (symbol.next != kNone) symbols_[symbol.next].previous = best.position;
      if (symbol.previous != kNone) note_candidate_at(symbol.previous);
      note_candidate_at(best.position);
    }
  }

  void note_candidate_at(std::size_t position) {
    const Symbol& symbol = symbols_[position];
    if (symbol.next == kNone) return;
    const std::int32_t right = symbols_[symbol.next].id;
    const auto found = tokenizer_.merges_.find(pair_key(symbol.id, right));
    if (found == tokenizer_.merges_.end()) return;
    candidates_.push_back({.merge = found->second, .left = symbol.id, .right = right, .position = position});
    std::push_heap(candidates_.begin(), candidates_.end(), comes_later);
  }

  const ByteLevelBpe& tokenizer_;
  std::vector<std::int32_t>& ids_;
  std::unordered_map<std::string_view, IdRange> known_words_;  // of this text, which outlives the Encoder
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;
};

ByteLevelBpe::ByteLevelBpe(const std::filesystem::path& model_folder) {
  const ByteLevelModel model = read_byte_level_model(model_folder);
  added_tokens_ = AddedTokens(model.added_tokens);
  std::unordered_set<std::string_view> spelled;  // in the files as in texts
  for (const AddedToken& token : model.added_tokens) spelled.insert(token.content);
  std::unordered_map<std::string_view, std::int32_t> ids;  // by what the files write
  for (const std::string& token : model.tokens) {
    std::optional<std::string> bytes = spelled.contains(token) ? token : bytes_of(token);
    if (!bytes)
      throw InvalidInput(model.place + ": " + in_quotes(token),
                         "must consist of the 256 characters that stand for bytes", in_quotes(token));
    ids.emplace(token, static_cast<std::int32_t>(tokens_.size()));
    tokens_.push_back(std::move(*bytes));
  }
  const auto end_of_text = ids.find(kEndOfTextToken);
  if (end_of_text == ids.end())
    throw InvalidInput(model.place, "must contain " + std::string(kEndOfTextToken),
                       "without it among " + std::to_string(tokens_.size()) + " tokens");
  end_of_text_id_ = end_of_text->second;

  id_of_byte_.fill(-1);
  for (std::int32_t id = 0; id < vocabulary_size(); ++id)
    if (const std::string& bytes = tokens_[static_cast<std::size_t>(id)]; bytes.size() == 1)
      id_of_byte_[static_cast<std::uint8_t>(bytes[0])] = id;
  if (const auto missing = std::find(id_of_byte_.begin(), id_of_byte_.end(), -1); missing != id_of_byte_.end())
    throw InvalidInput(model.place, "must contain a token for each of the 256 bytes",
                       "without one for byte " + std::to_string(missing - id_of_byte_.begin()));

  if (model.merges.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw InvalidInput(model.place, "must have fewer than 2^31 merges", std::to_string(model.merges.size()));
  for (const MergeRule& rule : model.merges) {
    const auto id_of = [&](const std::string& token, const char* what) {
      const auto found = ids.find(token);
      if (found == ids.end())
        throw InvalidInput(rule.place, std::string(what) + " must be a token of the vocabulary", in_quotes(token));
      return found->second;
    };
    const std::uint64_t key = pair_key(id_of(rule.left, "left"), id_of(rule.right, "right"));
    const Merge merge{.rank = static_cast<std::int32_t>(merges_.size()),
                      .id = id_of(rule.left + rule.right, "the two together")};
    if (!merges_.emplace(key, merge).second)
      throw InvalidInput(rule.place, "must differ from every merge before it", in_quotes(rule.left + " " + rule.right));
  }
}

std::vector<std::int32_t> ByteLevelBpe::encode(std::string_view utf8) const {
  std::vector<std::int32_t> ids;
  Encoder encoder(*this, ids);
  for (const TextPiece& piece : added_tokens_.split(utf8)) {
    if (piece.id)
      ids.push_back(*piece.id);
    else
      encoder.add_text(piece.text);
  }
  return ids;
}

SpannedTokens ByteLevelBpe::encode_with_spans(std::string_view utf8) const {
  SpannedTokens tokens{.ids = encode(utf8), .spans = {}};
  std::vector<std::int32_t> character_of_byte;  // of the text that the tokens' bytes are
  std::int32_t character = 0;
  for (std::size_t position = 0; position < utf8.size(); ++character) {
    const std::size_t begin = position;
    const std::size_t size = next_code_point(utf8, position) ? position - begin : kReplacementCharacter.size();
    character_of_byte.insert(character_of_byte.end(), size, character);
  }
  std::size_t begin = 0;
  for (const std::int32_t id : tokens.ids) {
    const std::size_t end = begin + tokens_[static_cast<std::size_t>(id)].size();
    tokens.spans.push_back({.begin = character_of_byte[begin], .end = character_of_byte[end - 1] + 1});
    begin = end;
  }
  return tokens;
}

std::string ByteLevelBpe::decode(std::span<const std::int32_t> ids) const {
  std::string bytes;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= vocabulary_size())
      throw InvalidInput("token id", "must be from 0 to " + std::to_string(vocabulary_size() - 1), std::to_string(id));
    bytes += tokens_[static_cast<std::size_t>(id)];
  }
  return bytes;
}

}  // namespace frostpipe
