#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "executor/installation/find_torch.h"

namespace frostpipe {

/// The program with LibTorch.
struct ExecutorProgram {
  std::filesystem::path file;
  /// Of the installed folder: the program is in PREFIX/lib/frostpipe, with the libraries that came along, and LibTorch
  /// is to be found. Empty in a build folder, where the program knows the LibTorch that it was built with.
  std::filesystem::path prefix;
};

/// That of the tool `self`: beside it (a build folder), else where the installation has it.
std::optional<ExecutorProgram> find_executor(const std::filesystem::path& self);

/// Where the system keeps its libraries.
std::vector<std::filesystem::path> system_library_folders();

/// LD_LIBRARY_PATH for an installed executor: LibTorch's libraries, what was there (`present`), and GCC's libraries
/// that came along if the system has none. Its own are newer wherever those that came along, which ask for the C
/// library that they were built with, can be loaded at all; and other libraries of the system may need them.
std::string library_path(const ExecutorProgram& executor, const Torch& torch, const std::string& present,
                         const std::vector<std::filesystem::path>& system_folders);

/// The same for an executor that this process starts or becomes: of its own LD_LIBRARY_PATH, and of this system.
std::string library_path(const ExecutorProgram& executor, const Torch& torch);

}  // namespace frostpipe
