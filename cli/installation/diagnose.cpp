#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/process/child_output.h"
#include "base/process/process_limits.h"
#include "cli/installation/diagnosis.h"
#include "executor/execute.h"

namespace frostpipe {
namespace {

void ask_executor(Diagnosis& diagnosis) {
  std::map<std::string, std::string> variables;
  if (diagnosis.torch) variables["LD_LIBRARY_PATH"] = library_path(*diagnosis.executor, *diagnosis.torch);
  const ChildOutput child =
      output_of({diagnosis.executor->file.string(), "doctor", "--libtorch-facts"}, variables, kStartLimit);
  try {
    diagnosis.libtorch = parse_libtorch_facts(child.output);
  } catch (const InvalidInput&) {
    diagnosis.start = child;
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
