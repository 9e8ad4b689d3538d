#include "executor/data/tokenizers/byte_level_model.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "executor/data/tokenizers/byte_level_words.h"
#include "executor/data/tokenizers/tokenizer_files.h"
#include "profiles/error.h"
#include "profiles/error_values.h"
#include "profiles/files.h"
#include "profiles/separated_values.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

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
  for (const std::string_view line : lines_of(content)) {
    ++line_number;
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

/// Of a token that is an object: nothing around it decides whether it is found.
void check_is_found_by_spelling(const std::string& place, const Json& token) {
  if (!token.is_object()) return;
  for (const char* key : {"single_word", "lstrip", "rstrip"}) check_setting(place, token, key, false);
}

/// A token, as text or as an object with its text and how it is found, must be one of `known`.
void check_is_known(const std::string& place, const Json& token, const std::vector<AddedToken>& known) {
  const Json& content = token.is_object() ? member(token, "content") : token;
  if (content != kEndOfTextToken &&
      std::none_of(known.begin(), known.end(), [&](const AddedToken& one) { return content == one.content; }))
    throw InvalidInput(place,
                       "must be " + std::string(kEndOfTextToken) + " or one of the added_tokens of tokenizer.json",
                       shown(content));
  check_is_found_by_spelling(place, token);
}

/// Reads `added`, which stands at `place` in added_tokens, and gives it its number among `tokens` if it is new there.
AddedToken read_added_token(const std::string& place, const Json& added, std::vector<std::string>& tokens) {
  if (!added.is_object()) throw InvalidInput(place, "must be an object", shown(added));
  const Json& content = member(added, "content");
  if (!content.is_string() || content.get_ref<const std::string&>().empty())
    throw InvalidInput(place + ": content", "must be a text that is not empty", shown(content));
  check_is_found_by_spelling(place, added);
  AddedToken token{.content = content.get<std::string>(), .id = 0, .normalized = member(added, "normalized") == true};
  // In the vocabulary already, or the one after its last.
  const auto in_vocabulary = std::find(tokens.begin(), tokens.end(), token.content);
  token.id = static_cast<std::int32_t>(in_vocabulary - tokens.begin());
  if (const Json& id = member(added, "id"); id != token.id)
    throw InvalidInput(
        place + ": id",
        "must be " + std::to_string(token.id) + ", the token's number in the vocabulary or the next free one",
        shown(id));
  if (in_vocabulary == tokens.end())
    tokens.push_back(token.content);
  else if (bytes_of(token.content) != token.content)
    throw InvalidInput(place + ": content", "must be visible ASCII where the vocabulary has it", shown(content));
  return token;
}

ByteLevelModel read_tokenizer_json(const std::filesystem::path& path) {
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

  ByteLevelModel result{.place = model_place + ": vocab",
                        .tokens = tokens_by_id(model_place + ": vocab", object_member(model_place, model, "vocab")),
                        .merges = merge_rules_of(model_place + ": merges", member(model, "merges")),
                        .added_tokens = {}};
  const Json& added_tokens = member(tokenizer, "added_tokens");
  if (!added_tokens.is_array() && !added_tokens.is_null())
    throw InvalidInput(file + ": added_tokens", "must be an array", shown(added_tokens));
  for (std::size_t i = 0; i < added_tokens.size(); ++i) {
    const std::string place = file + ": added_tokens[" + std::to_string(i) + "]";
    result.added_tokens.push_back(read_added_token(place, added_tokens[i], result.tokens));
  }
  return result;
}

ByteLevelModel read_vocabulary(const std::filesystem::path& folder) {
  if (file_exists(folder / "tokenizer.json")) return read_tokenizer_json(folder / "tokenizer.json");
  const std::filesystem::path vocabulary = folder / "vocab.json";
  const std::filesystem::path merges = folder / "merges.txt";
  if (!file_exists(vocabulary) || !file_exists(merges))
    throw InvalidInput(folder.string(), "must hold tokenizer.json, or vocab.json and merges.txt", "without");
  return {.place = vocabulary.string(),
          .tokens = tokens_by_id(vocabulary.string(), read_json_object(vocabulary)),
          .merges = read_merge_lines(merges),
          .added_tokens = {}};
}

/// The files beside the vocabulary, where there are any, must add no other tokens and no space before the text.
void check_settings_beside(const std::filesystem::path& folder, const std::vector<AddedToken>& known) {
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::filesystem::path path = folder / name;
    if (!file_exists(path)) continue;
    const Json settings = read_json_object(path);
    check_setting(path.string(), settings, "add_prefix_space", false);
    for (const char* key : {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"})
      if (const Json& token = member(settings, key); !token.is_null())
        check_is_known(path.string() + ": " + key, token, known);
    for (const char* key : {"added_tokens_decoder", "additional_special_tokens", "extra_special_tokens"})
      for (const auto& [key_of_token, token] : member(settings, key).items())
        check_is_known(path.string() + ": " + key + ": " + in_quotes(key_of_token), token, known);
  }
  const std::filesystem::path added = folder / "added_tokens.json";
  if (!file_exists(added)) return;
  const Json tokens = read_json_object(added);
  for (const auto& [token, id] : tokens.items()) check_is_known(added.string(), Json(token), known);
}

// ---- The byte alphabet --------------------------------------------------------------------------

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

}  // namespace

ByteLevelModel read_byte_level_model(const std::filesystem::path& folder) {
  ByteLevelModel model = read_vocabulary(folder);
  check_settings_beside(folder, model.added_tokens);
  // <|endoftext|> is found in texts whether or not the files list it.
  const auto is_end_of_text = [](const AddedToken& token) { return token.content == kEndOfTextToken; };
  const auto in_vocabulary = std::find(model.tokens.begin(), model.tokens.end(), kEndOfTextToken);
  if (in_vocabulary != model.tokens.end() &&
      std::none_of(model.added_tokens.begin(), model.added_tokens.end(), is_end_of_text))
    model.added_tokens.push_back({.content = std::string(kEndOfTextToken),
                                  .id = static_cast<std::int32_t>(in_vocabulary - model.tokens.begin())});
  return model;
}

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

}  // namespace frostpipe
