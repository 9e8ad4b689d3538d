#include "plan/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "profiles/error.h"

namespace frostpipe {

namespace {

struct Builder {
  std::string_view name;
  Schedule (*build)(const ScheduleShape&);
};

constexpr std::array<Builder, 2> kBuilders{{{"GPipe", gpipe}, {"1F1B", one_f_one_b}}};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

int num_stages(const Schedule& schedule) { return static_cast<int>(schedule.position_of_stage.size()); }

int num_positions(const Schedule& schedule) { return static_cast<int>(schedule.body.size()); }

Schedule build_schedule(std::string_view name, const ScheduleShape& shape) {
  for (const auto& builder : kBuilders)
    if (equal_ignoring_case(builder.name, name)) return builder.build(shape);
  throw InvalidInput("schedule", fmt::format("must be one of {}", fmt::join(schedule_names(), ", ")),
                     fmt::format("\"{}\"", name));
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const auto& builder : kBuilders) names.emplace_back(builder.name);
  return names;
}

}  // namespace frostpipe
