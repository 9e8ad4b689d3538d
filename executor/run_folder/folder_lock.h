#pragma once
#include <filesystem>

#include "base/descriptor.h"

namespace frostpipe {

/// An exclusive lock on a folder: while it lives, no other process can lock the folder. The kernel releases it when the
/// process ends, however it ends, so it never becomes stale. The file FOLDER/.lock names the owner. Child processes do
/// not inherit it. On a file system without locks it has no effect.
class FolderLock {
 public:
  /// Creates the folder and locks it. Throws RuntimeFailure that names the folder and the process that has the lock, or
  /// FOLDER/.lock if that cannot be written.
  explicit FolderLock(const std::filesystem::path& folder);

 private:
  Descriptor file_;
};

}  // namespace frostpipe
