#pragma once
#include <cstddef>
#include <filesystem>
#include <string>

#include "base/files.h"

namespace frostpipe {

/// What read_named_file reads, if it is text, without a byte order mark. Throws InvalidInput that names the first line
/// with bytes that are no UTF-8, or NUL, says how many lines have some, and what to try.
std::string read_utf8_file(const std::filesystem::path& path, std::size_t most_bytes = kAnySize);

}  // namespace frostpipe
