#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace frostpipe {

struct NetworkInterface {
  std::string name;
  std::vector<std::string> addresses;  // IPv4 and IPv6
  std::optional<int> megabits_per_second;

  bool operator==(const NetworkInterface&) const = default;
};

/// What a machine has that ranks on its CPU use, and what connects them to others.
struct Machine {
  std::string processor;
  int cores = 0;         // that the system has, as many threads as they run
  int usable_cores = 0;  // of them, by this process (taskset, a job's share)
  Bytes memory = 0, available_memory = 0;
  std::optional<Bytes> memory_limit;         // of this process's control group (a container, a job)
  std::optional<Bytes> shared_memory;        // free in /dev/shm; none: there is no such folder
  std::vector<NetworkInterface> interfaces;  // that are up, by name
  std::string c_library;                     // "glibc 2.36"
};

/// "unknown processor" where the system does not say.
std::string processor_name(const std::filesystem::path& root = "/");

/// This machine, whose /proc, /sys and /dev are those of `root`.
Machine this_machine(const std::filesystem::path& root = "/");

}  // namespace frostpipe
