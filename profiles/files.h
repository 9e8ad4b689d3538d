#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace frostpipe {

/// The whole file as bytes. Throws InvalidInput that names the path and the system's reason.
std::string read_text_file(const std::filesystem::path& path);

/// Writes beside `path` and renames, so that a reader never sees half a file and a failed write leaves the old one.
/// Creates missing parent folders. Throws RuntimeFailure (full disk, no permission) that names the path.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// 64-bit FNV-1a of the bytes as 16 hex digits: tells whether a file is the one a plan was made from. Not
/// cryptographic.
std::string fingerprint(std::string_view content);

}  // namespace frostpipe
