#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace frostpipe::test {

/// Parses the words after the program's name and returns the parser's error message, or "" if there is none.
inline std::string parse(CLI::App& app, const std::string& words) {
  try {
    app.parse(words);
    return "";
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
}

}  // namespace frostpipe::test
