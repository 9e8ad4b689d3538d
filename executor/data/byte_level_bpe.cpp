#include "executor/data/byte_level_bpe.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "profiles/error.h"
#include "profiles/files.h"
#include "profiles/json_nesting.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";
constexpr std::array<std::string_view, 7> kContractions = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

// ---- Character classes --------------------------------------------------------------------------
// Hugging Face's regular expressions are those of a library with Unicode 16.0. What is younger is unassigned. Where ICU
// is older (ICU 72: Unicode 15.0), the letters and numbers that came later stand in a table
// (ByteLevelBpeTest.ClassesOfAllCodePointsAreHuggingFaces).
constexpr int kUnicodeOfClasses = 16;

enum class CharacterClass { kLetter, kNumber, kSpace, kOther };

struct ClassRange {
  char32_t first;
  char32_t last;
  CharacterClass character_class;
};

/// Ascending. New in Unicode 15.1 and 16.0.
constexpr ClassRange kYoungRanges[] = {
    {0x1C89, 0x1C8A, CharacterClass::kLetter},    // Cyrillic
    {0xA7CB, 0xA7CD, CharacterClass::kLetter},    // Latin
    {0xA7DA, 0xA7DC, CharacterClass::kLetter},    // Latin
    {0x105C0, 0x105F3, CharacterClass::kLetter},  // Todhri
    {0x10D40, 0x10D49, CharacterClass::kNumber},  // Garay
    {0x10D4A, 0x10D65, CharacterClass::kLetter},  // Garay
    {0x10D6F, 0x10D85, CharacterClass::kLetter},  // Garay
    {0x10EC2, 0x10EC4, CharacterClass::kLetter},  // Arabic
    {0x11380, 0x11389, CharacterClass::kLetter},  // Tulu-Tigalari
    {0x1138B, 0x1138B, CharacterClass::kLetter},  // Tulu-Tigalari
    {0x1138E, 0x1138E, CharacterClass::kLetter},  // Tulu-Tigalari
    {0x11390, 0x113B5, CharacterClass::kLetter},  // Tulu-Tigalari
    {0x113B7, 0x113B7, CharacterClass::kLetter},  // Tulu-Tigalari
    {0x113D1, 0x113D1, CharacterClass::kLetter},  // Tulu-Tigalari
    {0x113D3, 0x113D3, CharacterClass::kLetter},  // Tulu-Tigalari
    {0x116D0, 0x116E3, CharacterClass::kNumber},  // Myanmar
    {0x11BC0, 0x11BE0, CharacterClass::kLetter},  // Sunuwar
    {0x11BF0, 0x11BF9, CharacterClass::kNumber},  // Sunuwar
    {0x13460, 0x143FA, CharacterClass::kLetter},  // Egyptian hieroglyphs
    {0x16100, 0x1611D, CharacterClass::kLetter},  // Gurung Khema
    {0x16130, 0x16139, CharacterClass::kNumber},  // Gurung Khema
    {0x16D40, 0x16D6C, CharacterClass::kLetter},  // Kirat Rai
    {0x16D70, 0x16D79, CharacterClass::kNumber},  // Kirat Rai
    {0x18CFF, 0x18CFF, CharacterClass::kLetter},  // Khitan
    {0x1CCF0, 0x1CCF9, CharacterClass::kNumber},  // outlined digits
    {0x1E5D0, 0x1E5ED, CharacterClass::kLetter},  // Ol Onal
    {0x1E5F0, 0x1E5F0, CharacterClass::kLetter},  // Ol Onal
    {0x1E5F1, 0x1E5FA, CharacterClass::kNumber},  // Ol Onal
    {0x2EBF0, 0x2EE5D, CharacterClass::kLetter},  // CJK ideographs
};

int unicode_version_of(char32_t c) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0];
}

