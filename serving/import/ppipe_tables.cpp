#include "serving/import/ppipe_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/separated_values.h"
#include "profiles/import/formats.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

/// Returns the names of the folder's files with this start and end, ascending.
std::vector<std::string> files_named(const fs::path& folder, const std::string& start, const std::string& end) {
  if (!fs::is_directory(folder)) throw InvalidInput(fmt::format("{}: is not a folder", folder.string()));
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(start) && name.ends_with(end)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

/// Parses type and share, "L4-2", in "MODEL-L4-2.csv". Returns nothing if the file belongs to another model, whose name
/// only begins with MODEL.
std::optional<BlockTimes> device_of(std::string_view name, std::size_t start) {
  const auto parts = split(name.substr(start, name.size() - start - 4), '-');
  if (parts.size() != 2 || parts[0].empty()) return std::nullopt;
  int share = 0;
  const char* const end = parts[1].data() + parts[1].size();
  const auto [stop, error] = std::from_chars(parts[1].data(), end, share);
  if (error != std::errc() || stop != end || share < 1) return std::nullopt;
  return BlockTimes{.device_type = std::string(parts[0]), .share = share};
}

std::vector<Bytes> cut_bytes_of(const fs::path& file) {
  std::vector<Bytes> cuts;
  const std::string text = read_text_file(file);
  int number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    const auto value = trimmed(line);
    if (value.empty()) continue;
    Bytes bytes = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, bytes);
    if (error != std::errc() || stop != end || bytes < 0)
      throw InvalidInput(fmt::format("{}, line {}", file.string(), number), "must be whole bytes",
                         fmt::format("\"{}\"", value.substr(0, 80)));
    cuts.push_back(bytes);
  }
  return cuts;
}

}  // namespace

ServingProfile import_ppipe_model(const fs::path& folder, const std::string& model) {
  ServingProfile profile{.model_name = model};
  const auto mappings = folder / "prepartition_mappings" / model;
  const auto cuts = files_named(mappings, "contraction_trans-size_", ".csv");
  if (cuts.size() != 1)
    throw InvalidInput(mappings.string(), "must hold one file contraction_trans-size_*.csv",
                       fmt::format("{} of them", cuts.size()));
  profile.cut_bytes = cut_bytes_of(mappings / cuts.front());
  const auto tables = folder / "block-timing-tf32";
  for (const auto& name : files_named(tables, model + "-", ".csv")) {
    auto times = device_of(name, model.size() + 1);
    if (!times) continue;
    times->forward_ns = block_table_rows(read_text_file(tables / name), (tables / name).string());
    for (auto& row : times->forward_ns)
      for (auto& time : row) time = std::max<Nanoseconds>(time, 1000);
    if (times->forward_ns.size() != profile.cut_bytes.size() + 1)
      throw InvalidInput((tables / name).string(),
                         fmt::format("must have {} rows, one more than cuts", profile.cut_bytes.size() + 1),
                         std::to_string(times->forward_ns.size()));
    profile.times.push_back(std::move(*times));
  }
  if (profile.times.empty())
    throw InvalidInput(tables.string(), fmt::format("must hold tables {}-GPU-SHARE.csv", model), "none");
  for (std::size_t block = 0; block <= profile.cut_bytes.size(); ++block)
    profile.block_ends.push_back(static_cast<int>(block) + 1);
  profile.weight_bytes.assign(profile.block_ends.size(), 0);
  return profile;
}

}  // namespace frostpipe
