#include "executor/data/tokenizers/wordpiece.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "executor/data/tokenizers/wordpiece_characters.h"
#include "profiles/error.h"
#include "profiles/error_values.h"

namespace frostpipe {
namespace {

constexpr std::string_view kContinuation = "##";
constexpr int kMaxCharactersPerWord = 100;

void append_utf8(std::string& text, char32_t c) {
  std::array<char, U8_MAX_LENGTH> bytes;
  std::size_t size = 0;
  U8_APPEND_UNSAFE(bytes.data(), size, c);
  text.append(bytes.data(), size);
}

}  // namespace

/// One text on its way to pieces: appends to `pieces` until there are `max_pieces`.
class WordPiece::Encoder {
 public:
  Encoder(const WordPiece& tokenizer, std::size_t max_pieces, SpannedTokens& pieces)
      : tokenizer_(tokenizer),
        strip_accents_(tokenizer.options_.strip_accents.value_or(tokenizer.options_.lowercase)),
        max_pieces_(max_pieces),
        pieces_(pieces) {}

  void add(std::string_view utf8) {
    if (utf8.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw InvalidInput("text to encode", "must be shorter than 2^31 bytes", std::to_string(utf8.size()));
    std::size_t begin_of_text = 0;
    for (std::size_t i = utf8.find('['); i != std::string_view::npos && !full(); i = utf8.find('[', i)) {
      const auto special =
          std::find_if(tokenizer_.special_tokens_.begin(), tokenizer_.special_tokens_.end(),
                       [&](const SpecialToken& token) { return utf8.substr(i).starts_with(token.text); });
      if (special == tokenizer_.special_tokens_.end()) {
        ++i;
        continue;
      }
      add_text(utf8.substr(begin_of_text, i - begin_of_text));
      add_special_token(*special);
      i += special->text.size();
      begin_of_text = i;
    }
    add_text(utf8.substr(begin_of_text));
  }

 private:
  bool full() const { return pieces_.ids.size() >= max_pieces_; }

  void resize(std::size_t num_pieces) {
    pieces_.ids.resize(num_pieces);
    pieces_.spans.resize(num_pieces);
  }

  void add_piece(std::int32_t id, TokenSpan span) {
    pieces_.ids.push_back(id);
    pieces_.spans.push_back(span);
  }

  void add_special_token(const SpecialToken& token) {
    const std::int32_t begin = position_;
    position_ += static_cast<std::int32_t>(token.text.size());
    if (!full()) add_piece(token.id, {begin, position_});
  }

  /// Text without special tokens.
  void add_text(std::string_view utf8) {
    const auto size = static_cast<std::ptrdiff_t>(utf8.size());
    for (std::ptrdiff_t i = 0; i < size && !full(); ++position_) {
      UChar32 code_point;
      U8_NEXT(utf8.data(), i, size, code_point);
      if (code_point < 0) continue;  // broken UTF-8: U+FFFD, which is dropped
      add_character({static_cast<char32_t>(code_point), position_});
    }
    end_chunk();
  }

  void add_character(Character c) {
    if (is_dropped(c.value)) return;
    if (is_whitespace(c.value)) {
      end_chunk();
    } else if (tokenizer_.options_.handle_chinese_characters && is_chinese(c.value)) {
      end_chunk();
      chunk_.push_back(c);
      end_chunk();
    } else {
      chunk_.push_back(c);
    }
  }

  /// A chunk is what stands between spaces. Decomposition never looks across one.
  void end_chunk() {
    if (chunk_.empty()) return;
    const bool ascii = std::all_of(chunk_.begin(), chunk_.end(), [](const Character& c) { return c.value < 0x80; });
    if (strip_accents_ && !ascii) {
      chunk_ = decomposed(chunk_);
      std::erase_if(chunk_, [](const Character& c) { return is_nonspacing_mark(c.value); });
    }
    for (const Character& c : chunk_) add_lowercased(c);
    chunk_.clear();
    end_word();
  }

  void add_lowercased(Character c) {
    if (!tokenizer_.options_.lowercase) {
      add_to_word(c);
    } else if (c.value < 0x80) {
      add_to_word({c.value >= 'A' && c.value <= 'Z' ? c.value + ('a' - 'A') : c.value, c.position});
    } else if (c.value == 0x130) {  // capital I with a dot: the only character whose lower case is two
      add_to_word({'i', c.position});
      add_to_word({0x307, c.position});
    } else {
      add_to_word({static_cast<char32_t>(u_tolower(static_cast<UChar32>(c.value))), c.position});
    }
  }

  void add_to_word(Character c) {
    const bool alone = is_punctuation(c.value);
    if (alone) end_word();
    append_utf8(word_, c.value);
    position_of_byte_.resize(word_.size(), c.position);
    ++characters_of_word_;
    if (alone) end_word();
  }

  void end_word() {
    if (!word_.empty() && !full()) {
      const std::size_t before = pieces_.ids.size();
      if (characters_of_word_ > kMaxCharactersPerWord || !add_pieces()) {
        resize(before);
        add_piece(tokenizer_.unknown_id_, span_of_bytes(0, word_.size()));
      }
      if (pieces_.ids.size() > max_pieces_) resize(max_pieces_);
    }
    word_.clear();
    position_of_byte_.clear();
    characters_of_word_ = 0;
  }

  TokenSpan span_of_bytes(std::size_t begin, std::size_t end) const {
    return {position_of_byte_[begin], position_of_byte_[end - 1] + 1};
  }

  /// Longest match first. False if a rest matches nothing; what was appended is then to be taken back.
  bool add_pieces() {
    const std::string_view word = word_;
    for (std::size_t begin = 0; begin < word.size();) {
      const PieceTable& table = begin == 0 ? tokenizer_.first_ : tokenizer_.continuation_;
      const std::string_view rest = word.substr(begin);
      std::size_t size = std::min(rest.size(), table.longest_bytes);
      for (;; --size) {
        if (size == 0) return false;
        if (size < rest.size() && U8_IS_TRAIL(static_cast<std::uint8_t>(rest[size]))) continue;  // inside a character
        const auto found = table.ids.find(rest.substr(0, size));
        if (found == table.ids.end()) continue;
        add_piece(found->second, span_of_bytes(begin, begin + size));
        break;
      }
      begin += size;
    }
    return true;
  }

  const WordPiece& tokenizer_;
  const bool strip_accents_;
  const std::size_t max_pieces_;
  SpannedTokens& pieces_;
  std::int32_t position_ = 0;  // of the next code point
  std::vector<Character> chunk_;
  std::string word_;
  std::vector<std::int32_t> position_of_byte_;  // of word_
  int characters_of_word_ = 0;
};

WordPiece::WordPiece(const std::filesystem::path& vocabulary_file, WordPieceOptions options) : options_(options) {
  const std::vector<std::string> tokens = read_wordpiece_vocabulary(vocabulary_file);
  if (tokens.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw InvalidInput(vocabulary_file.string(), "must have fewer than 2^31 tokens", std::to_string(tokens.size()));
  vocabulary_size_ = static_cast<int>(tokens.size());
  for (std::int32_t id = 0; id < vocabulary_size_; ++id) {
    const std::string& token = tokens[static_cast<std::size_t>(id)];
    const auto [earlier, is_new] = first_.ids.emplace(token, id);
    if (!is_new)
      throw InvalidInput(vocabulary_file.string() + ":" + std::to_string(id + 1),
                         "must differ from every other line (see line " + std::to_string(earlier->second + 1) + ")",
                         in_quotes(token));
    first_.longest_bytes = std::max(first_.longest_bytes, token.size());
    if (!token.starts_with(kContinuation)) continue;
    continuation_.ids.emplace(token.substr(kContinuation.size()), id);
    continuation_.longest_bytes = std::max(continuation_.longest_bytes, token.size() - kContinuation.size());
  }

  for (const std::string_view token : kSpecialTokens)
    if (const auto found = first_.ids.find(token); found != first_.ids.end())
      special_tokens_.push_back({token, found->second});
  const auto id_of = [&](std::string_view token) {
    const auto found = first_.ids.find(token);
    if (found == first_.ids.end())
      throw InvalidInput(vocabulary_file.string(), "must contain " + std::string(token),
                         "without it among " + std::to_string(vocabulary_size_) + " tokens");
    return found->second;
  };
  unknown_id_ = id_of(kUnknownToken);
  classification_id_ = id_of(kClassificationToken);
  separator_id_ = id_of(kSeparatorToken);
}

std::vector<std::int32_t> WordPiece::encode(std::string_view utf8, int max_tokens) const {
  if (max_tokens < 2)
    throw InvalidInput("maximum number of tokens", "must be >= 2 (for [CLS] and [SEP])", std::to_string(max_tokens));
  SpannedTokens pieces;
  Encoder(*this, static_cast<std::size_t>(max_tokens) - 2, pieces).add(utf8);
  std::vector<std::int32_t> ids;
  ids.reserve(pieces.ids.size() + 2);
  ids.push_back(classification_id_);
  ids.insert(ids.end(), pieces.ids.begin(), pieces.ids.end());
  ids.push_back(separator_id_);
  return ids;
}

SpannedTokens WordPiece::encode_with_spans(std::string_view utf8) const {
  SpannedTokens pieces;
  Encoder(*this, std::numeric_limits<std::size_t>::max(), pieces).add(utf8);
  return pieces;
}

}  // namespace frostpipe
