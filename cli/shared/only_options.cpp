#include "cli/shared/only_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/separated_values.h"
#include "cli/shared/usage_error.h"

namespace frostpipe {

void require_only(std::string_view names, const CLI::App& command, std::string_view whose) {
  const std::vector<std::string_view> taken = split(names, ' ');
  for (const CLI::Option* const option : command.get_options()) {
    const std::string name = option->get_name();
    const bool is_named = name.starts_with("--") && name != "--help";
    if (option->count() == 0 || !is_named || std::ranges::find(taken, name) != taken.end()) continue;
    throw UsageError(fmt::format("{}: is not for {}, which takes {}", name, whose, fmt::join(taken, ", ")));
  }
}

}  // namespace frostpipe
