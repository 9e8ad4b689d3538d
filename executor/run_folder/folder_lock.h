#pragma once
#include <filesystem>

#include "base/descriptor.h"

namespace frostpipe {

/// As long as it lives, no other process has one on the same folder. The kernel lets go of it when the process ends,
/// however it ends, so nothing stale stays behind. Its file, FOLDER/.lock, says who has it. Processes that are started
/// meanwhile do not inherit it. On a file system that knows no locks it holds nobody up.
class FolderLock {
 public:
  /// Creates the folder. Throws RuntimeFailure that names the folder and the process that has it.
  explicit FolderLock(const std::filesystem::path& folder);

 private:
  Descriptor file_;
};

}  // namespace frostpipe
