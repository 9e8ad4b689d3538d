#include "cli/shared/distinct_files.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/shared/usage_error.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOutputs[] = {"--output", "--timeline", "--memory", "--trace", "--predictions"};

bool is_output(const CLI::Option& option, const CLI::App& command) {
  const std::string name = option.get_name();
  return std::ranges::find(kOutputs, name) != std::end(kOutputs) ||
         (name == "--cluster" && command.get_name() == "profile");
}

/// Resolves the text to the file that it names. Returns nothing for pipes, devices and folders.
std::optional<fs::path> file_named(const std::string& text) {
  std::error_code why;
  const fs::path path = fs::weakly_canonical(text, why);
  if (why || text.empty() || (fs::exists(path, why) && !fs::is_regular_file(path, why))) return std::nullopt;
  return path;
}

}  // namespace

void require_distinct_files(const CLI::App& command) {
  const std::vector<const CLI::Option*> options = command.get_options();
  for (const CLI::Option* const output : options) {
    if (output->count() == 0 || !is_output(*output, command)) continue;
    const std::string written = output->results().front();
    const std::optional<fs::path> file = file_named(written);
    if (!file) continue;
    for (const CLI::Option* const other : options) {
      if (other == output || other->count() == 0) continue;
      const bool is_written = is_output(*other, command);
      std::error_code why;  // a text longer than a file's name may be names no file
      for (const std::string& text : other->results())
        if ((is_written || fs::is_regular_file(text, why)) && file_named(text) == file)
          throw UsageError(fmt::format("{} {}: is {}'s file too, and would be overwritten; name another one",
                                       output->get_name(), written, other->get_name()));
    }
  }
}

}  // namespace frostpipe
