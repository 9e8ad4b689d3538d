#include "cli/hand_over.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace frostpipe {

void hand_over_to_executor(int argc, char** argv) {
  constexpr std::array<std::string_view, 3> kComputing{"profile", "train", "evaluate"};
  constexpr std::string_view kExecutor = "frostpipe-executor";
  if (argc < 2 || std::find(kComputing.begin(), kComputing.end(), argv[1]) == kComputing.end()) return;
  std::error_code none;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
  if (self.filename() == kExecutor) return;
  execv((self.parent_path() / kExecutor).c_str(), argv);
}

}  // namespace frostpipe
