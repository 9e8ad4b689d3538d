#include "cli/shared/help_format.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <string_view>

#include "base/separated_values.h"

namespace frostpipe {
namespace {

constexpr std::size_t kColumns = 120, kFirstColumn = 30;
constexpr const char* kMoreOptions = "More options";

/// Appends words to `line`, and begins new lines at the column `indent` so that none is longer than kColumns.
std::string wrapped(std::string line, const std::string& text, std::size_t indent) {
  std::string result;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool begins = line.size() <= indent;
    if (!begins && line.size() + 1 + word.size() > kColumns) {
      result += line + "\n";
      line.assign(indent, ' ');
    } else if (!begins) {
      line += " ";
    }
    line += word;
  }
  return result + line + "\n";
}

/// Puts the text after the name, in lines that begin at the same column.
std::string in_columns(const std::string& name, const std::string& text) {
  std::string line = "  " + name, above;
  if (line.size() + 2 > kFirstColumn) {
    above = line + "\n";
    line.clear();
  }
  line.resize(kFirstColumn, ' ');
  return above + wrapped(line, text, kFirstColumn);
}

class HelpFormat : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    HelpFormat format = *this;
    format.shows_all_ = mode != CLI::AppFormatMode::Normal;
    std::string text = format.Formatter::make_help(app, std::move(name), mode);
    // CLI11 puts an empty line too many after the last group that it shows, if a hidden group follows.
    if (const std::size_t lines = text.find("\n\n\n"); lines != std::string::npos) text.erase(lines, 1);
    return text;
  }

  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (group == kMoreOptions && !shows_all_) return fmt::format("{} more options: see --help-all\n", options.size());
    return Formatter::make_group(std::move(group), is_positional, std::move(options));
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string name = make_option_name(option, is_positional);
    if (option->get_type_size() != 0 && !option->get_type_name().empty()) name += " " + option->get_type_name();
    std::string text = option->get_description();
    if (option->get_required() && !is_positional) text += ". Required";
    if (!option->get_default_str().empty()) text += fmt::format(". Default: {}", option->get_default_str());
    return in_columns(name, text);
  }

  /// Wraps sentences, and leaves indented lines, which are examples, as they are.
  std::string make_footer(const CLI::App* app) const override {
    const std::string footer = app->get_footer();
    std::string result;
    for (const std::string_view line : lines_of(footer))
      result += line.starts_with(' ') ? std::string(line) + "\n" : wrapped("", std::string(line), 0);
    return result;
  }

  std::string make_subcommand(const CLI::App* command) const override {
    return in_columns(command->get_name(), command->get_description());
  }

 private:
  bool shows_all_ = true;
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_format() { return std::make_shared<HelpFormat>(); }

void show_first(CLI::App& command, std::initializer_list<const char*> names) {
  std::vector<const CLI::Option*> first = {command.get_help_ptr(), command.get_help_all_ptr()};
  for (const char* const name : names) first.push_back(command.get_option(name));
  for (CLI::Option* const option : command.get_options({})) {
    const bool stays = option->get_required() || option->get_positional() || option->get_group().empty() ||
                       std::ranges::find(first, option) != first.end();
    if (!stays) option->group(kMoreOptions);
  }
}

}  // namespace frostpipe
