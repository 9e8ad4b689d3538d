#include "cli/hand_over.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "executor/elastic/process_limits.h"
#include "executor/execute.h"
#include "profiles/error.h"

namespace frostpipe {

void hand_over_to_executor(int argc, char** argv) {
  constexpr std::array<std::string_view, 3> kComputing{"profile", "train", "evaluate"};
  if (executor_is_linked() || argc < 2 || std::find(kComputing.begin(), kComputing.end(), argv[1]) == kComputing.end())
    return;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return;
  // Below that LibTorch's libraries cannot even be loaded, and the loader says so in words of its own.
  require_within(process_limits(), {});
  const std::string executor = self.string() + "-executor";
  execv(executor.c_str(), argv);
  if (errno != ENOENT) throw RuntimeFailure(fmt::format("{}: cannot be started: {}", executor, std::strerror(errno)));
}

}  // namespace frostpipe
