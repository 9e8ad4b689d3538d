#include "executor/communication/hosts.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/hash.h"
#include "executor/communication/communicator.h"
#include "executor/elastic/addresses.h"

namespace frostpipe {

std::vector<int> hosts_of_ranks(Communicator& communicator) {
  const int world_size = communicator.world_size();
  std::vector<int> nodes(world_size);
  const std::string host = host_identity(communicator.address());
  std::vector<double> hosts(world_size, 0.0);  // by rank: a hash of its host, cut to the bits that a double holds
  hosts[communicator.rank()] = static_cast<double>(hash_bytes(std::as_bytes(std::span(host))) >> 12);
  hosts = communicator.sum(std::move(hosts));
  int next = 0;
  for (int rank = 0; rank < world_size; ++rank) {
    const auto first = std::find(hosts.begin(), hosts.begin() + rank, hosts[rank]) - hosts.begin();
    nodes[rank] = first == rank ? next++ : nodes[first];
  }
  return nodes;
}

}  // namespace frostpipe
