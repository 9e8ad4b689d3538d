#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/error.h"
#include "cli/commands/commands.h"

namespace frostpipe {
namespace {

/// Adds an entry to the list of commands. It runs only if frostpipe-NAME is missing, since hand_over() would have
/// become that program.
Command add_program(CLI::App& app, const char* name, const char* description) {
  CLI::App* command = app.add_subcommand(name, description);
  command->allow_extras();
  return {command, [name]() -> int {
            const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
            throw RuntimeFailure(fmt::format(
                "frostpipe-{0} is not beside this program; build it: cmake --build {1} --target frostpipe-{0}", name,
                folder.string()));
          }};
}

}  // namespace

Command add_serving_program(CLI::App& app) { return add_program(app, "serving", kServingDescription); }

Command add_nets_program(CLI::App& app) { return add_program(app, "nets", kNetsDescription); }

Command add_bench_program(CLI::App& app) {
  return add_program(app, "bench", "Compare with published runs, or train in many ways and compare those");
}

}  // namespace frostpipe
