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

/// The resources of a machine that ranks on its CPU use, and its network interfaces.
struct Machine {
  std::string processor;
  int cores = 0;         // number of cores, counting each hardware thread
  int usable_cores = 0;  // those that this process may use (taskset, a job's share); 0: unknown
  Bytes memory = 0, available_memory = 0;
  std::optional<Bytes> memory_limit;         // limit of this process's control group (a container, a job)
  std::optional<Bytes> shared_memory;        // free bytes in /dev/shm; nothing if it does not exist
  std::vector<NetworkInterface> interfaces;  // interfaces that are up, by name
  std::string c_library;                     // "glibc 2.36"
};

/// Returns the processor's name; "unknown processor" if the system does not tell it.
std::string processor_name(const std::filesystem::path& root = "/");

/// Describes this machine, from system calls and from /proc, /sys and /dev under `root`.
Machine this_machine(const std::filesystem::path& root = "/");

}  // namespace frostpipe
