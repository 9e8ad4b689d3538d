#include "cli/program/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/process/end_process.h"
#include "base/process/process_limits.h"
#include "base/system_reason.h"
#include "cli/program/command_group.h"
#include "cli/program/usage_hints.h"
#include "cli/shared/help_format.h"
#include "cli/shared/output.h"
#include "cli/shared/usage_error.h"
#include "executor/elastic/membership.h"

namespace frostpipe {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2 };

int usage_error(const CLI::App& app, const std::string& message) {
  print_note(fmt::format("{}\nTry '{} --help'.", message, name_of_parsed(app)));
  return kUsage;
}

int run(const ToolProgram& program, int argc, char** argv) {
  CLI::App app(program.description, "frostpipe");
  app.formatter(help_format());
  app.set_help_flag("-h,--help", "Print this help");
  app.set_help_all_flag("--help-all", "Print this help with all options");
  app.set_version_flag("--version", program.version, "Print the version, its commit and its libraries");
  app.require_subcommand(1);
  app.footer("'frostpipe COMMAND --help' shows the most used options of a command, and --help-all shows all.");
  std::vector<Command> commands;
  for (const auto add : program.commands) commands.push_back(add(app));
  try {
    require_known_command(app, argc, argv);
    app.parse(argc, argv);
    return run_parsed(commands);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const bool has_unexpected = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    return usage_error(app, (has_unexpected ? unexpected_arguments(app) : error.what()) +
                                hint_for_missing(app, error.what()) + hint_for_options(app, argv[0]));
  } catch (const UsageError& error) {
    return usage_error(app, error.what());
  }
}

/// Prints the error as a sentence and returns the exit code.
int report_failure(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const InvalidInput& error) {
    print_note(error.what());
  } catch (const PeerLost& error) {
    print_note(error.what());
    if (std::getenv("FROSTPIPE_LAUNCHER")) return kPeerLostExitCode;  // the launcher names the rank that failed first
  } catch (const RuntimeFailure& error) {
    print_note(error.what());
  } catch (const InternalError& error) {
    print_note(fmt::format("this is a bug in frostpipe, please report it: {}", error.what()));
  } catch (const std::system_error& error) {  // a disk or a thread failed
    print_note(system_reason(error));
  } catch (const std::bad_alloc&) {
    print_note("out of memory: " + system_reason(ENOMEM));
  } catch (const std::exception& error) {
    print_note(fmt::format("this is a bug in frostpipe, please report it: {}", error.what()));
  }
  return kFailed;
}

/// Ends the process after an error that nothing can catch: in a thread, or during another error. The exit code is that
/// of a failed rank, not of one that was killed, so that the launcher does not restart what would fail again.
[[noreturn]] void end_with_a_sentence() {
  if (const std::exception_ptr error = std::current_exception()) {
    report_failure(error);
  } else {
    print_note(
        "a library ended after an error that it could not report, most likely a thread that cannot be started: " +
        system_reason(EAGAIN));
  }
  _exit(kFailed);
}

}  // namespace

void run_program(const ToolProgram& program, int argc, char** argv) {
  open_closed_standard_streams();
  std::set_terminate(end_with_a_sentence);
  try {
    make_most_of_limits();
    require_stack(process_limits());
    program.hand_over(argc, argv);
    const int exit_code = run(program, argc, argv);
    // The command has failed if its result could not be written (full disk, closed pipe).
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw RuntimeFailure("stdout: cannot be written");
    end_process(exit_code);
  } catch (...) {
    end_process(report_failure(std::current_exception()));
  }
}

}  // namespace frostpipe
