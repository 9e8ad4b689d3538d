#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"

namespace frostpipe {

/// Reads a file with read_named_file(); returns it without a byte order mark. Throws InvalidInput if it is UTF-16,
/// Parquet or packed by gzip, is not UTF-8, or has a NUL. The message says what to try and, for the last two, names the
/// first such line and the number of them.
std::string read_utf8_file(const std::filesystem::path& path, std::size_t max_bytes = kAnySize);

/// Returns whether the bytes are valid UTF-8.
bool is_utf8(std::string_view text);

}  // namespace frostpipe