CharacterClass young_class_of(char32_t c) {
  const auto* const range = std::lower_bound(std::begin(kYoungRanges), std::end(kYoungRanges), c,
                                             [](const ClassRange& one, char32_t value) { return one.last < value; });
  return range != std::end(kYoungRanges) && c >= range->first ? range->character_class : CharacterClass::kOther;
}

CharacterClass class_of(char32_t c) {
  if (c < 0x80) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return CharacterClass::kLetter;
    if (c >= '0' && c <= '9') return CharacterClass::kNumber;
    return c == ' ' || (c >= '\t' && c <= '\r') ? CharacterClass::kSpace : CharacterClass::kOther;
  }
  if (u_isUWhiteSpace(static_cast<UChar32>(c))) return CharacterClass::kSpace;
  const std::uint32_t category = U_MASK(u_charType(static_cast<UChar32>(c)));
  if ((category & U_GC_CN_MASK) != 0) return young_class_of(c);
  if ((category & (U_GC_L_MASK | U_GC_N_MASK)) == 0) return CharacterClass::kOther;
  if (unicode_version_of(c) > kUnicodeOfClasses) return CharacterClass::kOther;
  return (category & U_GC_L_MASK) != 0 ? CharacterClass::kLetter : CharacterClass::kNumber;
}

// ---- Words --------------------------------------------------------------------------------------

/// The code point at `position`, which moves behind it; nothing where the bytes are broken UTF-8. ICU takes the same
/// bytes for one broken character as Python does: as many as begin a whole one, else a single byte.
std::optional<char32_t> next_code_point(std::string_view text, std::size_t& position) {
  auto i = static_cast<std::ptrdiff_t>(position);
  UChar32 code_point;
  U8_NEXT(text.data(), i, static_cast<std::ptrdiff_t>(text.size()), code_point);
  position = static_cast<std::size_t>(i);
  if (code_point < 0) return std::nullopt;
  return static_cast<char32_t>(code_point);
}

/// As next_code_point. U+FFFD, which stands for broken UTF-8, is no letter, number or space.
CharacterClass next_class(std::string_view text, std::size_t& position) {
  const std::optional<char32_t> code_point = next_code_point(text, position);
  return code_point ? class_of(*code_point) : CharacterClass::kOther;
}

struct Run {
  std::size_t last = 0;  // where its last character begins
  std::size_t end = 0;
};

/// The characters from `begin` on that are of the class of the first.
Run run_from(std::string_view text, std::size_t begin) {
  Run run{.last = begin, .end = begin};
  const CharacterClass character_class = next_class(text, run.end);
  for (std::size_t position = run.end; position < text.size();) {
    const std::size_t begin_of_character = position;
    if (next_class(text, position) != character_class) break;
    run = {.last = begin_of_character, .end = position};
  }
  return run;
}

bool is_space_at(std::string_view text, std::size_t position) {
  return next_class(text, position) == CharacterClass::kSpace;
}

/// How many bytes of `text`, which is not empty, are its first word: the first match of
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t size_of_first_word(std::string_view text) {
  for (const std::string_view contraction : kContractions)
    if (text.starts_with(contraction)) return contraction.size();
  const std::size_t begin = text.starts_with(' ') ? 1 : 0;
  if (begin < text.size() && !is_space_at(text, begin)) return run_from(text, begin).end;
  const Run spaces = run_from(text, 0);
  // A single space before a word is one, too; a longer run leaves its last to what follows.
  return spaces.end == text.size() || spaces.last == 0 ? spaces.end : spaces.last;
}

// ---- The byte alphabet --------------------------------------------------------------------------
// The files write each byte as one visible character: ASCII and Latin-1 as themselves where they are visible, the other
// 68 bytes, in ascending order, as U+0100, U+0101, ... (the space becomes U+0120).

constexpr char32_t kEndOfByteAlphabet = 0x100 + 68;

struct ByteAlphabet {
  std::array<char32_t, 256> character_of_byte{};
  std::array<std::optional<std::uint8_t>, kEndOfByteAlphabet> byte_of_character{};

