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

// The findings of `frostpipe doctor`, and the problems that follow from them.

namespace frostpipe {

/// Limit for the executor's start: CUDA's libraries take gigabytes, and may come from a network file system.
constexpr std::chrono::seconds kStartLimit{300};

struct Diagnosis {
  std::string version;           // of this program
  std::string libtorch_version;  // LibTorch that this program was built with; empty if it was built without
  std::optional<ExecutorProgram> executor;
  std::vector<std::string> looked_at;  // for an installed program: places where LibTorch was looked for
  std::optional<Torch> torch;
  std::optional<LibTorchFacts> libtorch;  // not set if the executor could not be started
  ChildOutput start;                      // if `libtorch` is not set: what the executor printed, and how it ended
  std::string limits_fault;               // message if a limit of this process (ulimit) is too low; else empty
  Machine machine;
  NvidiaDriver driver;
};

/// Looks at this machine and at the folder of this program, and starts the executor to ask it about LibTorch.
Diagnosis diagnose(const std::string& version);

struct Problem {
  std::string missing, to_do;

  bool operator==(const Problem&) const = default;
};

/// Lists what training needs and does not find here. A machine without a GPU lacks nothing; a GPU that cannot be used
/// is a problem.
std::vector<Problem> problems_of(const Diagnosis& diagnosis);

std::string diagnosis_text(const Diagnosis& diagnosis);
std::string diagnosis_json(const Diagnosis& diagnosis);

/// Formats the facts as the last line that the executor writes to stdout.
std::string libtorch_facts_json(const LibTorchFacts& facts);
/// Parses them from everything that the executor wrote to stdout. Throws InvalidInput if the last line is something
/// else.
LibTorchFacts parse_libtorch_facts(std::string_view text);

}  // namespace frostpipe
