#pragma once
#include <filesystem>
#include <string_view>

namespace frostpipe {

/// Throws InvalidInput if `content`, read from `path`, is a Git LFS pointer: a short text that stands in place of a
/// large file in a folder that was cloned without Git LFS.
void refuse_git_lfs_pointer(const std::filesystem::path& path, std::string_view content);

}  // namespace frostpipe
