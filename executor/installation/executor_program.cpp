#include "executor/installation/executor_program.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::optional<ExecutorProgram> find_executor(const fs::path& self) {
  const std::string name = self.filename().string() + "-executor";
  const fs::path beside = self.parent_path() / name;
  if (fs::exists(beside)) return ExecutorProgram{.file = beside, .prefix = {}};
  const fs::path prefix = self.parent_path().parent_path(), installed = prefix / "lib" / "frostpipe" / name;
  if (fs::exists(installed)) return ExecutorProgram{.file = installed, .prefix = prefix};
  return std::nullopt;
}

std::vector<fs::path> system_library_folders() {
  std::vector<fs::path> folders{"/lib64", "/usr/lib64", "/lib", "/usr/lib"};
  std::error_code unreadable;
  for (const fs::directory_entry& entry : fs::directory_iterator("/usr/lib", unreadable)) {
    if (entry.path().filename().string().ends_with("-linux-gnu")) folders.push_back(entry.path());
  }
  return folders;
}

std::string library_path(const ExecutorProgram& executor, const Torch& torch, const std::string& present,
                         const std::vector<fs::path>& system_folders) {
  std::string path = (torch.folder / "lib").string();
  if (!present.empty()) path += ":" + present;
  const auto has_libstdcxx = [](const fs::path& folder) { return fs::exists(folder / "libstdc++.so.6"); };
  if (std::ranges::none_of(system_folders, has_libstdcxx)) path += ":" + (executor.file.parent_path() / "gcc").string();
  return path;
}

std::string library_path(const ExecutorProgram& executor, const Torch& torch) {
  const char* const present = std::getenv("LD_LIBRARY_PATH");
  return library_path(executor, torch, present ? present : "", system_library_folders());
}

}  // namespace frostpipe
