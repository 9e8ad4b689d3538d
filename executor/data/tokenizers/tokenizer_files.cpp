#include "executor/data/tokenizers/tokenizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/error_values.h"
#include "executor/data/tokenizers/vocabulary_files.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

constexpr std::array<const char*, 7> kRoleNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                   "pad_token", "cls_token", "mask_token"};

/// Returns whether the file exists; false if the path is not accessible.
bool file_exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// Returns a reference to the member of an object; null if it is missing.
const Json& member(const Json& object, const std::string& key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

TokenizerFiles read_vocabulary_files(const std::filesystem::path& folder) {
  if (const auto path = folder / "tokenizer.json"; file_exists(path))
    return {.json = read_json_object(path), .place = path.string()};
  if (const auto path = folder / "vocab.txt"; file_exists(path)) return bert_files(path);
  if (file_exists(folder / "vocab.json") && file_exists(folder / "merges.txt"))
    return byte_level_files(folder / "vocab.json", folder / "merges.txt");
  const bool has_sentence_pieces = file_exists(folder / "tokenizer.model");
  throw InvalidInput(folder.string(),
                     fmt::format("must hold tokenizer.json, or vocab.txt, or vocab.json and merges.txt{}",
                                 has_sentence_pieces ? " (transformers makes tokenizer.json of tokenizer.model by "
                                                       "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER))"
                                                     : ""),
                     has_sentence_pieces ? "a folder with tokenizer.model alone" : "a folder without them");
}

// ---- Settings of tokenizer_config.json that change the pipeline ---------------------------------

/// Returns the boolean at `key`; null if it is missing. Throws InvalidInput for any other value.
Json optional_bool(const std::string& place, const Json& object, const char* key) {
  const Json value = object.value(key, Json());
  if (!value.is_null() && !value.is_boolean())
    throw InvalidInput(fmt::format("{}: {}", place, key), "must be true or false", shown(value));
  return value;
}

/// Applies BERT's settings in tokenizer_config.json to a BertNormalizer, unless the class of the tokenizer is one that
/// uses tokenizer.json unchanged.
void override_bert_normalizer(const std::string& place, const Json& config, TokenizerFiles& files) {
  const Json tokenizer_class = config.value("tokenizer_class", Json());
  const bool as_it_stands = tokenizer_class == "PreTrainedTokenizerFast" || tokenizer_class == "TokenizersBackend";
  if (as_it_stands || member(member(files.json, "normalizer"), "type") != "BertNormalizer") return;
  Json& normalizer = files.json["normalizer"];
  const Json lowercase = optional_bool(place, config, "do_lower_case");
  const Json chinese = optional_bool(place, config, "tokenize_chinese_chars");
  normalizer["lowercase"] = lowercase.is_null() ? Json(true) : lowercase;
  normalizer["strip_accents"] = optional_bool(place, config, "strip_accents");
  normalizer["handle_chinese_chars"] = chinese.is_null() ? Json(true) : chinese;
}

void override_prefix_space(const std::string& place, const Json& config, TokenizerFiles& files) {
  const Json adds_space = optional_bool(place, config, "add_prefix_space");
  if (!adds_space.is_null() && member(member(files.json, "pre_tokenizer"), "type") == "ByteLevel")
    files.json["pre_tokenizer"]["add_prefix_space"] = adds_space;
}

void read_truncation_side(const std::string& place, const Json& config, TokenizerFiles& files) {
  const Json side = config.value("truncation_side", Json());
  if (side.is_null()) return;
  if (side != "left" && side != "right")
    throw InvalidInput(place + ": truncation_side", "must be left or right", shown(side));
  files.truncates_left = side == "left";
}

// ---- Tokens of the settings ---------------------------------------------------------------------

/// Adds `token`, a string or an object with its content and matching options, to the added tokens, unless one of them
/// has this content. Returns the content. A token without an `id` must be in the vocabulary (or, if that is Unigram's
/// array, is not added) or in `ids`, which has the ids of the folder's numbered tokens.
std::string add_token(const std::string& place, const Json& token, bool is_special, const Json& ids,
                      TokenizerFiles& files) {
  const Json content = token.is_object() ? token.value("content", Json()) : token;
  if (!content.is_string() || content.get_ref<const std::string&>().empty())
    throw InvalidInput(place, "must be a token: a text that is not empty, or an object with \"content\"", shown(token));
  Json& added = files.json["added_tokens"];
  if (added.is_null()) added = Json::array();
  if (!added.is_array()) return content;  // reading the array reports the error
  for (const Json& one : added)
    if (member(one, "content") == content) return content;
  Json one = token.is_object() ? token : Json{{"content", content}, {"special", is_special}};
  one.erase("__type");
  const Json& vocabulary = member(member(files.json, "model"), "vocab");
  if (!one.contains("id")) {
    const std::string& name = content.get_ref<const std::string&>();
    const Json& in_vocabulary = member(vocabulary, name);
    const Json& id = in_vocabulary.is_null() ? member(ids, name) : in_vocabulary;
    if (!id.is_null())
      one["id"] = id;
    else if (vocabulary.is_object())
      throw InvalidInput(place, "must be a token of the vocabulary or one of its added tokens", shown(content));
  }
  if (one.contains("id")) added.push_back(std::move(one));
  return content;
}

/// Returns the tokens of added_tokens_decoder with their places; each has its id.
std::vector<std::pair<std::string, Json>> numbered_tokens(const std::string& place, const Json& settings) {
  std::vector<std::pair<std::string, Json>> tokens;
  const Json decoder = settings.value("added_tokens_decoder", Json());
  if (!decoder.is_null() && !decoder.is_object())
    throw InvalidInput(place + ": added_tokens_decoder", "must be an object", shown(decoder));
  for (const auto& [id, token] : decoder.items()) {
    const std::string place_of_token = place + ": added_tokens_decoder." + id;
    if (!token.is_object() || id.empty() || id.size() > 9 || id.find_first_not_of("0123456789") != std::string::npos)
      throw InvalidInput(place_of_token, "must be a token's number with an object", shown(token));
    Json with_id = token;
    with_id["id"] = std::stoi(id);
    tokens.emplace_back(place_of_token, std::move(with_id));
  }
  return tokens;
}

void add_tokens_of(const std::string& place, const Json& settings, const Json& ids, TokenizerFiles& files) {
  for (const auto& [place_of_token, token] : numbered_tokens(place, settings))
    add_token(place_of_token, token, /*is_special=*/true, ids, files);
  for (const char* role : kRoleNames) {
    const Json token = settings.value(role, Json());
    if (token.is_null()) continue;
    const std::string place_of_token = fmt::format("{}: {}", place, role);
    files.roles.insert_or_assign(role, RoleToken{add_token(place_of_token, token, true, ids, files), place_of_token});
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const Json further = settings.value(key, Json::array());
    for (const auto& [name, token] : further.items())
      add_token(fmt::format("{}: {}: {}", place, key, in_quotes(name)), token, true, ids, files);
  }
}

}  // namespace

