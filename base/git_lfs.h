#pragma once
#include <filesystem>
#include <string_view>

namespace frostpipe {

/// A folder that was cloned without Git LFS holds, in place of large files, short texts that name them. Throws
/// InvalidInput that says so if `content`, which `path` holds, begins as such a pointer does.
void refuse_git_lfs_pointer(const std::filesystem::path& path, std::string_view content);

}  // namespace frostpipe
