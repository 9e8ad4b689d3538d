#include "executor/installation/machine.h"

#include <arpa/inet.h>
#include <gnu/libc-version.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <system_error>

namespace frostpipe {
namespace {

namespace fs = std::filesystem;

/// Parses a line "MemTotal:  8123456 kB"; returns 0 if there is none.
Bytes memory_entry(const fs::path& root, const std::string& name) {
  std::ifstream file(root / "proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name + ":")) continue;
    Bytes kibibytes = 0;
    std::istringstream(line.substr(name.size() + 1)) >> kibibytes;
    return kibibytes << 10;
  }
  return 0;
}

/// Returns the number in a file; nothing if there is no such file or it says "max".
std::optional<Bytes> number_in(const fs::path& path) {
  std::ifstream file(path);
  Bytes number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

/// Returns the smallest limit of this process's control groups, including outer ones. (Version 2; of version 1 only
/// those that a container sees as its own.)
std::optional<Bytes> memory_limit(const fs::path& root, Bytes memory) {
  const fs::path top = root / "sys/fs/cgroup";
  std::vector<fs::path> files{top / "memory.max", top / "memory/memory.limit_in_bytes"};
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    for (fs::path group = line.substr(4); !group.empty(); group = group.parent_path())
      files.push_back(top / group / "memory.max");
  }
  std::optional<Bytes> limit;
  for (const fs::path& file : files) {
    const std::optional<Bytes> found = number_in(file);
    if (found && *found < limit.value_or(memory)) limit = found;
  }
  return limit;
}

std::optional<Bytes> free_shared_memory(const fs::path& root) {
  std::error_code missing;
  const fs::space_info space = fs::space(root / "dev/shm", missing);
  if (missing) return std::nullopt;
  return static_cast<Bytes>(space.available);
}

int count_usable_cores() {
  constexpr int kMostCores = 1 << 20;
  // The system refuses a set that is smaller than its own (EINVAL), whose size it does not tell.
  for (int most = CPU_SETSIZE; most <= kMostCores; most *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> cores(CPU_ALLOC(most),
                                                                 [](cpu_set_t* set) { CPU_FREE(set); });
    const std::size_t bytes = CPU_ALLOC_SIZE(most);
    if (sched_getaffinity(0, bytes, cores.get()) == 0) return CPU_COUNT_S(bytes, cores.get());
    if (errno != EINVAL) break;
  }
  return 0;
}

std::optional<int> speed_of(const fs::path& root, const std::string& interface) {
  const std::optional<Bytes> speed = number_in(root / "sys/class/net" / interface / "speed");
  if (!speed || *speed <= 0) return std::nullopt;
  return static_cast<int>(*speed);
}

/// Returns "" for other address families.
std::string address_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (!address) return "";
  if (address->sa_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(), text.size());
  if (address->sa_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text.data(), text.size());
  return text.data();
}

std::vector<NetworkInterface> interfaces_up(const fs::path& root) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
  std::map<std::string, std::vector<std::string>> found;
  for (const ifaddrs* entry = first; entry; entry = entry->ifa_next) {
    if (!(entry->ifa_flags & IFF_UP)) continue;
    std::vector<std::string>& addresses = found[entry->ifa_name];
    if (const std::string text = address_text(entry->ifa_addr); !text.empty()) addresses.push_back(text);
  }
  std::vector<NetworkInterface> interfaces;
  for (const auto& [name, addresses] : found)
    interfaces.push_back({.name = name, .addresses = addresses, .megabits_per_second = speed_of(root, name)});
  return interfaces;
}

}  // namespace

std::string processor_name(const fs::path& root) {
  std::ifstream info(root / "proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

Machine this_machine(const fs::path& root) {
  const Bytes memory = memory_entry(root, "MemTotal");
  return {.processor = processor_name(root),
          .cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
          .usable_cores = count_usable_cores(),
          .memory = memory,
          .available_memory = memory_entry(root, "MemAvailable"),
          .memory_limit = memory_limit(root, memory),
          .shared_memory = free_shared_memory(root),
          .interfaces = interfaces_up(root),
          .c_library = std::string("glibc ") + gnu_get_libc_version()};
}

}  // namespace frostpipe
