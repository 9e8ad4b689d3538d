#include "executor/data/tokenizers/models/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/error_values.h"
#include "executor/data/tokenizers/models/token_tree.h"
#include "executor/data/tokenizers/text/part.h"

namespace frostpipe {
namespace {

constexpr double kPenaltyOfUnknown = 10;

struct UnigramFile {
  std::vector<std::string> tokens;  // by id
  std::vector<double> scores;       // by id
  std::optional<std::int32_t> unknown{};
  bool falls_back_to_bytes = false;
};

/// Returns the double nearest to 10^exponent, for exponents from 0 to 308; std::pow may return another one.
double power_of_ten(int exponent) {
  static const std::vector<double> powers = [] {
    std::vector<double> made;
    for (int i = 0; i <= 308; ++i) {
      const std::string text = fmt::format("1e{}", i);
      std::from_chars(text.data(), text.data() + text.size(), made.emplace_back());
    }
    return made;
  }();
  return powers.at(static_cast<std::size_t>(exponent));
}

/// Returns the number that Hugging Face's library reads where a file says `score`. The library rounds the decimal
/// digits to a double, which it then divides by a power of ten (serde_json without float_roundtrip). A quarter of the
/// trained scores come out one unit in the last place away from the nearest double, and this decides between two
/// tokenizations whose sums would otherwise be equal.
double as_the_library_reads(double score) {
  std::array<char, 32> text{};  // -d.ddde-ddd with at most 17 digits, the shortest that stand for this number
  const auto end = std::to_chars(text.data(), text.data() + text.size(), score, std::chars_format::scientific).ptr;
  const std::string_view written(text.data(), static_cast<std::size_t>(end - text.data()));
  const std::size_t e = written.find('e');
  std::uint64_t digits = 0;
  int power = std::stoi(std::string(written.substr(e + 1)));
  for (const char c : written.substr(0, e))
    if (c >= '0' && c <= '9') digits = digits * 10 + static_cast<std::uint64_t>(c - '0');
  if (const std::size_t point = written.find('.'); point != std::string_view::npos)
    power -= static_cast<int>(e - point) - 1;
  auto value = static_cast<double>(digits);
  for (; power < -308; power += 308) value /= 1e308;
  value = power < 0 ? value / power_of_ten(-power) : value * power_of_ten(power);
  return std::signbit(score) ? -value : value;
}

class Unigram final : public TokenModel {
 public:
  explicit Unigram(const UnigramFile& file) : scores_(file.scores), unknown_(file.unknown) {
    const TokenIds ids = ids_of(file.tokens);
    for (const auto& [token, id] : ids) tree_.add(token, id);
    score_of_unknown_ = *std::min_element(scores_.begin(), scores_.end()) - kPenaltyOfUnknown;
    for (int byte = 0; file.falls_back_to_bytes && byte < 256; ++byte)
      if (const auto found = ids.find(fmt::format("<0x{:02X}>", byte)); found != ids.end())
        id_of_byte_[static_cast<std::size_t>(byte)] = found->second;
      else
        falls_back_ = false;
    falls_back_ = falls_back_ && file.falls_back_to_bytes;
  }

  void tokenize(const Pieces& pieces, std::vector<TextToken>& tokens) const override {
    KnownWords known;
    std::vector<Node> best;
    for (const Range& piece : pieces.ranges) {
      const std::string_view word = pieces[piece];
      if (known.repeat(word, piece.begin, tokens)) continue;
      const std::size_t first_token = tokens.size();
      find_best(word, best);
      append_best(word, piece.begin, best, tokens);
      known.remember(word, piece.begin, first_token, tokens);
    }
  }

 private:
  /// The best tokenization of a word up to some position: its score, and its last token.
  struct Node {
    double score = 0;
    std::uint32_t begin = kNowhere;
    std::int32_t id = kNoToken;
  };
  static constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

