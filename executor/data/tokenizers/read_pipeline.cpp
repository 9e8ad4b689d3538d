#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "executor/data/tokenizers/pipeline.h"
#include "executor/data/tokenizers/text/part.h"
#include "executor/data/tokenizers/tokenizer_files.h"

namespace frostpipe {
namespace {

/// Reads the array `added_tokens`. A token that the vocabulary lacks is appended to `tokens`; its id must be the next
/// free one.
std::vector<AddedToken> read_added_tokens(PipelinePart& root, std::vector<std::string>& tokens) {
  std::vector<AddedToken> added;
  if (root.take("added_tokens").is_null()) return added;
  std::vector<PipelinePart> parts = root.parts("added_tokens");
  tokens.reserve(tokens.size() + parts.size());  // keeps the texts in place to which `ids` refers
  TokenIds ids = ids_of(tokens);
  for (PipelinePart& part : parts) {
    AddedToken token{.content = part.text("content"),
                     .single_word = part.flag("single_word", false),
                     .lstrip = part.flag("lstrip", false),
                     .rstrip = part.flag("rstrip", false),
                     .normalized = part.flag("normalized", false),
                     .special = part.flag("special", false)};
    if (token.content.empty()) throw InvalidInput(part.place_of("content"), "must not be empty", "\"\"");
    const auto in_vocabulary = ids.find(token.content);
    const bool is_new = in_vocabulary == ids.end();
    token.id = is_new ? static_cast<std::int32_t>(tokens.size()) : in_vocabulary->second;
    if (const PipelinePart::Json& id = part.take("id"); id != token.id)
      throw InvalidInput(
          part.place_of("id"),
          "must be " + std::to_string(token.id) + ", the token's number in the vocabulary or the next free one",
          shown(id));
    part.finish();
    if (is_new) {
      tokens.push_back(token.content);
      ids.emplace(tokens.back(), token.id);
    }
    added.push_back(std::move(token));
  }
  return added;
}

std::vector<AddedToken> only(const std::vector<AddedToken>& all, bool normalized) {
  std::vector<AddedToken> result;
  std::copy_if(all.begin(), all.end(), std::back_inserter(result),
               [&](const AddedToken& token) { return token.normalized == normalized; });
  return result;
}

/// Returns the tokens with their content normalized.
std::vector<AddedToken> as_normalized(std::vector<AddedToken> tokens, const Normalizer& normalizer) {
  for (AddedToken& token : tokens) {
    Text text{.bytes = token.content, .positions = {}};
    if (normalizer) normalizer(text);
    token.content = text.bytes;
  }
  return tokens;
}

/// A role of a special token: the name of its setting, the id that it sets, and its usual spellings (the rest are
/// null).
struct Role {
  const char* name;
  std::optional<std::int32_t> SpecialIds::*id;
  std::array<const char*, 6> spellings;
};

constexpr std::array<Role, 7> kRoles = {{
    {"bos_token", &SpecialIds::begin_of_text, {"<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>"}},
    {"eos_token", &SpecialIds::end_of_text, {"</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>"}},
    {"unk_token", &SpecialIds::unknown, {"<unk>", "[UNK]"}},
    {"pad_token", &SpecialIds::padding, {"<pad>", "[PAD]", "<|pad|>"}},
    {"cls_token", &SpecialIds::classification, {"[CLS]"}},
    {"sep_token", &SpecialIds::separator, {"[SEP]"}},
    {"mask_token", &SpecialIds::mask, {"[MASK]", "<mask>"}},
}};

SpecialIds special_ids_of(const TokenizerFiles& files, const TokenIds& ids) {
  SpecialIds result;
  for (const Role& role : kRoles) {
    if (const auto named = files.roles.find(role.name); named != files.roles.end()) {
      const auto found = ids.find(named->second.content);
      if (found == ids.end())
        throw InvalidInput(named->second.place, "must be a token of the vocabulary or one of its added tokens",
                           in_quotes(named->second.content));
      result.*role.id = found->second;
      continue;
    }
    for (const char* spelling : role.spellings)
      if (const auto found = spelling == nullptr ? ids.end() : ids.find(spelling); found != ids.end()) {
        result.*role.id = found->second;
        break;
      }
  }
  return result;
}

/// Throws InvalidInput unless all ids that the post-processor puts around texts exist.
void check_post_processor(const std::string& place, const PostProcessor& processor, std::size_t num_tokens) {
  for (const std::vector<std::int32_t>* ids :
       {&processor.before, &processor.after, &processor.pair.before, &processor.pair.between, &processor.pair.after})
    for (const std::int32_t id : *ids)
      if (static_cast<std::size_t>(id) >= num_tokens)
        throw InvalidInput(place, "must add only tokens of the vocabulary, which has " + std::to_string(num_tokens),
                           "with id " + std::to_string(id));
}

}  // namespace

Tokenizer::Pipeline::Pipeline(const std::filesystem::path& model_folder) {
  const TokenizerFiles files = read_tokenizer_files(model_folder);
  PipelinePart root(files.json, files.place, ": ");
  for (const char* key : {"version", "truncation", "padding"}) root.take(key);  // callers truncate and pad
  if (!root.take("normalizer").is_null()) normalizer = read_normalizer(root.part("normalizer"));
  if (!root.take("pre_tokenizer").is_null()) pre_tokenizer = read_pre_tokenizer(root.part("pre_tokenizer"));
  ReadModel read = read_model(root.part("model"), {pre_tokenizer.is_byte_level, files.place_of_merge});
  tokens = std::move(read.tokens);
  model = std::move(read.model);
  num_own = tokens.size();
  const std::vector<AddedToken> added = read_added_tokens(root, tokens);
  as_written = AddedTokens(only(added, /*normalized=*/false));
  const std::vector<AddedToken> in_normalized = as_normalized(only(added, /*normalized=*/true), normalizer);
  normalized = AddedTokens(in_normalized);
  for (const AddedToken& token : in_normalized) normalized_spellings.emplace(token.id, token.content);
  ids = ids_of(tokens);
  is_special.resize(tokens.size());
  for (const AddedToken& token : added)
    if (token.special) is_special[static_cast<std::size_t>(token.id)] = true;
  if (!root.take("post_processor").is_null()) post_processor = read_post_processor(root.part("post_processor"));
  check_post_processor(root.place_of("post_processor"), post_processor, tokens.size());
  if (!root.take("decoder").is_null()) decoder = read_decoder(root.part("decoder"));
  root.finish();
  special_ids = special_ids_of(files, ids);
  truncates_left = files.truncates_left;
}

}  // namespace frostpipe