TokenizerFiles read_tokenizer_files(const std::filesystem::path& folder) {
  TokenizerFiles files = read_vocabulary_files(folder);
  files.truncates_left = member(member(files.json, "truncation"), "direction") == "Left";
  const std::filesystem::path config_path = folder / "tokenizer_config.json";
  const std::string place = config_path.string();
  const Json config = file_exists(config_path) ? read_json_object(config_path) : Json::object();
  override_bert_normalizer(place, config, files);
  override_prefix_space(place, config, files);
  read_truncation_side(place, config, files);
  const std::filesystem::path added_path = folder / "added_tokens.json";
  const Json added = file_exists(added_path) ? read_json_object(added_path) : Json::object();
  Json ids = added;
  for (const auto& [place_of_token, token] : numbered_tokens(place, config))
    if (const Json& content = member(token, "content"); content.is_string())
      ids[content.get_ref<const std::string&>()] = token.at("id");
  const std::size_t num_own = member(files.json, "added_tokens").size();
  if (const auto path = folder / "special_tokens_map.json"; file_exists(path))
    add_tokens_of(path.string(), read_json_object(path), ids, files);
  add_tokens_of(place, config, ids, files);
  for (const auto& [token, id] : added.items())
    add_token(added_path.string() + ": " + in_quotes(token), {{"content", token}, {"id", id}}, false, ids, files);
  if (Json& all = files.json["added_tokens"]; all.is_array())  // the order of JSON's keys is that of their texts
    std::stable_sort(all.begin() + static_cast<std::ptrdiff_t>(num_own), all.end(),
                     [](const Json& a, const Json& b) { return a.at("id") < b.at("id"); });
  return files;
}

}  // namespace frostpipe
