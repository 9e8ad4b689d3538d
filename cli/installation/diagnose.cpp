#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>

#include "cli/installation/diagnosis.h"
#include "executor/elastic/process_limits.h"
#include "executor/execute.h"
#include "executor/installation/child_output.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

/// CUDA's libraries have gigabytes, and may come from a network's file system.
constexpr std::chrono::seconds kStartLimit{300};

std::string_view last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);
}

/// Why the program ended without its facts: the loader's words, or a signal.
std::string fault_of(const ExecutorProgram& executor, const ChildOutput& child) {
  if (const std::string_view said = last_line(child.errors); !said.empty()) return std::string(said);
  if (child.exit_code > 128)
    return fmt::format("{} was ended by signal {}", executor.file.string(), child.exit_code - 128);
  return fmt::format("{} cannot be started (exit code {})", executor.file.string(), child.exit_code);
}

void ask_executor(Diagnosis& diagnosis) {
  std::map<std::string, std::string> variables;
  if (diagnosis.torch) variables["LD_LIBRARY_PATH"] = library_path(*diagnosis.executor, *diagnosis.torch);
  const ChildOutput child =
      output_of({diagnosis.executor->file.string(), "doctor", "--libtorch-facts"}, variables, kStartLimit);
  try {
    diagnosis.libtorch = parse_libtorch_facts(last_line(child.output));
  } catch (const InvalidInput&) {
    diagnosis.start_fault = fault_of(*diagnosis.executor, child);
  }
}

void look_for_libtorch(Diagnosis& diagnosis) {
  diagnosis.executor = find_executor(std::filesystem::read_symlink("/proc/self/exe"));
  if (!diagnosis.executor) return;
  if (!diagnosis.executor->prefix.empty()) {
    const TorchSearch search = find_torch(torch_places(diagnosis.executor->prefix), FROSTPIPE_LIBTORCH_VERSION);
    diagnosis.torch = search.found;
    diagnosis.looked_at = search.looked_at;
    if (!search.found) return;
  }
  ask_executor(diagnosis);
  if (diagnosis.executor->prefix.empty() && diagnosis.libtorch) {
    diagnosis.torch = Torch{.folder = diagnosis.libtorch->folder,
                            .version = torch_version(diagnosis.libtorch->folder),
                            .named_by = "this build"};
  }
}

}  // namespace

Diagnosis diagnose(const std::string& version) {
  Diagnosis diagnosis{.version = version, .libtorch_version = FROSTPIPE_LIBTORCH_VERSION};
  try {
    require_within(process_limits(), {});
  } catch (const InvalidInput& limit) {
    diagnosis.limits_fault = limit.what();
  }
  look_for_libtorch(diagnosis);
  diagnosis.machine = this_machine();
  diagnosis.driver = nvidia_driver();
  return diagnosis;
}

}  // namespace frostpipe
