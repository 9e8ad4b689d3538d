#include "cli/output.h"

#include <cstdio>
#include <string>

namespace frostpipe {

void print_result(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_note(std::string_view note) {
  const std::string line = "frostpipe: " + std::string(note) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace frostpipe
