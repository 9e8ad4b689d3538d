#include "executor/communication/host_paths.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "base/error.h"
#include "base/system_reason.h"
#include "executor/communication/store_exchange.h"
#include "executor/elastic/addresses.h"

namespace frostpipe {
namespace {

/// The address at which a rank listens during the check.
struct Endpoint {
  std::string host, host_name, address;
  int port = 0;
};

/// Exchanges the addresses of all ranks and returns them, by rank.
std::vector<Endpoint> exchange_endpoints(const RankEnvironment& self, c10d::TCPStore& store, const Endpoint& own) {
  const nlohmann::json json{own.host, own.host_name, own.address, own.port};
  publish_text(self, store, "endpoint", json.dump());
  std::vector<Endpoint> endpoints;
  for (const std::string& text : gather_texts(self, store, "endpoint")) {
    const nlohmann::json entry = nlohmann::json::parse(text);
    endpoints.push_back({.host = entry.at(0), .host_name = entry.at(1), .address = entry.at(2), .port = entry.at(3)});
  }
  return endpoints;
}

/// Returns why this rank cannot reach the other hosts; "" if it can, or if it is not the first rank of its host.
std::string failure_to_connect(const RankEnvironment& self, const std::vector<Endpoint>& endpoints) {
  constexpr std::chrono::seconds kLimit(10);
  const auto is_first = [&](int rank) {
    return std::none_of(endpoints.begin(), endpoints.begin() + rank,
                        [&](const Endpoint& endpoint) { return endpoint.host == endpoints[rank].host; });
  };
  if (!is_first(self.rank)) return "";
  try {
    for (int rank = 0; rank < self.world_size; ++rank) {
      if (rank == self.rank || !is_first(rank)) continue;
      const Endpoint& endpoint = endpoints[rank];
      wait_for_listener(self.rank,
                        {.host = endpoint.address,
                         .port = endpoint.port,
                         .what = fmt::format("a port that the system chose for rank {} on host {}, as it does for all "
                                             "messages between ranks",
                                             rank, endpoint.host_name),
                         .if_refused = "Rank " + std::to_string(rank) + " listens there, so a firewall refuses it."},
                        {.unanswered = kLimit, .refused = kLimit});
    }
  } catch (const RuntimeFailure& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace

void require_paths_between_hosts(const RankEnvironment& self, const std::string& address, c10d::TCPStore& store) {
  const Descriptor endpoint = bound_socket(address, 0);
  if (listen(endpoint.number(), self.world_size) != 0)
    throw RuntimeFailure(
        fmt::format("{} of host {} cannot be listened on: {}", address, host_name(), system_reason(errno)));
  const std::vector<Endpoint> endpoints = exchange_endpoints(
      self, store,
      {.host = host_identity(address), .host_name = host_name(), .address = address, .port = port_of(endpoint)});
  // Keep listening until all ranks have reported their result.
  publish_text(self, store, "path_check", failure_to_connect(self, endpoints));
  for (const std::string& failure : gather_texts(self, store, "path_check")) {
    if (failure.empty()) continue;
    wait_until_all_read(self, store);
    throw RuntimeFailure(failure);
  }
}

}  // namespace frostpipe
