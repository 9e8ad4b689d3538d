#include "executor/elastic/addresses.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/system_reason.h"

namespace frostpipe {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr const char* kLoopback = "127.0.0.1";

/// An IPv4 or IPv6 address in the form of the socket functions.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

std::string in_numbers(const SocketAddress& address) {
  std::array<char, NI_MAXHOST> text{};
  getnameinfo(address.get(), address.size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return text.data();
}

bool is_loopback(const SocketAddress& address) {
  if (address.storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address.storage);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) != 0;
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address.storage);
  return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
}

/// The addresses of a host, or the system's reason why the name does not resolve. They are sorted, IPv4 first, so that
/// all ranks choose the same one, whatever the order of the name server.
struct Resolved {
  std::vector<SocketAddress> addresses;
  std::string failure;
};

Resolved resolve(const std::string& host, int port, int flags = 0) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
    return {{}, error == EAI_SYSTEM ? system_reason(errno) : gai_strerror(error)};
  Resolved resolved;
  for (const addrinfo* entry = found; entry; entry = entry->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
    resolved.addresses.push_back(address);
  }
  freeaddrinfo(found);
  static_assert(AF_INET < AF_INET6);
  std::sort(resolved.addresses.begin(), resolved.addresses.end(), [](const SocketAddress& a, const SocketAddress& b) {
    if (a.storage.ss_family != b.storage.ss_family) return a.storage.ss_family < b.storage.ss_family;
    return std::memcmp(&a.storage, &b.storage, sizeof a.storage) < 0;
  });
  return resolved;
}

/// Retries until the name resolves or time is up: the DNS name of a pod may appear some seconds after the pod.
Resolved resolve_in_time(const std::string& host, int port, const ConnectLimits& limits) {
  const Clock::time_point until = Clock::now() + limits.unanswered;
  Resolved resolved = resolve(host, port);
  while (resolved.addresses.empty() && Clock::now() < until) {
    std::this_thread::sleep_for(100ms);
    resolved = resolve(host, port);
  }
  return resolved;
}

/// Returns name and address of every interface that is up.
std::vector<std::pair<std::string, SocketAddress>> interface_addresses() {
  std::vector<std::pair<std::string, SocketAddress>> all;
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return all;
  for (const ifaddrs* entry = found; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    SocketAddress address;
    address.size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&address.storage, entry->ifa_addr, address.size);
    all.emplace_back(entry->ifa_name, address);
  }
  freeifaddrs(found);
  return all;
}