  constexpr ByteAlphabet() {
    char32_t next = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool visible = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      const char32_t character = visible ? byte : next++;
      character_of_byte[byte] = character;
      byte_of_character[character] = static_cast<std::uint8_t>(byte);
    }
  }
};

constexpr ByteAlphabet kByteAlphabet;

/// Nothing where a character is none of the alphabet.
std::optional<std::string> bytes_of(std::string_view token) {
  std::string bytes;
  for (std::size_t position = 0; position < token.size();) {
    const std::optional<char32_t> character = next_code_point(token, position);
    if (!character || *character >= kEndOfByteAlphabet || !kByteAlphabet.byte_of_character[*character])
      return std::nullopt;
    bytes += static_cast<char>(*kByteAlphabet.byte_of_character[*character]);
  }
  return bytes;
}

// ---- Reading ------------------------------------------------------------------------------------

constexpr std::size_t kLongestValueShown = 60;

std::string shortened(std::string text) {
  if (text.size() <= kLongestValueShown) return text;
  std::size_t size = kLongestValueShown;
  while (size > 0 && U8_IS_TRAIL(static_cast<std::uint8_t>(text[size]))) --size;
  return text.substr(0, size) + "...";
}

std::string in_quotes(std::string_view text) { return '"' + shortened(std::string(text)) + '"'; }

/// A value for an error's text. Arrays and objects by their type: they may be nested too deeply to write out.
std::string shown(const Json& value) {
  if (value.is_structured()) return value.empty() ? std::string("an empty ") + value.type_name() : value.type_name();
  return shortened(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

/// The member of an object, without a copy; null where it is missing.
const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

/// The same, of an object's member that must be an object.
const Json& object_member(const std::string& place, const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (!value.is_object()) throw InvalidInput(place + ": " + key, "must be an object", shown(value));
  return value;
}

/// False also where the system does not let us look; whoever needs the file says so.
bool file_exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

Json read_json_object(const std::filesystem::path& path) {
  const std::string content = read_text_file(path);
  require_shallow_json(content, path.string());
  Json object = Json::parse(content, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object())
    throw InvalidInput(path.string(), "must be a JSON object", object.is_discarded() ? "no JSON" : object.type_name());
  return object;
}

struct MergeRule {
  std::string left;
  std::string right;
  std::string place;  // for errors
};

/// What the files say, in the byte alphabet.
struct Model {
  std::string place;                // the vocabulary's, for errors
  std::vector<std::string> tokens;  // by id
  std::vector<MergeRule> merges;    // by rank
};

/// `vocabulary` is an object: token -> id.
std::vector<std::string> tokens_of(const std::string& place, const Json& vocabulary) {
  if (vocabulary.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw InvalidInput(place, "must have fewer than 2^31 - 1 tokens", std::to_string(vocabulary.size()));
  std::vector<std::string> tokens(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) {
    const bool fits = id.is_number_unsigned() && id.get<std::uint64_t>() < tokens.size();
    if (token.empty() || !fits || !tokens[id.get<std::size_t>()].empty())
      throw InvalidInput(place + ": " + in_quotes(token),
                         "tokens must not be empty and must be numbered 0, 1, 2, ... without gaps or repetition",
                         shown(id));
    tokens[id.get<std::size_t>()] = token;
  }
  return tokens;
}

/// "left right", divided by the only space.
MergeRule merge_rule_of(std::string_view text, std::string place) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || space != text.rfind(' ') || space == 0 || space + 1 == text.size())
    throw InvalidInput(place, "must be two tokens with one space between them", in_quotes(text));
  return {std::string(text.substr(0, space)), std::string(text.substr(space + 1)), std::move(place)};
}

std::vector<MergeRule> read_merge_lines(const std::filesystem::path& path) {
  const std::string content = read_text_file(path);
  std::vector<MergeRule> merges;
  int line_number = 0;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    std::string_view line(content.data() + begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version")) continue;
    merges.push_back(merge_rule_of(line, path.string() + ":" + std::to_string(line_number)));
  }
  return merges;
}

/// `merges` is an array of "left right" (transformers 4) or of ["left", "right"].
std::vector<MergeRule> merge_rules_of(const std::string& place, const Json& merges) {
  if (!merges.is_array()) throw InvalidInput(place, "must be an array", shown(merges));
  std::vector<MergeRule> rules;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const Json& merge = merges[i];
    std::string place_of_merge = place + "[" + std::to_string(i) + "]";
    if (merge.is_string()) {
      rules.push_back(merge_rule_of(merge.get_ref<const std::string&>(), std::move(place_of_merge)));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      rules.push_back({merge[0].get<std::string>(), merge[1].get<std::string>(), std::move(place_of_merge)});
    } else {
      throw InvalidInput(place_of_merge, R"(must be "left right" or ["left", "right"])", shown(merge));
    }
  }
  return rules;
}

