#include "executor/data/wordpiece.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>

#include "profiles/error.h"
#include "profiles/files.h"
#include "profiles/json_nesting.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPadding = "[PAD]";
constexpr std::string_view kUnknown = "[UNK]";
constexpr std::string_view kClassification = "[CLS]";
constexpr std::string_view kSeparator = "[SEP]";
constexpr std::array<std::string_view, 5> kSpecialTokens = {kPadding, kUnknown, kClassification, kSeparator, "[MASK]"};
constexpr std::string_view kContinuation = "##";
constexpr int kMaxCharactersPerWord = 100;

// ---- Character classes --------------------------------------------------------------------------
// Hugging Face takes the general category from the Rust crate unicode_categories, which is Unicode 8.0 for ever:
// younger characters are unassigned. ICU knows each character's age, so 8.0 is what it says of characters that old, but
// for the few that were given another category since (WordPieceTest.ClassesOfAllCodePointsAreHuggingFaces).
constexpr int kUnicodeOfCategories = 8;
// NFD comes from another crate, with the combining classes of Unicode 9.0 (it shows in the order of younger marks).
constexpr int kUnicodeOfDecomposition = 9;

int unicode_version_of(char32_t c) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0];
}

UCharCategory category_of(char32_t c) {
  switch (c) {
    case 0x166D:   // Canadian syllabics chi sign: So since 12.0
    case 0x111C9:  // Sharada sandhi mark: Mn since 11.0
      return U_OTHER_PUNCTUATION;
    case 0x1734:  // Hanunoo sign pamudpod: Mc since 14.0
      return U_NON_SPACING_MARK;
    case 0x1885:  // Mongolian letters baluda: Mn since 9.0
    case 0x1886:
      return U_OTHER_LETTER;
    case 0xA9BD:  // Javanese consonant sign keret: Mn since 11.0
      return U_COMBINING_SPACING_MARK;
    default:
      if (unicode_version_of(c) > kUnicodeOfCategories) return U_UNASSIGNED;
      return static_cast<UCharCategory>(u_charType(static_cast<UChar32>(c)));
  }
}

bool is_whitespace(char32_t c) { return u_isUWhiteSpace(static_cast<UChar32>(c)); }

/// Cc, Cf and Co, but not the three that count as spaces. Unassigned characters stay.
bool is_dropped(char32_t c) {
  if (c < 0x80) return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F;
  if (c == 0xFFFD) return true;
  const UCharCategory category = category_of(c);
  return category == U_CONTROL_CHAR || category == U_FORMAT_CHAR || category == U_PRIVATE_USE_CHAR;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80)
    return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) || (c >= 0x7B && c <= 0x7E);
  return (U_MASK(category_of(c)) & U_GC_P_MASK) != 0;
}

bool is_nonspacing_mark(char32_t c) { return c >= 0x300 && category_of(c) == U_NON_SPACING_MARK; }

/// The blocks that BERT's authors listed; not Hiragana, Katakana or Hangul, nor the first 256 of extension E.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

// ---- Decomposition and case ---------------------------------------------------------------------

const icu::Normalizer2& canonical_decomposition() {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* instance = icu::Normalizer2::getNFDInstance(status);
  FROSTPIPE_CHECK(U_SUCCESS(status), "ICU carries the NFD data inside its library");
  return *instance;
}

int combining_class_of(char32_t c) {
  if (c < 0x300) return 0;
  const int value = u_getCombiningClass(static_cast<UChar32>(c));
  return value == 0 || unicode_version_of(c) > kUnicodeOfDecomposition ? 0 : value;
}

/// A character on its way through cleaning, decomposition and case, and the code point of the text that it stands for.
struct Character {
  char32_t value;
  std::int32_t position;
};

/// A character of a decomposition: the first of those that one character gave, or a further one.
struct Part {
  char32_t value;
  bool is_first;
};

/// Sorts each run of combining characters by class, equal classes keeping their order (canonical ordering).
void order_canonically(std::vector<Part>& text) {
  const auto is_starter = [](const Part& part) { return combining_class_of(part.value) == 0; };
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if_not(begin, text.end(), is_starter);
    const auto end = std::find_if(begin, text.end(), is_starter);
    std::stable_sort(begin, end, [](const Part& a, const Part& b) {
      return combining_class_of(a.value) < combining_class_of(b.value);
    });
    begin = end;
  }
}

