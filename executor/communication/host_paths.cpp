#include "executor/communication/host_paths.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "base/error.h"
#include "executor/communication/store_exchange.h"
#include "executor/elastic/addresses.h"

namespace frostpipe {
namespace {

/// The address at which a rank listens during the check.
struct Door {
  std::string host, host_name, address;
  int port = 0;
};

/// Exchanges the addresses of all ranks and returns them, by rank.
std::vector<Door> doors_of_all(const RankEnvironment& self, c10d::TCPStore& store, const Door& own) {
  const nlohmann::json json{own.host, own.host_name, own.address, own.port};
  put_text(self, store, "door", json.dump());
  std::vector<Door> doors;
  for (const std::string& text : texts_of_all(self, store, "door")) {
    const nlohmann::json entry = nlohmann::json::parse(text);
    doors.push_back({.host = entry.at(0), .host_name = entry.at(1), .address = entry.at(2), .port = entry.at(3)});
  }
  return doors;
}

/// Returns why this rank cannot reach the other hosts; "" if it can.
std::string trouble_on_the_way(const RankEnvironment& self, const std::vector<Door>& doors) {
  constexpr std::chrono::seconds kLimit(10);
  const auto is_first = [&](int rank) {
    return std::none_of(doors.begin(), doors.begin() + rank,
                        [&](const Door& door) { return door.host == doors[rank].host; });
  };
  if (!is_first(self.rank)) return "";
  try {
    for (int rank = 0; rank < self.world_size; ++rank) {
      if (rank == self.rank || !is_first(rank)) continue;
      const Door& door = doors[rank];
      wait_for_listener(self.rank,
                        {.host = door.address,
                         .port = door.port,
                         .what = fmt::format("one of rank {}'s ports on host {} that the system chooses, as for all "
                                             "messages between ranks",
                                             rank, door.host_name),
                         .if_refused = "Rank " + std::to_string(rank) + " listens there: a firewall refuses it."},
                        {.unanswered = kLimit, .refused = kLimit});
    }
  } catch (const RuntimeFailure& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace

void require_paths_between_hosts(const RankEnvironment& self, const std::string& address, c10d::TCPStore& store) {
  const Descriptor door = bound_socket(address, 0);
  listen(door.number(), self.world_size);
  const std::vector<Door> doors = doors_of_all(
      self, store,
      {.host = host_identity(address), .host_name = host_name(), .address = address, .port = port_of(door)});
  // Keep listening until all ranks have reported their result.
  put_text(self, store, "way", trouble_on_the_way(self, doors));
  for (const std::string& trouble : texts_of_all(self, store, "way")) {
    if (trouble.empty()) continue;
    leave_together(self, store);
    throw RuntimeFailure(trouble);
  }
}

}  // namespace frostpipe
