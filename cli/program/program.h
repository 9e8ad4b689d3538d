#pragma once
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace frostpipe {

/// A command of the tool. Adding it to the command line only binds its options. `run` does the work after the options
/// have been parsed, and returns the exit code. Results go to stdout, everything else to stderr.
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

/// Does what main() does: parses the command line, runs the command that it names, and ends the process. The exit code
/// is the command's; 0 for --help and --version; 1 if the command fails, and 2 for a wrong command line, both after a
/// sentence on stderr.
[[noreturn]] void run_program(const ToolProgram& program, int argc, char** argv);

}  // namespace frostpipe