/// Returns the local address of the route to `far_end`; "" if there is no route.
std::string near_end_of_route(const SocketAddress& far_end) {
  if (is_loopback(far_end)) return in_numbers(far_end);
  const Descriptor socket(::socket(far_end.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  SocketAddress own;
  if (connect(socket.number(), far_end.get(), far_end.size) != 0 ||
      getsockname(socket.number(), own.get(), &own.size) != 0)
    return "";
  return in_numbers(own);
}

/// True if the master's address is "localhost" or numeric, so that loopback is meant if it resolves to loopback. Other
/// names may resolve to loopback only on their own host, as with "127.0.1.1 vm" in Debian's /etc/hosts.
bool may_mean_loopback(const std::string& master_address) {
  return master_address == "localhost" || !resolve(master_address, 0, AI_NUMERICHOST).addresses.empty();
}

[[noreturn]] void refuse_master(const RankEnvironment& self, const std::string& reason) {
  throw RuntimeFailure(fmt::format(
      "rank {} on host {}: MASTER_ADDR: {} {}; give a numeric address of rank 0's host to which this host has a route",
      self.rank, host_name(), self.master_address, reason));
}

/// Resolves the master's address; the result has at least one address.
Resolved known_master(const RankEnvironment& self, const ConnectLimits& limits) {
  Resolved master = resolve_in_time(self.master_address, self.master_port, limits);
  if (master.addresses.empty()) refuse_master(self, fmt::format("is not known here ({})", master.failure));
  return master;
}

/// Returns the address of the requested interface, or the requested address of this host. If the interface has several
/// addresses, one of the master's address family comes first.
std::string address_of_interface(const RankEnvironment& self, const ConnectLimits& limits) {
  const std::string& interface = self.interface;
  const Resolved number = resolve(interface, 0, AI_NUMERICHOST);
  if (!number.addresses.empty()) {
    const SocketAddress& address = number.addresses.front();
    const Descriptor socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (bind(socket.number(), address.get(), address.size) == 0) return interface;
  }
  const int family = self.is_on_one_host ? AF_INET : known_master(self, limits).addresses.front().storage.ss_family;
  std::string other, known;
  for (const auto& [name, address] : interface_addresses()) {
    const std::string text = in_numbers(address);
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", name, text);
    if (name != interface) continue;
    if (address.storage.ss_family == family) return text;
    if (other.empty()) other = text;
  }
  if (!other.empty()) return other;
  throw InvalidInput("--interface (or GLOO_SOCKET_IFNAME)",
                     fmt::format("must be an interface of host {} or an address of it: {}", host_name(), known),
                     interface);
}

/// Returns the address at which other hosts reach this one: the local end of the route to the master's address. On
/// rank 0's host it is that address itself.
std::string address_towards_master(const RankEnvironment& self, const ConnectLimits& limits) {
  const Resolved master = known_master(self, limits);
  const bool any_will_do = may_mean_loopback(self.master_address);
  std::string reason;
  for (const SocketAddress& address : master.addresses) {
    if (is_loopback(address) && !any_will_do) {
      reason = fmt::format("resolves to {} here (see /etc/hosts), at which no other host can reach this one",
                           in_numbers(address));
      continue;
    }
    const std::string own = near_end_of_route(address);
    if (!own.empty()) return own;
    reason = "cannot be reached, since this host has no route to it";
  }
  refuse_master(self, reason);
}

/// The result of trying all addresses of a host once.
struct Attempt {
  std::string address;      // numeric address that accepts connections; "" if none does
  std::string reason;       // why none accepts
  bool is_refused = false;  // the host has refused a connection

  void add_error(int error) {
    is_refused = is_refused || error == ECONNREFUSED;
    if (reason.empty() || error == ECONNREFUSED) reason = error == ETIMEDOUT ? "no answer" : system_reason(error);
  }
};

/// Tries all addresses of the host at the same time, until `until`, so that a silent one does not hold up the others.
/// After a refusal the others get one more second.
Attempt try_once(const std::string& host, int port, Clock::time_point until) {
  const Resolved resolved = resolve(host, port);
  Attempt attempt{.reason = resolved.failure};
  std::vector<Descriptor> sockets;
  std::vector<pollfd> waiting;  // by address; poll() skips negative numbers
  for (const SocketAddress& address : resolved.addresses) {
    Descriptor& socket =
        sockets.emplace_back(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const bool has_begun =
        socket.is_open() && (connect(socket.number(), address.get(), address.size) == 0 || errno == EINPROGRESS);
    if (!has_begun) attempt.add_error(errno);
    waiting.push_back({.fd = has_begun ? socket.number() : -1, .events = POLLOUT, .revents = 0});
  }
  const auto goes_on = [](const pollfd& entry) { return entry.fd >= 0; };
  while (std::any_of(waiting.begin(), waiting.end(), goes_on)) {
    if (attempt.is_refused) until = std::min(until, Clock::now() + 1s);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (poll(waiting.data(), waiting.size(), static_cast<int>(std::max<std::int64_t>(left, 1))) <= 0) {
      attempt.add_error(ETIMEDOUT);
      return attempt;
    }
    for (std::size_t index = 0; index < waiting.size(); ++index) {
      if (waiting[index].revents == 0) continue;
      int error = 0;
      socklen_t size = sizeof error;
      getsockopt(waiting[index].fd, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error == 0) return {.address = in_numbers(resolved.addresses[index])};
      attempt.add_error(error);
      waiting[index].fd = -1;
    }
  }
  return attempt;
}

std::string seconds_of(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

}  // namespace

std::string own_address(const RankEnvironment& self, const ConnectLimits& limits) {
  if (!self.interface.empty()) return address_of_interface(self, limits);
  return self.is_on_one_host ? kLoopback : address_towards_master(self, limits);
}

std::string store_address(const RankEnvironment& self) {
  if (self.store_is_external) return self.master_address;
  if (self.is_on_one_host) return kLoopback;
  return self.rank == 0 ? address_towards_master(self, ConnectLimits{}) : self.master_address;
}

Descriptor bound_socket(const std::string& address, int port) {
  const Resolved resolved = resolve(address, port, AI_NUMERICHOST);
  FROSTPIPE_CHECK(!resolved.addresses.empty(), "addresses to bind to are numbers");
  const SocketAddress& place = resolved.addresses.front();
  Descriptor socket(::socket(place.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  if (socket.is_open()) setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (!socket.is_open() || bind(socket.number(), place.get(), place.size) != 0) {
    throw RuntimeFailure(fmt::format("{} of host {} cannot be listened on: {}", with_port(address, port), host_name(),
                                     system_reason(errno)));
  }
  return socket;
}

int port_of(const Descriptor& socket) {
  SocketAddress address;
  getsockname(socket.number(), address.get(), &address.size);
  return ntohs(address.storage.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_port
                                                     : reinterpret_cast<const sockaddr_in&>(address.storage).sin_port);
}

std::string with_port(const std::string& address, int port) {
  const bool is_ipv6 = address.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

std::string wait_for_listener(int rank, const Listener& listener, const ConnectLimits& limits) {
  const Clock::time_point begin = Clock::now();
  const std::string place = fmt::format("rank {} on host {} cannot reach {}, {}", rank, host_name(),
                                        with_port(listener.host, listener.port), listener.what);
  for (bool is_reported = false;; std::this_thread::sleep_for(100ms)) {
    const Attempt attempt =
        try_once(listener.host, listener.port, std::max(Clock::now() + 1s, begin + limits.unanswered));
    if (!attempt.address.empty()) return attempt.address;
    const Clock::duration waited = Clock::now() - begin;
    const std::chrono::milliseconds limit = attempt.is_refused ? limits.refused : limits.unanswered;
    if (waited >= limit) {
      throw RuntimeFailure(fmt::format("{}: {} for {}. {}", place, attempt.reason, seconds_of(limit),
                                       attempt.is_refused
                                           ? listener.if_refused
                                           : "Does a firewall drop it? Is the host up, and the address one of the "
                                             "network between the hosts (MASTER_ADDR, --interface)?"));
    }
    if (attempt.is_refused && waited >= limits.unanswered && !std::exchange(is_reported, true))
      std::fprintf(stderr, "frostpipe: %s: %s for %s; waiting for %s. %s\n", place.c_str(), attempt.reason.c_str(),
                   seconds_of(limits.unanswered).c_str(), seconds_of(limits.refused).c_str(),
                   listener.if_refused.c_str());
  }
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string host_identity(const std::string& address) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  const bool stands_for_a_host = address.starts_with("127.") && address != kLoopback;
  return host_name() + " " + boot + (stands_for_a_host ? " " + address : "");
}

}  // namespace frostpipe