  void find_best(std::string_view word, std::vector<Node>& best) const {
    best.assign(word.size() + 1, {});
    for (std::size_t begin = 0; begin < word.size();) {
      std::size_t next = begin;
      next_character(word, next);
      const double score = best[begin].score;
      const auto offer = [&](std::size_t end, double candidate, std::int32_t id) {
        if (best[end].begin == kNowhere || candidate > best[end].score)
          best[end] = {candidate, static_cast<std::uint32_t>(begin), id};
      };
      bool has_character = false;
      tree_.for_each_prefix(word.substr(begin), [&](std::size_t size, std::int32_t id) {
        offer(begin + size, scores_[static_cast<std::size_t>(id)] + score, id);
        has_character = has_character || begin + size == next;
      });
      if (!has_character) offer(next, score_of_unknown_ + score, kNoToken);
      begin = next;
    }
  }

  void append_best(std::string_view word, std::size_t offset, const std::vector<Node>& best,
                   std::vector<TextToken>& tokens) const {
    const std::size_t first_token = tokens.size();
    for (std::size_t end = word.size(); end > 0;) {  // from the last token to the first
      std::size_t begin = best[end].begin;
      const auto is_unknown = [&](std::int32_t id) { return id == kNoToken || id == unknown_; };
      if (!is_unknown(best[end].id)) {
        tokens.push_back(
            {best[end].id, static_cast<std::uint32_t>(offset + begin), static_cast<std::uint32_t>(offset + end)});
      } else {
        while (begin > 0 && is_unknown(best[begin].id)) begin = best[begin].begin;
        append_unknown(word.substr(begin, end - begin), offset + begin, tokens);
      }
      end = begin;
    }
    std::reverse(tokens.begin() + static_cast<std::ptrdiff_t>(first_token), tokens.end());
  }

  /// Appends the tokens of unknown text: those of its bytes, or unk_id. The last byte comes first, because tokens are
  /// appended in reverse order.
  void append_unknown(std::string_view text, std::size_t offset, std::vector<TextToken>& tokens) const {
    const auto begin = static_cast<std::uint32_t>(offset), end = static_cast<std::uint32_t>(offset + text.size());
    if (falls_back_ && !is_token(text)) {
      for (auto byte = text.rbegin(); byte != text.rend(); ++byte)
        tokens.push_back({id_of_byte_[static_cast<std::uint8_t>(*byte)], begin, end});
    } else if (unknown_) {
      tokens.push_back({*unknown_, begin, end});
    } else {
      throw InvalidInput("text to encode", "must consist of characters of the vocabulary, which has no unk_id",
                         in_quotes(text));
    }
  }

  /// Returns whether the text is a token, as the spelling of unk_id is.
  bool is_token(std::string_view text) const {
    bool found = false;
    tree_.for_each_prefix(text, [&](std::size_t size, std::int32_t) { found = found || size == text.size(); });
    return found;
  }

  std::vector<double> scores_;
  std::optional<std::int32_t> unknown_;
  double score_of_unknown_ = 0;
  TokenTree tree_;
  bool falls_back_ = true;
  std::array<std::int32_t, 256> id_of_byte_{};
};

}  // namespace

ReadModel read_unigram(PipelinePart& part, const ModelContext&) {
  UnigramFile file;
  const PipelinePart::Json& vocabulary = part.take("vocab");
  const std::string place = part.place_of("vocab");
  if (!vocabulary.is_array() || vocabulary.empty())
    throw InvalidInput(place, "must be an array that is not empty", shown(vocabulary));
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const PipelinePart::Json& pair = vocabulary[i];
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_number())
      throw InvalidInput(fmt::format("{}[{}]", place, i), R"(must be ["token", score])", shown(pair));
    file.tokens.push_back(pair[0].get<std::string>());
    file.scores.push_back(as_the_library_reads(pair[1].get<double>()));
  }
  if (!part.take("unk_id").is_null()) {
    file.unknown = part.count("unk_id", 0);
    if (static_cast<std::size_t>(*file.unknown) >= file.tokens.size())
      throw InvalidInput(part.place_of("unk_id"), "must be the number of a token of the vocabulary",
                         std::to_string(*file.unknown));
  }
  file.falls_back_to_bytes = part.flag("byte_fallback", false);
  const auto model = std::make_shared<Unigram>(file);
  return {std::move(file.tokens), model};
}

}  // namespace frostpipe
