#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"

namespace frostpipe {

/// Reads a file with read_named_file(); returns it without a byte order mark. Throws InvalidInput if it is not UTF-8 or
/// has a NUL; the message names the first such line, the number of them, and what to try.
std::string read_utf8_file(const std::filesystem::path& path, std::size_t max_bytes = kAnySize);

bool is_utf8(std::string_view text);

}  // namespace frostpipe
