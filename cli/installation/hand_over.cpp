#include "cli/installation/hand_over.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "executor/elastic/process_limits.h"
#include "executor/execute.h"
#include "executor/installation/executor_program.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

/// The loader reads it when the executor starts; the ranks inherit it.
void lead_to_torch(const ExecutorProgram& executor) {
  const TorchPlaces places = torch_places(executor.prefix);
  const TorchSearch search = find_torch(places, FROSTPIPE_LIBTORCH_VERSION);
  if (!search.found) throw RuntimeFailure(not_found_text(search, places, FROSTPIPE_LIBTORCH_VERSION));
  setenv("LD_LIBRARY_PATH", library_path(executor, *search.found).c_str(), /*overwrite=*/1);
}

}  // namespace

void hand_over_to_executor(int argc, char** argv) {
  constexpr std::array<std::string_view, 3> kComputing{"profile", "train", "evaluate"};
  if (executor_is_linked() || argc < 2 || std::find(kComputing.begin(), kComputing.end(), argv[1]) == kComputing.end())
    return;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return;
  // Below that LibTorch's libraries cannot even be loaded, and the loader says so in words of its own.
  require_within(process_limits(), {});
  const std::optional<ExecutorProgram> executor = find_executor(self);
  if (!executor) return;
  if (!executor->prefix.empty()) lead_to_torch(*executor);
  execv(executor->file.c_str(), argv);
  throw RuntimeFailure(fmt::format("{}: cannot be started: {}", executor->file.string(), std::strerror(errno)));
}

}  // namespace frostpipe
