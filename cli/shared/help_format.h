#pragma once
#include <initializer_list>
#include <memory>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace frostpipe {

/// Returns a formatter that prints help in lines of at most 120 columns, with the default of an option after its
/// description. It prints the options that show_first has put aside for --help-all only.
std::shared_ptr<CLI::FormatterBase> help_format();

/// Keeps these options and the required ones in --help, and puts the command's other options under --help-all.
void show_first(CLI::App& command, std::initializer_list<const char*> names);

}  // namespace frostpipe