/// Null, or the value that GPT-2's tokenizer has there.
void check_setting(const std::string& place, const Json& object, const char* key, const Json& expected) {
  const Json& value = member(object, key);
  if (!value.is_null() && value != expected)
    throw InvalidInput(place + ": " + key, "must be " + expected.dump() + ", as in GPT-2", shown(value));
}

/// A token, as text or as an object with its text and how it is found.
void check_is_end_of_text(const std::string& place, const Json& token) {
  const Json& content = token.is_object() ? member(token, "content") : token;
  if (content != kEndOfText)
    throw InvalidInput(place,
                       "must be " + std::string(kEndOfText) + " (other tokens cannot be added to the vocabulary)",
                       shown(content));
  if (!token.is_object()) return;
  for (const char* key : {"single_word", "lstrip", "rstrip"}) check_setting(place, token, key, false);
}

Model read_tokenizer_json(const std::filesystem::path& path) {
  const Json tokenizer = read_json_object(path);
  const std::string file = path.string();
  const Json& model = object_member(file, tokenizer, "model");
  const std::string model_place = file + ": model";
  check_setting(model_place, model, "type", "BPE");  // missing in files of before 2021
  check_setting(model_place, model, "dropout", 0.0);
  check_setting(model_place, model, "continuing_subword_prefix", "");
  check_setting(model_place, model, "end_of_word_suffix", "");
  check_setting(model_place, model, "byte_fallback", false);
  check_setting(model_place, model, "ignore_merges", false);
  if (const Json& normalizer = member(tokenizer, "normalizer"); !normalizer.is_null())
    throw InvalidInput(file + ": normalizer", "must be null, as in GPT-2", shown(normalizer));
  const Json& pre_tokenizer = object_member(file, tokenizer, "pre_tokenizer");
  const std::string pre_tokenizer_place = file + ": pre_tokenizer";
  if (const Json& type = member(pre_tokenizer, "type"); type != "ByteLevel")
    throw InvalidInput(pre_tokenizer_place + ": type", "must be \"ByteLevel\"", shown(type));
  if (const Json& space = member(pre_tokenizer, "add_prefix_space"); space != false)
    throw InvalidInput(pre_tokenizer_place + ": add_prefix_space", "must be false, as in GPT-2", shown(space));
  check_setting(pre_tokenizer_place, pre_tokenizer, "use_regex", true);

  Model result{.place = model_place + ": vocab",
               .tokens = tokens_of(model_place + ": vocab", object_member(model_place, model, "vocab")),
               .merges = merge_rules_of(model_place + ": merges", member(model, "merges"))};
  const Json& added_tokens = member(tokenizer, "added_tokens");
  if (!added_tokens.is_array() && !added_tokens.is_null())
    throw InvalidInput(file + ": added_tokens", "must be an array", shown(added_tokens));
  for (std::size_t i = 0; i < added_tokens.size(); ++i) {
    const std::string place = file + ": added_tokens[" + std::to_string(i) + "]";
    check_is_end_of_text(place, added_tokens[i]);
    // In the vocabulary already, or the one behind its last.
    const auto in_vocabulary = std::find(result.tokens.begin(), result.tokens.end(), kEndOfText);
    const auto expected_id = in_vocabulary - result.tokens.begin();
    const Json& id = added_tokens[i].is_object() ? member(added_tokens[i], "id") : added_tokens[i];
    if (id != expected_id)
      throw InvalidInput(
          place + ": id",
          "must be " + std::to_string(expected_id) + ", the token's number in the vocabulary or the next free one",
          shown(id));
    if (in_vocabulary == result.tokens.end()) result.tokens.emplace_back(kEndOfText);
  }
  return result;
}

