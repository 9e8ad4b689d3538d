#include "executor/communication/arrival.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "executor/communication/heartbeat.h"
#include "executor/elastic/addresses.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> keys_of_all(const RankEnvironment& self, const std::string& name) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < self.world_size; ++rank) keys.push_back(store_key(self, fmt::format("{}/{}", name, rank)));
  return keys;
}

/// The store is rank 0's: it stays until the others have read what is in it, or are gone themselves.
void leave_together(const RankEnvironment& self, c10d::TCPStore& store) {
  const std::vector<std::string> keys = keys_of_all(self, "left");
  store.set(keys[self.rank], std::vector<std::uint8_t>{1});
  try {
    if (self.rank == 0) store.wait(keys, 5s);
  } catch (const std::exception&) {  // too late, or gone
  }
}

}  // namespace

bool meet_at_store(const RankEnvironment& self, c10d::TCPStore& store, const Arrival& own) {
  const std::vector<std::string> keys = keys_of_all(self, "arrived");
  std::vector<std::uint8_t> said{own.shares_device};
  said.insert(said.end(), own.trouble.begin(), own.trouble.end());
  store.set(keys[self.rank], said);
  store.wait(keys);
  bool any_shares = false;
  for (const std::vector<std::uint8_t>& one : store.multiGet(keys)) {
    any_shares = any_shares || one.at(0) != 0;
    if (one.size() == 1) continue;
    leave_together(self, store);
    throw InvalidInput(std::string(one.begin() + 1, one.end()));
  }
  return any_shares;
}

void meet_in_trouble(const RankEnvironment& self, const std::string& trouble) {
  const std::string named = self.is_on_one_host ? trouble : fmt::format("host {}: {}", host_name(), trouble);
  if (self.world_size == 1) throw InvalidInput(named);
  try {
    const auto store = connect_store(self, /*may_host=*/true, {.refused = 1min});
    store->setTimeout(1min);
    meet_at_store(self, *store, {.trouble = named});
  } catch (const InvalidInput&) {
    throw;
  } catch (const std::exception&) {  // there is nobody to tell
  }
  throw InvalidInput(named);
}

}  // namespace frostpipe
