#include "executor/data/tokenizers/wordpiece_files.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "executor/data/tokenizers/tokenizer_files.h"
#include "profiles/error.h"
#include "profiles/error_values.h"
#include "profiles/files.h"
#include "profiles/separated_values.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

std::vector<std::string> read_vocabulary_lines(const std::filesystem::path& path) {
  const std::string content = read_text_file(path);
  std::vector<std::string> tokens;
  for (const std::string_view line : lines_of(content)) {
    if (line.empty())
      throw InvalidInput(path.string() + ":" + std::to_string(tokens.size() + 1), "must be a token", "an empty line");
    tokens.emplace_back(line);
  }
  return tokens;
}

void check_is_special(const std::string& place, const Json& added_token) {
  const Json* content = added_token.is_object() && added_token.contains("content") ? &added_token["content"] : nullptr;
  const std::string text =
      content != nullptr && content->is_string() ? content->get<std::string>() : shown(added_token);
  if (std::find(kSpecialTokens.begin(), kSpecialTokens.end(), text) == kSpecialTokens.end())
    throw InvalidInput(place, "must be one of BERT's special tokens (others cannot be added to the vocabulary)",
                       in_quotes(text));
}

/// Missing, or the value that BERT's tokenizer has there.
void check_setting(const std::filesystem::path& path, const Json& object, const char* object_name, const char* key,
                   const Json& expected) {
  if (!object.is_object() || !object.contains(key) || object[key] == expected) return;
  throw InvalidInput(path.string() + ": " + object_name + "." + key, "must be " + expected.dump() + ", as BERT's",
                     shown(object[key]));
}

std::vector<std::string> read_vocabulary_of_tokenizer_json(const std::filesystem::path& path) {
  const Json tokenizer = read_json_object(path);
  const Json model = tokenizer.value("model", Json());
  const Json type = model.is_object() ? model.value("type", Json()) : Json();
  if (type != "WordPiece") throw InvalidInput(path.string() + ": model.type", "must be \"WordPiece\"", shown(type));
  check_setting(path, model, "model", "unk_token", kUnknownToken);
  check_setting(path, model, "model", "continuing_subword_prefix", "##");
  check_setting(path, model, "model", "max_input_chars_per_word", 100);
  check_setting(path, tokenizer.value("normalizer", Json()), "normalizer", "type", "BertNormalizer");
  check_setting(path, tokenizer.value("normalizer", Json()), "normalizer", "clean_text", true);
  check_setting(path, tokenizer.value("pre_tokenizer", Json()), "pre_tokenizer", "type", "BertPreTokenizer");
  const Json vocabulary = model.value("vocab", Json());
  if (!vocabulary.is_object())
    throw InvalidInput(path.string() + ": model.vocab", "must be an object", shown(vocabulary));
  std::vector<std::string> tokens = tokens_by_id(path.string() + ": model.vocab", vocabulary);
  const Json added_tokens = tokenizer.value("added_tokens", Json::array());
  if (!added_tokens.is_array())
    throw InvalidInput(path.string() + ": added_tokens", "must be an array", shown(added_tokens));
  for (std::size_t i = 0; i < added_tokens.size(); ++i)
    check_is_special(path.string() + ": added_tokens[" + std::to_string(i) + "]", added_tokens[i]);
  return tokens;
}

/// The truth value at `key`; nothing where the key is missing or null.
std::optional<bool> optional_bool(const std::filesystem::path& path, const Json& object, const char* key) {
  const Json value = object.value(key, Json());
  if (value.is_null()) return std::nullopt;
  if (!value.is_boolean()) throw InvalidInput(path.string() + ": " + key, "must be true or false", shown(value));
  return value.get<bool>();
}

/// Of a tokenizer.json that is used as it stands.
WordPieceOptions options_of_normalizer(const std::filesystem::path& model_folder) {
  const std::filesystem::path path = model_folder / "tokenizer.json";
  WordPieceOptions options;
  if (!std::filesystem::exists(path)) return options;
  const Json normalizer = read_json_object(path).value("normalizer", Json());
  if (!normalizer.is_object()) return {.lowercase = false, .strip_accents = false, .handle_chinese_characters = false};
  options.lowercase = optional_bool(path, normalizer, "lowercase").value_or(options.lowercase);
  options.strip_accents = optional_bool(path, normalizer, "strip_accents");
  options.handle_chinese_characters =
      optional_bool(path, normalizer, "handle_chinese_chars").value_or(options.handle_chinese_characters);
  return options;
}

}  // namespace

std::vector<std::string> read_wordpiece_vocabulary(const std::filesystem::path& file) {
  return file.extension() == ".json" ? read_vocabulary_of_tokenizer_json(file) : read_vocabulary_lines(file);
}

WordPieceOptions wordpiece_options_from(const std::filesystem::path& model_folder) {
  const std::filesystem::path path = model_folder / "tokenizer_config.json";
  WordPieceOptions options;
  if (!std::filesystem::exists(path)) return options;
  const Json config = read_json_object(path);
  const Json tokenizer_class = config.value("tokenizer_class", Json());
  if (tokenizer_class == "PreTrainedTokenizerFast" || tokenizer_class == "TokenizersBackend")
    return options_of_normalizer(model_folder);
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
