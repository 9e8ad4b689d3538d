#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/child_output.h"
#include "executor/installation/executor_program.h"
#include "executor/installation/libtorch_facts.h"
#include "executor/installation/machine.h"
#include "executor/installation/nvidia_driver.h"

// What `frostpipe doctor` finds, and what is to be made of it.

namespace frostpipe {

/// For the executor's start: CUDA's libraries have gigabytes, and may come from a network's file system.
constexpr std::chrono::seconds kStartLimit{300};

struct Diagnosis {
  std::string version;           // of this program
  std::string libtorch_version;  // that it was built with; empty: without
  std::optional<ExecutorProgram> executor;
  std::vector<std::string> looked_at;  // TorchSearch; an installed folder's alone
  std::optional<Torch> torch;
  std::optional<LibTorchFacts> libtorch;  // none: the executor cannot be started
  ChildOutput start;                      // what it said in place of them, and how it ended
  std::string limits_fault;               // what this process may not have (ulimit)
  Machine machine;
  NvidiaDriver driver;
};

/// Looks at this machine and at the folder in which this program is, and starts the executor for LibTorch's facts.
Diagnosis diagnose(const std::string& version);

struct Problem {
  std::string missing, to_do;

  bool operator==(const Problem&) const = default;
};

/// What training takes and is not here. A machine without a GPU is whole; one with a GPU that cannot be used is not.
std::vector<Problem> problems_of(const Diagnosis& diagnosis);

std::string diagnosis_text(const Diagnosis& diagnosis);
std::string diagnosis_json(const Diagnosis& diagnosis);

/// How the executor tells the tool its facts: on stdout, on the last line that is written there.
std::string libtorch_facts_json(const LibTorchFacts& facts);
/// Of all that it wrote to stdout. Throws InvalidInput if the last line is something else.
LibTorchFacts parse_libtorch_facts(std::string_view text);

}  // namespace frostpipe