/// Positions do not move with the marks that change places: as Hugging Face does it, the n-th first part of the result
/// takes the position of the text's n-th character, and a further part that of the part before it.
std::vector<Character> decomposed(const icu::Normalizer2& decomposition, const std::vector<Character>& text) {
  std::vector<Part> parts;
  icu::UnicodeString expansion;
  for (const Character& character : text) {
    const char32_t c = character.value;
    const bool has_parts = c >= 0xC0 && decomposition.getDecomposition(static_cast<UChar32>(c), expansion) &&
                           unicode_version_of(c) <= kUnicodeOfDecomposition;
    if (!has_parts) {
      parts.push_back({c, true});
      continue;
    }
    for (std::int32_t i = 0; i < expansion.length(); i = expansion.moveIndex32(i, 1))
      parts.push_back({static_cast<char32_t>(expansion.char32At(i)), i == 0});
  }
  order_canonically(parts);

  std::vector<Character> result;
  std::size_t num_first = 0;
  for (const Part& part : parts) {
    if (part.is_first) ++num_first;
    FROSTPIPE_CHECK(num_first > 0, "a decomposition is in canonical order, so its first part stays its first");
    result.push_back({part.value, text[num_first - 1].position});
  }
  return result;
}

void append_utf8(std::string& text, char32_t c) {
  std::array<char, U8_MAX_LENGTH> bytes;
  std::size_t size = 0;
  U8_APPEND_UNSAFE(bytes.data(), size, c);
  text.append(bytes.data(), size);
}

// ---- Reading ------------------------------------------------------------------------------------

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

std::vector<std::string> read_vocabulary_lines(const std::filesystem::path& path) {
  const std::string content = read_text_file(path);
  std::vector<std::string> tokens;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    std::string_view line(content.data() + begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty())
      throw InvalidInput(path.string() + ":" + std::to_string(tokens.size() + 1), "must be a token", "an empty line");
    tokens.emplace_back(line);
    begin = end + 1;
  }
  return tokens;
}

Json read_json_object(const std::filesystem::path& path) {
  const std::string content = read_text_file(path);
  require_shallow_json(content, path.string());
  Json object = Json::parse(content, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    throw InvalidInput(path.string(), "must be a JSON object", object.is_discarded() ? "no JSON" : object.type_name());
  return object;
}

void check_is_special(const std::string& place, const Json& added_token) {
  const Json* content = added_token.is_object() && added_token.contains("content") ? &added_token["content"] : nullptr;
  const std::string text =
      content != nullptr && content->is_string() ? content->get<std::string>() : added_token.dump();
  if (std::find(kSpecialTokens.begin(), kSpecialTokens.end(), text) == kSpecialTokens.end())
    throw InvalidInput(place, "must be one of BERT's special tokens (others cannot be added to the vocabulary)",
                       in_quotes(text));
}

std::vector<std::string> read_vocabulary_of_tokenizer_json(const std::filesystem::path& path) {
  const Json tokenizer = read_json_object(path);
  const Json model = tokenizer.value("model", Json());
  const Json type = model.is_object() ? model.value("type", Json()) : Json();
  if (type != "WordPiece") throw InvalidInput(path.string() + ": model.type", "must be \"WordPiece\"", type.dump());
  const Json vocabulary = model.value("vocab", Json());
  if (!vocabulary.is_object())
    throw InvalidInput(path.string() + ": model.vocab", "must be an object", vocabulary.type_name());
  std::vector<std::string> tokens(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) {
    const bool fits = id.is_number_unsigned() && id.get<std::uint64_t>() < tokens.size();
    if (token.empty() || !fits || !tokens[id.get<std::size_t>()].empty())
      throw InvalidInput(path.string() + ": model.vocab[" + in_quotes(token) + "]",
                         "tokens must not be empty and must be numbered 0, 1, 2, ... without gaps or repetition",
                         id.dump());
    tokens[id.get<std::size_t>()] = token;
  }
  const Json added_tokens = tokenizer.value("added_tokens", Json::array());
  if (!added_tokens.is_array())
    throw InvalidInput(path.string() + ": added_tokens", "must be an array", added_tokens.type_name());
  for (std::size_t i = 0; i < added_tokens.size(); ++i)
    check_is_special(path.string() + ": added_tokens[" + std::to_string(i) + "]", added_tokens[i]);
  return tokens;
}

/// The truth value at `key`; nothing where the key is missing or null.
std::optional<bool> optional_bool(const std::filesystem::path& path, const Json& object, const char* key) {
  const Json value = object.value(key, Json());
  if (value.is_null()) return std::nullopt;
  if (!value.is_boolean()) throw InvalidInput(path.string() + ": " + key, "must be true or false", value.dump());
  return value.get<bool>();
}

}  // namespace

