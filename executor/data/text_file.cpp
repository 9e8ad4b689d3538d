#include "executor/data/text_file.h"

#include <fmt/format.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/separated_values.h"

namespace frostpipe {

bool is_utf8(std::string_view text) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  const auto size = static_cast<std::int64_t>(text.size());
  for (std::int64_t i = 0; i < size;) {
    UChar32 character = 0;
    U8_NEXT(bytes, i, size, character);
    if (character < 0) return false;
  }
  return true;
}

namespace {

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

/// Returns a name in the working folder for the unpacked content of a gzip file: "data.tsv" for "in/data.tsv.gz".
std::string unpacked_name(const std::filesystem::path& path) {
  return path.extension() == ".gz" ? path.stem().string() : path.filename().string() + ".unpacked";
}

/// Throws InvalidInput that names the first bad line and the number of them. Call it only if `content` has one: it
/// searches line by line, which is slower than a check of the whole.
void require_no_line(const std::filesystem::path& path, std::string_view content, bool (*is_bad)(std::string_view),
                     const std::string& rule, const std::string& what) {
  const std::vector<std::string_view> lines = lines_of(content);
  const auto first = std::find_if(lines.begin(), lines.end(), is_bad);
  const auto count = std::count_if(first, lines.end(), is_bad);
  throw InvalidInput(
      fmt::format("{}:{}", path.string(), first - lines.begin() + 1), rule,
      fmt::format("{} in {}", what, count == 1 ? "this line" : fmt::format("{} lines, this being the first", count)));
}

}  // namespace

std::string read_utf8_file(const std::filesystem::path& path, std::size_t max_bytes) {
  std::string content = read_named_file(path, max_bytes);
  if (content.starts_with("\xFF\xFE") || content.starts_with("\xFE\xFF"))
    throw InvalidInput(path.string(), "must be UTF-8 text (iconv -f utf16 -t utf8 OLD > NEW)", "UTF-16");
  if (content.starts_with("PAR1"))
    throw InvalidInput(path.string(),
                       fmt::format("must be JSON Lines, JSON or a table (of Parquet make JSON Lines by: python3 -c "
                                   "\"import pandas; pandas.read_parquet('{}').to_json('data.jsonl', orient='records', "
                                   "lines=True)\")",
                                   path.string()),
                       "Parquet");
  if (content.starts_with("\x1F\x8B"))
    throw InvalidInput(
        path.string(),
        fmt::format("must be text (unpack it by: gunzip -c {} > {})", path.string(), unpacked_name(path)),
        "packed by gzip");
  if (!is_utf8(content))
    require_no_line(
        path, content, [](std::string_view line) { return !is_utf8(line); },
        "must be UTF-8 text (of Latin-1 make it by: iconv -f latin1 -t utf8 OLD > NEW)", "something else");
  if (has_nul(content))
    require_no_line(path, content, has_nul, "must be text without NUL bytes (drop them by: tr -d '\\0' < OLD > NEW)",
                    "with some");
  if (content.starts_with("\xEF\xBB\xBF")) content.erase(0, 3);
  return content;
}

}  // namespace frostpipe
