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
#include <string>
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

/// The commands that are separate programs: `frostpipe serving` is frostpipe-serving. The program that trains
/// Transformers therefore needs neither their code nor their libraries.
constexpr std::array<std::string_view, 3> kOwnPrograms{"serving", "nets", "bench"};

/// Sets LD_LIBRARY_PATH, which the loader reads when the executor starts. The ranks inherit it.
void lead_to_torch(const ExecutorProgram& executor) {
  const TorchPlaces places = torch_places(executor.prefix);
  const TorchSearch search = find_torch(places, FROSTPIPE_LIBTORCH_VERSION);
  if (!search.found) throw RuntimeFailure(not_found_text(search, places, FROSTPIPE_LIBTORCH_VERSION));
  setenv("LD_LIBRARY_PATH", library_path(executor, *search.found).c_str(), /*overwrite=*/1);
}

/// Returns whether the option has this value, in the next word or behind '='.
bool has_value(const std::vector<std::string_view>& words, std::string_view option, std::string_view value) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == fmt::format("{}={}", option, value)) return true;
    if (words[i] == option && i + 1 < words.size() && words[i + 1] == value) return true;
  }
  return false;
}

/// Returns whether the command needs LibTorch. A command that only shows its options, estimates from counted
/// operations, or serves on emulated devices does not: this program does that as well.
bool computes(const std::vector<std::string_view>& words) {
  constexpr std::array<std::string_view, 8> kComputing{"profile",      "train",      "evaluate",      "serving run",
                                                       "nets profile", "nets train", "nets rehearse", "nets evaluate"};
  constexpr std::array<std::string_view, 5> kNeedNoTensors{"-h", "--help", "--help-all", "--like", "--import"};
  if (words.empty()) return false;
  const std::string member = words.size() > 1 ? fmt::format("{} {}", words[0], words[1]) : "";
  const auto is_command = [&](std::string_view command) { return command == words[0] || command == member; };
  const auto needs_none = [&](std::string_view word) {
    return std::ranges::find(kNeedNoTensors, word.substr(0, word.find('='))) != kNeedNoTensors.end();
  };
  if (is_command("serving run") && has_value(words, "--device", "emulated")) return false;
  return std::ranges::any_of(kComputing, is_command) && std::ranges::none_of(words, needs_none);
}

[[noreturn]] void become(const std::filesystem::path& program, char** argv) {
  execv(program.c_str(), argv);
  throw RuntimeFailure(fmt::format("{}: cannot be started: {}", program.string(), std::strerror(errno)));
}

}  // namespace

void hand_over(int argc, char** argv) {
  if (executor_is_linked() || argc < 2) return;
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return;
  const bool has_own_program = std::ranges::find(kOwnPrograms, argv[1]) != kOwnPrograms.end();
  if (has_own_program) program += fmt::format("-{}", argv[1]);
  if (computes({argv + 1, argv + argc})) {
    // If the limits are too low, the loader cannot even load LibTorch, and its message is hard to understand.
    require_within(process_limits(), {});
    if (const std::optional<ExecutorProgram> executor = find_executor(program)) {
      if (!executor->prefix.empty()) lead_to_torch(*executor);
      end_with_torchruns_agent();  // loading LibTorch takes seconds, in which the agent may die
      become(executor->file, argv);
    }
  }
  if (has_own_program && std::filesystem::exists(program, error)) become(program, argv);
}

}  // namespace frostpipe
