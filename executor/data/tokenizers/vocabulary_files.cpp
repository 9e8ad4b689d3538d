#include "executor/data/tokenizers/vocabulary_files.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/error_values.h"
#include "base/files.h"
#include "base/parse_json.h"
#include "base/separated_values.h"

namespace frostpipe {
namespace {

using Json = nlohmann::json;

/// Returns "FILE:LINE" for messages; lines are counted from 1.
std::string line_of(const std::filesystem::path& file, std::size_t line) {
  return fmt::format("{}:{}", file.string(), line);
}

Json read_vocabulary_lines(const std::filesystem::path& path) {
  const std::string content = read_text_file(path);
  Json vocabulary = Json::object();
  for (const std::string_view line : lines_of(content)) {
    const std::size_t id = vocabulary.size();
    if (line.empty()) throw InvalidInput(line_of(path, id + 1), "must be a token", "an empty line");
    const auto [earlier, is_new] = vocabulary.emplace(std::string(line), id);
    if (!is_new)
      throw InvalidInput(
          line_of(path, id + 1),
          fmt::format("must differ from every other line (see line {})", earlier->get<std::size_t>() + 1),
          in_quotes(line));
  }
  return vocabulary;
}

/// Adds the token of a role to the added tokens and to `files.roles`, if the vocabulary has the token.
void add_role(TokenizerFiles& files, const std::string& role, const std::string& token,
              bool takes_space_before = false) {
  const Json& vocabulary = files.json["model"]["vocab"];
  const auto found = vocabulary.find(token);
  if (found == vocabulary.end()) return;
  files.roles[role] = {token, files.place};
  Json& added = files.json["added_tokens"];
  for (const Json& one : added)
    if (one["content"] == token) return;
  added.push_back({{"id", *found}, {"content", token}, {"lstrip", takes_space_before}, {"special", true}});
}

Json id_of(const TokenizerFiles& files, const std::string& token) {
  const Json& vocabulary = files.json["model"]["vocab"];
  const auto found = vocabulary.find(token);
  if (found == vocabulary.end())
    throw InvalidInput(files.place, "must contain " + token,
                       fmt::format("without it among {} tokens", vocabulary.size()));
  return *found;
}

/// Returns the lines of a merges.txt, as the array `merges` of tokenizer.json, and the number of header lines before
/// them.
std::pair<Json, std::size_t> read_merge_lines(const std::filesystem::path& path) {
  const std::string content = read_text_file(path);
  std::vector<std::string_view> lines = lines_of(content);
  const std::size_t num_header_lines = !lines.empty() && lines.front().starts_with("#version") ? 1 : 0;
  return {Json(std::vector<std::string>(lines.begin() + static_cast<std::ptrdiff_t>(num_header_lines), lines.end())),
          num_header_lines};
}

}  // namespace

TokenizerFiles bert_files(const std::filesystem::path& vocabulary) {
  TokenizerFiles files{.json = {}, .place = vocabulary.string()};
  files.json = {
      {"added_tokens", Json::array()},
      {"normalizer", {{"type", "BertNormalizer"}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"decoder", {{"type", "WordPiece"}}},
      {"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"vocab", read_vocabulary_lines(vocabulary)}}}};
  id_of(files, "[UNK]");
  files.json["post_processor"] = {
      {"type", "BertProcessing"}, {"cls", {"[CLS]", id_of(files, "[CLS]")}}, {"sep", {"[SEP]", id_of(files, "[SEP]")}}};
  for (const auto& [role, token] :
       {std::pair("pad_token", "[PAD]"), std::pair("unk_token", "[UNK]"), std::pair("cls_token", "[CLS]"),
        std::pair("sep_token", "[SEP]"), std::pair("mask_token", "[MASK]")})
    add_role(files, role, token);
  return files;
}

TokenizerFiles byte_level_files(const std::filesystem::path& vocabulary, const std::filesystem::path& merges) {
  TokenizerFiles files{.json = {}, .place = vocabulary.string()};
  auto [rules, num_header_lines] = read_merge_lines(merges);
  files.place_of_merge = [merges, first = num_header_lines + 1](std::size_t i) { return line_of(merges, first + i); };
  files.json = {{"added_tokens", Json::array()},
                {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
                {"post_processor", {{"type", "ByteLevel"}, {"trim_offsets", false}}},
                {"decoder", {{"type", "ByteLevel"}}},
                {"model", {{"type", "BPE"}, {"vocab", read_json_object(vocabulary)}, {"merges", std::move(rules)}}}};
  const Json& tokens = files.json["model"]["vocab"];
  if (tokens.contains("<s>") && tokens.contains("</s>")) {
    files.json["post_processor"] = {{"type", "RobertaProcessing"},
                                    {"cls", {"<s>", tokens["<s>"]}},
                                    {"sep", {"</s>", tokens["</s>"]}},
                                    {"add_prefix_space", false}};
    for (const auto& [role, token] :
         {std::pair("bos_token", "<s>"), std::pair("eos_token", "</s>"), std::pair("unk_token", "<unk>"),
          std::pair("cls_token", "<s>"), std::pair("sep_token", "</s>"), std::pair("pad_token", "<pad>")})
      add_role(files, role, token);
    add_role(files, "mask_token", "<mask>", /*takes_space_before=*/true);
  } else {
    id_of(files, "<|endoftext|>");
    for (const char* role : {"bos_token", "eos_token", "unk_token"}) add_role(files, role, "<|endoftext|>");
  }
  return files;
}

nlohmann::json read_json_object(const std::filesystem::path& path) {
  const std::string content = read_text_file(path);
  auto object = parse_json<nlohmann::json>(content, path.string());
  if (!object.is_object()) throw InvalidInput(path.string(), "must be a JSON object", object.type_name());
  return object;
}

}  // namespace frostpipe
