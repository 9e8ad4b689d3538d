#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "base/separated_values.h"
#include "base/units.h"
#include "profiles/import/formats.h"

namespace frostpipe {
namespace {

struct TableName {
  std::string model, device;
};

/// Splits "MODEL-GPU-SHARE.csv", in any folder. If the file has another name, its path names the model, and the device
/// is called "imported".
TableName name_in(std::string_view source) {
  const std::string stem = std::filesystem::path(source).stem().string();
  const std::size_t last = stem.rfind('-');
  const std::size_t before = last == std::string::npos || last == 0 ? std::string::npos : stem.rfind('-', last - 1);
  if (before == std::string::npos || before == 0) return {std::string(source), "imported"};
  const std::string gpu = stem.substr(before + 1, last - before - 1), share = stem.substr(last + 1);
  return {stem.substr(0, before), share == "1" ? gpu : fmt::format("1/{} {}", share, gpu)};
}

}  // namespace

std::vector<std::vector<Nanoseconds>> block_table_rows(std::string_view text, std::string_view source) {
  std::vector<std::vector<Nanoseconds>> rows;
  int line_number = 0;
  for (std::string_view line : lines_of(text)) {
    ++line_number;
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::string place = fmt::format("{}, line {}", source, line_number);
    auto& row = rows.emplace_back();
    for (const std::string_view field : split(line, ',')) {
      std::int64_t microseconds = 0;
      const char* const end = field.data() + field.size();
      const auto [stop, error] = std::from_chars(field.data(), end, microseconds);
      if (error != std::errc() || stop != end || microseconds < 0 || microseconds > 1'000'000'000'000)
        throw InvalidInput(place, "must be whole microseconds separated by commas",
                           fmt::format("\"{}\"", line.substr(0, 80)));
      row.push_back(1000 * microseconds);
    }
    if (row.size() != rows.front().size())
      throw InvalidInput(place, fmt::format("must have {} columns, like the first line", rows.front().size()),
                         std::to_string(row.size()));
  }
  return rows;
}

Profile import_block_table(std::string_view text, std::string_view source, const ImportOptions& options) {
  const auto rows = block_table_rows(text, source);
  if (rows.size() < 2)
    throw InvalidInput(std::string(source), "must have at least two blocks", std::to_string(rows.size()));
  const auto [model, device] = name_in(source);
  Profile profile{.model = chain_of(model, static_cast<int>(rows.size()))};
  profile.machine = fmt::format(
      "imported from {}, not measured here; forward times only: backwards are taken as twice as long, messages as "
      "empty",
      source);
  for (int layer = 0; layer < static_cast<int>(rows.size()); ++layer) {
    for (int size = 1; size <= static_cast<int>(rows[layer].size()); ++size) {
      const Nanoseconds forward = rows[layer][size - 1];
      profile.measurements.push_back({.key = {.layer = layer, .device_type = device, .micro_batch_size = size},
                                      .cost = {.forward_ns = forward,
                                               .input_gradient_ns = forward,
                                               .weight_gradient_ns = forward,
                                               .frozen_forward_ns = forward}});
    }
    profile.updates.push_back({.layer = layer, .device_type = device, .optimizer = Optimizer::kAdamW, .update_ns = 0});
  }
  profile.workload = Workload{.name = std::string(source),
                              .num_samples = options.num_samples,
                              .tokens = 1,
                              .longest_tokens = 1,
                              .global_batch_size = options.global_batch_size};
  return profile;
}

}  // namespace frostpipe
