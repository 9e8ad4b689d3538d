#include "cli/shared/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace frostpipe {
namespace {

/// Returns the number of bytes of the UTF-8 character with which `text` begins; 0 if it begins with none.
std::size_t length_of_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return 1;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (lead < 0xC2 || lead > 0xF4 || length > text.size()) return 0;
  const auto continues = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; };
  return std::all_of(text.begin() + 1, text.begin() + length, continues) ? length : 0;
}

/// Recognises U+0000 to U+001F, U+007F, and U+0080 to U+009F, which have two bytes.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F;
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

void open_closed_standard_streams() {
  int descriptor = 0;
  do {
    descriptor = open("/dev/null", O_RDWR);  // open() takes the least free number
  } while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor > STDERR_FILENO) close(descriptor);
}

std::string printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = length_of_character(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    clean += length == 0 || is_control(character) ? "\uFFFD" : character;
    text.remove_prefix(character.size());
  }
  return clean;
}

void print_result(std::string_view text) {
  const std::string clean = printable(text);
  std::fwrite(clean.data(), 1, clean.size(), stdout);
}

void print_note(std::string_view note) {
  const std::string line = "frostpipe: " + printable(note) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace frostpipe
