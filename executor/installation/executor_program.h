#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "executor/installation/find_torch.h"

namespace frostpipe {

/// The executor, a program that is linked with LibTorch.
struct ExecutorProgram {
  std::filesystem::path file;
  /// The installation prefix: the program is in PREFIX/lib/frostpipe, with bundled libraries, and LibTorch must be
  /// found. Empty in a build folder, where the program knows the LibTorch that it was built with.
  std::filesystem::path prefix;
};

/// Returns the executor of the tool `self`: beside it (in a build folder), else in PREFIX/lib/frostpipe for a tool in
/// PREFIX/bin; nothing if there is none.
std::optional<ExecutorProgram> find_executor(const std::filesystem::path& self);

/// Returns the folders of the system's libraries.
std::vector<std::filesystem::path> system_library_folders();

/// Returns LD_LIBRARY_PATH for an installed executor: LibTorch's libraries, the value so far (`present`), and, if the
/// system has no libstdc++, the bundled GCC libraries. The system's are preferred because other libraries of the system
/// may need them. They are also newer than the bundled ones wherever those can be loaded, since the bundled ones need
/// the C library with which they were built.
std::string library_path(const ExecutorProgram& executor, const Torch& torch, const std::string& present,
                         const std::vector<std::filesystem::path>& system_folders);

/// Does the same for an executor that this process starts or becomes, with this process's LD_LIBRARY_PATH and this
/// system's folders.
std::string library_path(const ExecutorProgram& executor, const Torch& torch);

}  // namespace frostpipe
