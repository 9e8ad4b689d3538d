#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/commands/commands.h"

namespace frostpipe {

/// Stands in the list of commands; hand_over() has become frostpipe-bench wherever that is there.
Command add_bench_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("bench", "Compare with published runs, or train in many ways and compare those");
  command->allow_extras();
  return {command, []() -> int {
            throw RuntimeFailure(
                "frostpipe-bench is not beside this program; build it: cmake --build --preset default --target "
                "frostpipe-bench");
          }};
}

}  // namespace frostpipe
