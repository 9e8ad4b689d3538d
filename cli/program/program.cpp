#include "cli/program/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/process/end_process.h"
#include "base/process/process_limits.h"
#include "base/spelling.h"
#include "base/system_reason.h"
#include "cli/shared/distinct_files.h"
#include "cli/shared/output.h"
#include "cli/shared/usage_error.h"
#include "executor/elastic/membership.h"

namespace frostpipe {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2 };

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known, std::string_view prefix = "") {
  const auto meant = nearest_spelling(word, known);
  return meant ? fmt::format("; did you mean '{}{}'?", prefix, *meant) : "";
}

/// For the first long option that the parsed commands do not have: also where what it stands for is what is missing.
std::string hint_for_options(const CLI::App& app) {
  std::vector<std::string> known;
  for (const CLI::App* subcommand : app.get_subcommands()) {
    for (const CLI::Option* option : subcommand->get_options())
      known.insert(known.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  for (const std::string& argument : app.remaining(/*recurse=*/true)) {
    if (argument.starts_with("--")) return did_you_mean(argument.substr(2, argument.find('=') - 2), known, "--");
  }
  return "";
}

int usage_error(const CLI::App& app, const std::string& message) {
  std::string command = "frostpipe";
  for (const CLI::App* subcommand : app.get_subcommands()) command += " " + subcommand->get_name();
  print_note(fmt::format("{}\nTry '{} --help'.", message, command));
  return kUsage;
}

int run(const ToolProgram& program, int argc, char** argv) {
  CLI::App app(program.description, "frostpipe");
  app.set_version_flag("--version", program.version);
  app.require_subcommand(1);
  app.footer("'frostpipe COMMAND --help' shows the options of a command and an example.");
  std::vector<Command> commands;
  for (const auto add : program.commands) commands.push_back(add(app));
  try {
    const auto is_named = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_named).empty()) {
      std::vector<std::string> names;
      for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
      throw UsageError(fmt::format("there is no command '{}'{}", argv[1], did_you_mean(argv[1], names)));
    }
    app.parse(argc, argv);
    for (const Command& command : commands) {
      if (!command.parsed->parsed()) continue;
      require_distinct_files(*command.parsed);
      return command.run();
    }
    throw InternalError("a parsed command line names no command");
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return usage_error(app, error.what() + hint_for_options(app));
  } catch (const UsageError& error) {
    return usage_error(app, error.what());
  }
}

/// Says why, in a sentence; returns the exit code.
int report_failure(const std::exception_ptr& why) {
  try {
    std::rethrow_exception(why);
  } catch (const InvalidInput& error) {
    print_note(error.what());
  } catch (const PeerLost& error) {
    print_note(error.what());
    if (std::getenv("FROSTPIPE_LAUNCHER")) return kPeerLostExitCode;  // our launcher names the rank that failed first
  } catch (const RuntimeFailure& error) {
    print_note(error.what());
  } catch (const InternalError& error) {
    print_note(fmt::format("this is a bug in frostpipe, please report it: {}", error.what()));
  } catch (const std::system_error& error) {  // a disk, a thread: the standard library's way to say it
    print_note(system_reason(error));
  } catch (const std::bad_alloc&) {
    print_note("out of memory: " + system_reason(ENOMEM));
  } catch (const std::exception& error) {
    print_note(fmt::format("this is a bug in frostpipe, please report it: {}", error.what()));
  }
  return kFailed;
}

/// Where nothing catches: an error in a thread, or a second one while the first is on its way. A failure of this rank's
/// own, not a rank that was killed: the launcher must not start again what would fail again.
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
    // A result that could not be written (full disk, closed pipe) is no result.
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) throw RuntimeFailure("stdout: cannot be written");
    end_process(exit_code);
  } catch (...) {
    end_process(report_failure(std::current_exception()));
  }
}

}  // namespace frostpipe