/// One text on its way to pieces: appends to `pieces` until there are `max_pieces`.
class WordPiece::Encoder {
 public:
  Encoder(const WordPiece& tokenizer, std::size_t max_pieces, Pieces& pieces)
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
      chunk_ = decomposed(decomposition_, chunk_);
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
  const icu::Normalizer2& decomposition_ = canonical_decomposition();
  const bool strip_accents_;
  const std::size_t max_pieces_;
  Pieces& pieces_;
  std::int32_t position_ = 0;  // of the next code point
  std::vector<Character> chunk_;
  std::string word_;
  std::vector<std::int32_t> position_of_byte_;  // of word_
  int characters_of_word_ = 0;
};

WordPiece::WordPiece(const std::filesystem::path& vocabulary_file, WordPieceOptions options) : options_(options) {
  std::vector<std::string> tokens = vocabulary_file.extension() == ".json"
                                        ? read_vocabulary_of_tokenizer_json(vocabulary_file)
                                        : read_vocabulary_lines(vocabulary_file);
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
  padding_id_ = id_of(kPadding);
  unknown_id_ = id_of(kUnknown);
  classification_id_ = id_of(kClassification);
  separator_id_ = id_of(kSeparator);
}

std::vector<std::int32_t> WordPiece::encode(std::string_view utf8, int max_tokens) const {
  if (max_tokens < 2)
    throw InvalidInput("maximum number of tokens", "must be >= 2 (for [CLS] and [SEP])", std::to_string(max_tokens));
  Pieces pieces;
  Encoder(*this, static_cast<std::size_t>(max_tokens) - 2, pieces).add(utf8);
  std::vector<std::int32_t> ids;
  ids.reserve(pieces.ids.size() + 2);
  ids.push_back(classification_id_);
  ids.insert(ids.end(), pieces.ids.begin(), pieces.ids.end());
  ids.push_back(separator_id_);
  return ids;
}

WordPiece::Pieces WordPiece::encode_with_spans(std::string_view utf8) const {
  Pieces pieces;
  Encoder(*this, std::numeric_limits<std::size_t>::max(), pieces).add(utf8);
  return pieces;
}

WordPieceOptions wordpiece_options_from(const std::filesystem::path& model_folder) {
  const std::filesystem::path path = model_folder / "tokenizer_config.json";
  WordPieceOptions options;
  if (!std::filesystem::exists(path)) return options;
  const Json config = read_json_object(path);
  options.lowercase = optional_bool(path, config, "do_lower_case").value_or(options.lowercase);
  options.strip_accents = optional_bool(path, config, "strip_accents");
  options.handle_chinese_characters =
      optional_bool(path, config, "tokenize_chinese_chars").value_or(options.handle_chinese_characters);
  const Json added_tokens = config.value("added_tokens_decoder", Json::object());
  for (const auto& [id, token] : added_tokens.items())
    check_is_special(path.string() + ": added_tokens_decoder." + id, token);
  return options;
}

std::filesystem::path wordpiece_vocabulary_in(const std::filesystem::path& model_folder) {
  for (const char* name : {"tokenizer.json", "vocab.txt"})
    if (std::filesystem::exists(model_folder / name)) return model_folder / name;
  throw InvalidInput(model_folder.string(), "must hold tokenizer.json or vocab.txt", "without either");
}

}  // namespace frostpipe
