#include "executor/data/tokenizers/post_processor.h"

#include <array>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "executor/data/tokenizers/text/part.h"

namespace frostpipe {
namespace {

using Json = PipelinePart::Json;
using Ids = std::vector<std::int32_t>;

std::int32_t id_in(const std::string& place, const Json& id) {
  if (!id.is_number_unsigned() || id.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max())
    throw InvalidInput(place, "must be a token's id", shown(id));
  return id.get<std::int32_t>();
}

/// Reads a pair such as ["[CLS]", 101].
std::int32_t token_in(PipelinePart& part, const std::string& key) {
  const Json& token = part.take(key);
  if (!token.is_array() || token.size() != 2 || !token[0].is_string())
    throw InvalidInput(part.place_of(key), R"(must be ["token", id])", shown(token));
  return id_in(part.place_of(key), token[1]);
}

PostProcessor bert_processing(PipelinePart& part) {
  const std::int32_t cls = token_in(part, "cls"), sep = token_in(part, "sep");
  return {.before = {cls}, .after = {sep}, .pair = {.before = {cls}, .between = {sep}, .after = {sep}}};
}

PostProcessor byte_level_processing(PipelinePart& part) {
  part.flag("use_regex", true);
  return {.trims_spans = part.flag("trim_offsets", true), .adds_space = part.flag("add_prefix_space", true)};
}

PostProcessor roberta_processing(PipelinePart& part) {
  const std::int32_t cls = token_in(part, "cls"), sep = token_in(part, "sep");
  return {.before = {cls},
          .after = {sep},
          .pair = {.before = {cls}, .between = {sep, sep}, .after = {sep}},
          .trims_spans = part.flag("trim_offsets", true),
          .adds_space = part.flag("add_prefix_space", true)};
}

// ---- Templates ----------------------------------------------------------------------------------

/// The ids of the special tokens of a template.
class TemplateTokens {
 public:
  explicit TemplateTokens(PipelinePart& part) : place_(part.place_of("special_tokens")) {
    const Json& tokens = part.take("special_tokens");
    if (!tokens.is_object()) throw InvalidInput(place_, "must be an object", shown(tokens));
    for (const auto& [name, token] : tokens.items()) {
      PipelinePart one(token, place_ + "." + name);
      const Json& ids = one.take("ids");
      if (!ids.is_array()) throw InvalidInput(one.place_of("ids"), "must be an array", shown(ids));
      Ids& own = ids_[name];
      for (const Json& id : ids) own.push_back(id_in(one.place_of("ids"), id));
    }
  }

  const Ids& of(const std::string& place, const std::string& name) const {
    const auto found = ids_.find(name);
    if (found == ids_.end()) throw InvalidInput(place, "must be one of the special_tokens", in_quotes(name));
    return found->second;
  }

 private:
  std::string place_;
  std::map<std::string, Ids> ids_;
};

/// Returns the tokens before, between and after the texts `names`, each of which must occur once, in this order.
std::vector<Ids> frame_of(PipelinePart& part, const std::string& key, const std::vector<std::string>& names,
                          const TemplateTokens& tokens) {
  std::vector<Ids> frame(1);
  for (PipelinePart& piece : part.parts(key)) {
    if (!piece.take("SpecialToken").is_null()) {
      PipelinePart token = piece.part("SpecialToken");
      const Ids& ids = tokens.of(token.place_of("id"), token.text("id"));
      frame.back().insert(frame.back().end(), ids.begin(), ids.end());
    } else {
      PipelinePart sequence = piece.part("Sequence");
      const std::string name = sequence.text("id");
      if (frame.size() > names.size() || name != names[frame.size() - 1])
        throw InvalidInput(part.place_of(key), "must have each text once: " + in_quotes(names),
                           in_quotes(name) + " as number " + std::to_string(frame.size()));
      frame.emplace_back();
    }
    piece.finish();
  }
  if (frame.size() <= names.size())
    throw InvalidInput(part.place_of(key), "must have each text once: " + in_quotes(names),
                       "with " + std::to_string(frame.size() - 1));
  return frame;
}

PostProcessor template_processing(PipelinePart& part) {
  const TemplateTokens tokens(part);
  std::vector<Ids> single = frame_of(part, "single", {"A"}, tokens);
  std::vector<Ids> pair = frame_of(part, "pair", {"A", "B"}, tokens);
  return {.before = std::move(single[0]),
          .after = std::move(single[1]),
          .pair = {.before = std::move(pair[0]), .between = std::move(pair[1]), .after = std::move(pair[2])}};
}

// ---- Reading ------------------------------------------------------------------------------------

bool adds_tokens(const PostProcessor& one) {
  return !one.before.empty() || !one.after.empty() || one.pair != PairFrame{};
}

PostProcessor sequence_processing(PipelinePart& part) {
  PostProcessor all;
  for (const PipelinePart& step : part.parts("processors")) {
    PostProcessor one = read_post_processor(step);
    if (adds_tokens(one) && adds_tokens(all))
      throw InvalidInput(step.place(), "must add no tokens, since a processor before it adds some",
                         "one that adds tokens");
    if (one.trims_spans) {
      all.trims_spans = true;
      all.adds_space = one.adds_space;
    }
    if (!adds_tokens(one)) continue;
    all.before = std::move(one.before);
    all.after = std::move(one.after);
    all.pair = std::move(one.pair);
  }
  return all;
}

constexpr std::array<Kind<PostProcessor>, 5> kPostProcessors = {{
    {"BertProcessing", bert_processing},
    {"ByteLevel", byte_level_processing},
    {"RobertaProcessing", roberta_processing},
    {"Sequence", sequence_processing},
    {"TemplateProcessing", template_processing},
}};

}  // namespace

PostProcessor read_post_processor(const PipelinePart& part) { return read_kind<PostProcessor>(part, kPostProcessors); }

}  // namespace frostpipe
