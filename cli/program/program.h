#pragma once
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace frostpipe {

/// A subcommand: adding it to the command line only binds its options; `run` does the work, once they are parsed, and
/// returns the exit code. Results go to stdout, everything else to stderr.
struct Command {
  CLI::App* parsed = nullptr;
  std::function<int()> run;
};

/// A program of the tool.
struct ToolProgram {
  std::string description, version;
  std::vector<Command (*)(CLI::App&)> commands;  // in the order of --help
  /// Called before the command line is parsed: may become another program.
  std::function<void(int argc, char** argv)> hand_over;
};

/// The main function of a program: parses the command line, runs the command that it names, and ends the process.
/// Exit codes: what the command returns; 0 for --help and --version; 1 where it fails, 2 for a wrong command line, both
/// after a sentence on stderr.
[[noreturn]] void run_program(const ToolProgram& program, int argc, char** argv);

}  // namespace frostpipe
