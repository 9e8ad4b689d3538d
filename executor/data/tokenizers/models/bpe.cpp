#include "executor/data/tokenizers/models/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "executor/data/tokenizers/models/bpe_files.h"
#include "executor/data/tokenizers/models/flat_table.h"
#include "executor/data/tokenizers/models/token_tree.h"

namespace frostpipe {
namespace {

constexpr std::string_view kMetaspace = "\xE2\x96\x81";  // the space of SentencePiece's vocabularies

/// Returns whether SentencePiece's space is a token and no token has such a space after another character. Then nothing
/// is merged across the beginning of a word, and text that is not split into words may be split there.
bool spaces_begin_tokens(const std::vector<std::string>& tokens) {
  return std::find(tokens.begin(), tokens.end(), kMetaspace) != tokens.end() &&
         std::all_of(tokens.begin(), tokens.end(), [](std::string_view token) {
           while (token.starts_with(kMetaspace)) token.remove_prefix(kMetaspace.size());
           return token.find(kMetaspace) == std::string_view::npos;
         });
}

class Bpe final : public TokenModel {
 public:
  Bpe(const BpeFile& file, const TokenIds& ids);

  void tokenize(const Pieces& pieces, std::vector<TextToken>& tokens) const override;

 private:
  class Encoder;

  /// Returns the id of a unit of a word, which is a byte or a character; kNoToken if it is no token.
  std::int32_t id_of_unit(std::string_view unit) const {
    const auto first = static_cast<std::uint8_t>(unit[0]);
    if (unit.size() == 1) return id_of_single_byte_[first];
    std::size_t position = 0;
    const auto found = id_of_character_.find(next_character(unit, position));
    return found == id_of_character_.end() ? kNoToken : found->second;
  }

  bool is_byte_level_, fuses_unknown_, cuts_at_spaces_;
  std::optional<std::int32_t> unknown_;
  std::array<std::int32_t, 256> id_of_single_byte_{};  // for tokens of one byte
  std::array<std::int32_t, 256> id_of_fallback_{};     // for "<0x..>"
  std::unordered_map<char32_t, std::int32_t> id_of_character_;
  FlatTable merges_;                                     // (left, right) -> (rank, id of both)
  std::unordered_map<std::string, std::int32_t> whole_;  // words that are tokens and are not merged (ignore_merges)
};

/// The state of one call of tokenize().
class Bpe::Encoder {
 public:
  Encoder(const Bpe& model, const Pieces& pieces, std::vector<TextToken>& tokens)
      : model_(model), pieces_(pieces), tokens_(tokens) {}

