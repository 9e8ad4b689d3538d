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
#include <vector>

#include "base/error.h"
#include "base/process/process_limits.h"
#include "executor/elastic/job_environment.h"
#include "executor/execute.h"
#include "executor/installation/executor_program.h"

namespace frostpipe {
namespace {

/// The loader reads it when the executor starts; the ranks inherit it.
void lead_to_torch(const ExecutorProgram& executor) {
  const TorchPlaces places = torch_places(executor.prefix);
  const TorchSearch search = find_torch(places, FROSTPIPE_LIBTORCH_VERSION);
  if (!search.found) throw RuntimeFailure(not_found_text(search, places, FROSTPIPE_LIBTORCH_VERSION));
  setenv("LD_LIBRARY_PATH", library_path(executor, *search.found).c_str(), /*overwrite=*/1);
}

/// Not what only shows options or estimates from counted operations, which this program does as well.
bool computes(const std::vector<std::string_view>& words) {
  constexpr std::array<std::string_view, 4> kComputing{"profile", "train", "evaluate", "serve"};
  constexpr std::array<std::string_view, 5> kNeedNoTensors{"-h", "--help", "--like", "--import", "--emulate"};
  const auto needs_none = [&](std::string_view word) {
    return std::ranges::find(kNeedNoTensors, word.substr(0, word.find('='))) != kNeedNoTensors.end();
  };
  return !words.empty() && std::ranges::find(kComputing, words.front()) != kComputing.end() &&
         std::ranges::none_of(words, needs_none);
}

[[noreturn]] void become(const std::filesystem::path& program, char** argv) {
  execv(program.c_str(), argv);
  throw RuntimeFailure(fmt::format("{}: cannot be started: {}", program.string(), std::strerror(errno)));
}

}  // namespace

void hand_over(int argc, char** argv) {
  if (executor_is_linked() || argc < 2) return;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return;
  if (argv[1] == std::string_view("bench")) {
    const std::filesystem::path bench = self.parent_path() / "frostpipe-bench";
    if (std::filesystem::exists(bench, error)) become(bench, argv);
    return;
  }
  if (!computes({argv + 1, argv + argc})) return;
  // Below that LibTorch's libraries cannot even be loaded, and the loader says so in words of its own.
  require_within(process_limits(), {});
  const std::optional<ExecutorProgram> executor = find_executor(self);
  if (!executor) return;
  if (!executor->prefix.empty()) lead_to_torch(*executor);
  end_with_torchruns_agent();  // loading LibTorch takes seconds
  become(executor->file, argv);
}

}  // namespace frostpipe