Model read_model(const std::filesystem::path& folder) {
  if (file_exists(folder / "tokenizer.json")) return read_tokenizer_json(folder / "tokenizer.json");
  const std::filesystem::path vocabulary = folder / "vocab.json";
  const std::filesystem::path merges = folder / "merges.txt";
  if (!file_exists(vocabulary) || !file_exists(merges))
    throw InvalidInput(folder.string(), "must hold tokenizer.json, or vocab.json and merges.txt", "without");
  return {.place = vocabulary.string(),
          .tokens = tokens_of(vocabulary.string(), read_json_object(vocabulary)),
          .merges = read_merge_lines(merges)};
}

/// The files beside the vocabulary, where there are any, must not add tokens or a space before the text.
void check_settings_beside(const std::filesystem::path& folder) {
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::filesystem::path path = folder / name;
    if (!file_exists(path)) continue;
    const Json settings = read_json_object(path);
    check_setting(path.string(), settings, "add_prefix_space", false);
    for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"})
      if (const Json& token = member(settings, key); !token.is_null())
        check_is_end_of_text(path.string() + ": " + key, token);
    for (const char* key : {"added_tokens_decoder", "additional_special_tokens", "extra_special_tokens"})
      for (const auto& [key_of_token, token] : member(settings, key).items())
        check_is_end_of_text(path.string() + ": " + key + ": " + in_quotes(key_of_token), token);
  }
  const std::filesystem::path added = folder / "added_tokens.json";
  if (!file_exists(added)) return;
  const Json tokens = read_json_object(added);
  for (const auto& [token, id] : tokens.items()) check_is_end_of_text(added.string(), Json(token));
}

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
  /// Two neighbours that may be merged: what stood at `position` and behind it when this was noted. Out of date if
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
  struct Place {
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
    if (remember) known_words_.emplace(word, Place{.begin = begin, .size = ids_.size() - begin});
  }

  void repeat(Place place) {
    for (std::size_t i = 0; i < place.size; ++i) ids_.push_back(ids_[place.begin + i]);
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
  std::unordered_map<std::string_view, Place> known_words_;  // of this text, which outlives the Encoder
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;
};

ByteLevelBpe::ByteLevelBpe(const std::filesystem::path& model_folder) {
  check_settings_beside(model_folder);
  const Model model = read_model(model_folder);
  std::unordered_map<std::string_view, std::int32_t> ids;  // by what the files write
  for (const std::string& token : model.tokens) {
    std::optional<std::string> bytes = bytes_of(token);
    if (!bytes)
      throw InvalidInput(model.place + ": " + in_quotes(token),
                         "must consist of the 256 characters that stand for bytes", in_quotes(token));
    ids.emplace(token, static_cast<std::int32_t>(tokens_.size()));
    tokens_.push_back(std::move(*bytes));
  }
  const auto end_of_text = ids.find(kEndOfText);
  if (end_of_text == ids.end())
    throw InvalidInput(model.place, "must contain " + std::string(kEndOfText),
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
  std::size_t begin = 0;
  for (std::size_t i = utf8.find(kEndOfText); i != std::string_view::npos; i = utf8.find(kEndOfText, begin)) {
    encoder.add_text(utf8.substr(begin, i - begin));
    ids.push_back(end_of_text_id_);
    begin = i + kEndOfText.size();
  }
  encoder.add_text(utf8.substr(begin));
  return ids;
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
