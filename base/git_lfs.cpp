#include "base/git_lfs.h"

#include "base/error.h"

namespace frostpipe {

void refuse_git_lfs_pointer(const std::filesystem::path& path, std::string_view content) {
  if (!content.starts_with("version https://git-lfs.github.com/spec/v1\n")) return;
  throw InvalidInput(path.string(), "must be the file itself, which `git lfs pull` in its folder fetches",
                     "a Git LFS pointer to it");
}

}  // namespace frostpipe