  void add_piece(Range piece) {
    if (!model_.cuts_at_spaces_) return add_word(piece);
    const std::string_view text = pieces_[piece];
    std::size_t begin = 0;  // begin of the word
    for (std::size_t space = text.find(kMetaspace); space != std::string_view::npos;) {
      if (space > begin) {
        add_word({piece.begin + begin, piece.begin + space});
        begin = space;
      }
      while (text.substr(space).starts_with(kMetaspace)) space += kMetaspace.size();
      space = text.find(kMetaspace, space);
    }
    if (begin < text.size()) add_word({piece.begin + begin, piece.end});
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::int32_t kMergedAway = -2;

  /// A token of the word during merging, in a doubly linked list by index.
  struct Symbol {
    std::int32_t id;
    Range range;  // bytes of the word
    std::uint32_t previous;
    std::uint32_t next;
  };
  /// Two neighbours that may be merged. `left` and `right` were the ids at `position` and after it when the candidate
  /// was added; it is stale if other ids are there now.
  struct Candidate {
    FlatTable::Value merge;
    std::int32_t left;
    std::int32_t right;
    std::uint32_t position;
  };
  /// Orders a heap whose top is the candidate of the lowest rank, the leftmost among those of equal rank.
  static bool comes_later(const Candidate& a, const Candidate& b) {
    return a.merge.first != b.merge.first ? a.merge.first > b.merge.first : a.position > b.position;
  }

  void add_word(Range range) {
    const std::string_view word = pieces_[range];
    if (known_.repeat(word, range.begin, tokens_)) return;
    const std::size_t first_token = tokens_.size();
    if (const auto whole = model_.whole_.empty() ? model_.whole_.end() : model_.whole_.find(std::string(word));
        whole != model_.whole_.end()) {
      append(whole->second, range);
    } else {
      begin_with_units(word);
      merge_by_rank();
      for (std::uint32_t i = symbols_.empty() ? kNone : 0; i != kNone; i = symbols_[i].next)
        append(symbols_[i].id, {range.begin + symbols_[i].range.begin, range.begin + symbols_[i].range.end});
    }
    known_.remember(word, range.begin, first_token, tokens_);
  }

  void append(std::int32_t id, Range range) {
    tokens_.push_back({id, static_cast<std::uint32_t>(range.begin), static_cast<std::uint32_t>(range.end)});
  }

  void push(std::int32_t id, Range range) {
    const auto i = static_cast<std::uint32_t>(symbols_.size());
    symbols_.push_back({id, range, i == 0 ? kNone : i - 1, i + 1});
  }

  void begin_with_units(std::string_view word) {
    symbols_.clear();
    Range unknown;  // range of unknown units not pushed yet
    const auto push_unknown = [&] {
      if (unknown.begin < unknown.end) push(*model_.unknown_, unknown);
      unknown = {};
    };
    for (std::size_t position = 0; position < word.size();) {
      const std::size_t begin = position;
      if (model_.is_byte_level_)
        ++position;
      else
        next_character(word, position);
      const std::string_view unit = word.substr(begin, position - begin);
      if (const std::int32_t id = model_.id_of_unit(unit); id != kNoToken) {
        push_unknown();
        push(id, {begin, position});
      } else if (!push_fallback(unit, begin) && model_.unknown_) {
        if (!model_.fuses_unknown_) push_unknown();
        if (unknown.begin == unknown.end) unknown.begin = begin;
        unknown.end = position;
      }
    }
    push_unknown();
    if (!symbols_.empty()) symbols_.back().next = kNone;
  }

  bool push_fallback(std::string_view unit, std::size_t begin) {
    const auto fallback = [&](char byte) { return model_.id_of_fallback_[static_cast<std::uint8_t>(byte)]; };
    if (std::any_of(unit.begin(), unit.end(), [&](char byte) { return fallback(byte) == kNoToken; })) return false;
    for (std::size_t i = 0; i < unit.size(); ++i) push(fallback(unit[i]), {begin + i, begin + i + 1});
    return true;
  }

  void merge_by_rank() {
    candidates_.clear();
    for (std::uint32_t i = 0; i < symbols_.size(); ++i) note_candidate_at(i);
    while (!candidates_.empty()) {
      std::pop_heap(candidates_.begin(), candidates_.end(), comes_later);
      const Candidate best = candidates_.back();
      candidates_.pop_back();
      Symbol& symbol = symbols_[best.position];
      if (symbol.id != best.left || symbol.next == kNone || symbols_[symbol.next].id != best.right) continue;  // stale
      Symbol& absorbed = symbols_[symbol.next];
      symbol.id = best.merge.second;
      symbol.range.end = absorbed.range.end;
      symbol.next = absorbed.next;
      absorbed.id = kMergedAway;
      if (symbol.next != kNone) symbols_[symbol.next].previous = best.position;
      if (symbol.previous != kNone) note_candidate_at(symbol.previous);
      note_candidate_at(best.position);
    }
  }

  void note_candidate_at(std::uint32_t position) {
    const Symbol& symbol = symbols_[position];
    if (symbol.next == kNone) return;
    const std::int32_t right = symbols_[symbol.next].id;
    const FlatTable::Value* merge = model_.merges_.find(symbol.id, right);
    if (merge == nullptr) return;
    candidates_.push_back({.merge = *merge, .left = symbol.id, .right = right, .position = position});
    std::push_heap(candidates_.begin(), candidates_.end(), comes_later);
  }

  const Bpe& model_;
  const Pieces& pieces_;
  std::vector<TextToken>& tokens_;
  KnownWords known_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;
};

Bpe::Bpe(const BpeFile& file, const TokenIds& ids)
    : is_byte_level_(file.is_byte_level),
      fuses_unknown_(file.fuses_unknown),
      cuts_at_spaces_(!file.is_byte_level && !file.ignores_merges && spaces_begin_tokens(file.tokens)),
      unknown_(file.unknown),
      merges_(file.merges.size()) {
  id_of_single_byte_.fill(kNoToken);
  id_of_fallback_.fill(kNoToken);
  for (std::size_t i = 0; i < file.tokens.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    const std::optional<std::string> bytes = file.is_byte_level ? bytes_of(file.tokens[i]) : file.tokens[i];
    if (!bytes) continue;  // can be found by its spelling only
    std::size_t position = 0;
    if (bytes->size() == 1)
      id_of_single_byte_[static_cast<std::uint8_t>(bytes->front())] = id;
    else if (const char32_t c = is_byte_level_ ? 0 : next_character(*bytes, position); position == bytes->size())
      id_of_character_.emplace(c, id);
    if (file.ignores_merges) whole_.emplace(*bytes, id);
  }
  for (int byte = 0; file.falls_back_to_bytes && byte < 256; ++byte)
    if (const auto found = ids.find(fmt::format("<0x{:02X}>", byte)); found != ids.end())
      id_of_fallback_[static_cast<std::size_t>(byte)] = found->second;

  for (const MergeRule& rule : file.merges) {
    const auto id_of = [&](const std::string& token, const char* what) {
      const auto found = ids.find(token);
      if (found == ids.end())
        throw InvalidInput(rule.place, std::string(what) + " must be a token of the vocabulary", in_quotes(token));
      return found->second;
    };
    const std::int32_t left = id_of(rule.left, "left"), right = id_of(rule.right, "right");
    const FlatTable::Value merge{static_cast<std::int32_t>(&rule - file.merges.data()),
                                 id_of(rule.left + rule.right, "the two together")};
    if (!merges_.emplace(left, right, merge).second)
      throw InvalidInput(rule.place, "must differ from every merge before it", in_quotes(rule.left + " " + rule.right));
  }
}

void Bpe::tokenize(const Pieces& pieces, std::vector<TextToken>& tokens) const {
  Encoder encoder(*this, pieces, tokens);
  for (const Range& piece : pieces.ranges) encoder.add_piece(piece);
}

}  // namespace

ReadModel read_bpe(PipelinePart& part, const ModelContext& context) {
  BpeFile file = read_bpe_file(part, context);
  const auto model = std::make_shared<Bpe>(file, ids_of(file.tokens));
  return {std::move(file.tokens), model};
}

}  // namespace frostpipe
