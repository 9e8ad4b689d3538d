#include "executor/data/tokenizers/decoders.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "executor/data/tokenizers/text/byte_level_words.h"
#include "executor/data/tokenizers/text/part.h"
#include "executor/data/tokenizers/text/pattern.h"
#include "executor/data/tokenizers/text/pre_tokenizers.h"
#include "executor/data/tokenizers/text/text.h"

namespace frostpipe {
namespace {

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

std::string joined(const std::vector<std::string>& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  return all;
}

void fuse(std::vector<std::string>& tokens) { tokens = {joined(tokens)}; }

void decode_byte_level(std::vector<std::string>& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += bytes_of(token).value_or(token);
  std::string buffer;
  std::string text(valid_utf8(bytes, buffer));
  tokens = {std::move(text)};
}

/// Returns the byte of a token such as "<0x41>".
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  std::uint8_t byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc() || end != token.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

/// Decodes runs of byte tokens as text, or each byte as U+FFFD if the run is not valid UTF-8.
void decode_byte_fallback(std::vector<std::string>& tokens) {
  std::vector<std::string> result;
  std::string bytes;
  const auto end_bytes = [&] {
    std::string buffer;
    const bool is_text = bytes.empty() || valid_utf8(bytes, buffer).data() == bytes.data();
    if (is_text && !bytes.empty()) result.push_back(bytes);
    for (std::size_t i = 0; !is_text && i < bytes.size(); ++i) result.emplace_back(kReplacementCharacter);
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const std::optional<char> byte = byte_of(token)) {
      bytes += *byte;
      continue;
    }
    end_bytes();
    result.push_back(std::move(token));
  }
  end_bytes();
  tokens = std::move(result);
}

std::string with_replaced(std::string_view text, std::string_view old, std::string_view by) {
  std::string result;
  std::size_t begin = 0;
  for (std::size_t i = text.find(old); i != std::string_view::npos; i = text.find(old, begin)) {
    result.append(text.substr(begin, i - begin)).append(by);
    begin = i + old.size();
  }
  return result.append(text.substr(begin));
}

Decoder metaspace_decoder(PipelinePart& part) {
  const std::string replacement = part.text("replacement", "\xE2\x96\x81");
  if (replacement.empty()) throw InvalidInput(part.place_of("replacement"), "must be a character", "\"\"");
  part.take("str_rep");
  part.flag("split", true);
  const bool prepends = prepend_scheme_of(part) != "never";
  return [=](std::vector<std::string>& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = with_replaced(tokens[i], replacement, i == 0 && prepends ? "" : " ");
  };
}

Decoder replace_decoder(PipelinePart& part) {
  return [pattern = read_pattern(part), content = part.text("content")](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) {
      std::string result;
      std::size_t end = 0;
      for (const Range& match : pattern(token)) {
        result.append(token, end, match.begin - end).append(content);
        end = match.end;
      }
      token = result.append(token, end);
    }
  };
}

Decoder strip_decoder(PipelinePart& part) {
  return [content = part.text("content"), start = part.count("start", 0),
          stop = part.count("stop", 0)](std::vector<std::string>& tokens) {
    if (content.empty()) return;
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (int i = 0; i < start && rest.starts_with(content); ++i) rest.remove_prefix(content.size());
      for (int i = 0; i < stop && rest.ends_with(content); ++i) rest.remove_suffix(content.size());
      token = std::string(rest);
    }
  };
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kEnglishCleanup = {{{" .", "."},
                                                                                            {" ?", "?"},
                                                                                            {" !", "!"},
                                                                                            {" ,", ","},
                                                                                            {" ' ", "'"},
                                                                                            {" n't", "n't"},
                                                                                            {" 'm", "'m"},
                                                                                            {" do not", " don't"},
                                                                                            {" 's", "'s"},
                                                                                            {" 've", "'ve"},
                                                                                            {" 're", "'re"}}};

Decoder wordpiece_decoder(PipelinePart& part) {
  return [prefix = part.text("prefix", "##"), cleans = part.flag("cleanup", true)](std::vector<std::string>& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) tokens[i] = tokens[i].starts_with(prefix) ? tokens[i].substr(prefix.size()) : " " + tokens[i];
      if (!cleans) continue;
      for (const auto& [old, by] : kEnglishCleanup) tokens[i] = with_replaced(tokens[i], old, by);
    }
  };
}

Decoder byte_level_decoder(PipelinePart& part) {
  for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) part.flag(key, true);
  return decode_byte_level;
}

Decoder sequence_decoder(PipelinePart& part) {
  std::vector<Decoder> steps;
  for (const PipelinePart& step : part.parts("decoders")) steps.push_back(read_decoder(step));
  return [steps = std::move(steps)](std::vector<std::string>& tokens) {
    for (const Decoder& step : steps) step(tokens);
  };
}

constexpr std::array<Kind<Decoder>, 8> kDecoders = {{
    {"ByteFallback", [](PipelinePart&) -> Decoder { return decode_byte_fallback; }},
    {"ByteLevel", byte_level_decoder},
    {"Fuse", [](PipelinePart&) -> Decoder { return fuse; }},
    {"Metaspace", metaspace_decoder},
    {"Replace", replace_decoder},
    {"Sequence", sequence_decoder},
    {"Strip", strip_decoder},
    {"WordPiece", wordpiece_decoder},
}};

}  // namespace

Decoder read_decoder(const PipelinePart& part) { return read_kind<Decoder>(part, kDecoders); }

}  // namespace frostpipe
