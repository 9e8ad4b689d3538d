#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "cli/commands.h"
#include "cli/hand_over.h"
#include "cli/output.h"
#include "cli/version.h"
#include "executor/job/membership.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2 };

constexpr const char* kDescription =
    "Plans, simulates and runs pipeline-parallel training that gets cheaper as it converges.\n\n"
    "  profile --> plan --> simulate\n"
    "                   \\-> train ----> compare --> report\n";

int usage_error(const CLI::App& app, const std::string& message) {
  std::string command = "frostpipe";
  for (const CLI::App* subcommand : app.get_subcommands()) command += " " + subcommand->get_name();
  print_note(fmt::format("{}\nTry '{} --help'.", message, command));
  return kUsage;
}

int run(int argc, char** argv) {
  CLI::App app(kDescription, "frostpipe");
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  app.footer("'frostpipe COMMAND --help' shows the options of a command and an example.");
  const std::array commands = {add_profile_command(app), add_plan_command(app),     add_simulate_command(app),
                               add_train_command(app),   add_evaluate_command(app), add_compare_command(app),
                               add_report_command(app),  add_schedule_command(app), add_inspect_command(app),
                               add_bench_command(app)};
  try {
    const auto is_named = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_named).empty()) {
      throw UsageError(fmt::format("there is no command '{}'", argv[1]));
    }
    app.parse(argc, argv);
    for (const Command& command : commands) {
      if (command.parsed->parsed()) return command.run();
    }
    throw InternalError("a parsed command line names no command");
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return usage_error(app, error.what());
  } catch (const UsageError& error) {
    return usage_error(app, error.what());
  }
}

}  // namespace
}  // namespace frostpipe

int main(int argc, char** argv) {
  using namespace frostpipe;
  open_closed_standard_streams();
  try {
    hand_over_to_executor(argc, argv);
    const int exit_code = run(argc, argv);
    // A result that could not be written (full disk, closed pipe) is no result.
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw RuntimeFailure("stdout: cannot be written");
    return exit_code;
  } catch (const InvalidInput& error) {
    print_note(error.what());
  } catch (const PeerLost& error) {
    print_note(error.what());
    if (std::getenv("FROSTPIPE_LAUNCHER")) return kPeerLostExitCode;  // our launcher names the rank that failed first
  } catch (const RuntimeFailure& error) {
    print_note(error.what());
  } catch (const InternalError& error) {
    print_note(fmt::format("this is a bug in frostpipe, please report it: {}", error.what()));
  } catch (const std::bad_alloc&) {
    print_note("out of memory");
  } catch (const std::exception& error) {
    print_note(fmt::format("this is a bug in frostpipe, please report it: {}", error.what()));
  }
  return kFailed;
}
