#include "executor/communication/arrival.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "executor/communication/heartbeat.h"
#include "executor/communication/store_exchange.h"
#include "executor/elastic/addresses.h"
#include "profiles/error.h"

namespace frostpipe {

using namespace std::chrono_literals;

bool meet_at_store(const RankEnvironment& self, c10d::TCPStore& store, const Arrival& own,
                   std::chrono::milliseconds limit) {
  constexpr char kShares = 's', kOwns = 'o';
  put_text(self, store, "arrived", (own.shares_device ? kShares : kOwns) + own.trouble);
  bool any_shares = false;
  for (const std::string& one : texts_of_all(self, store, "arrived", limit)) {
    any_shares = any_shares || one.at(0) == kShares;
    if (one.size() == 1) continue;
    leave_together(self, store);
    throw InvalidInput(one.substr(1));
  }
  return any_shares;
}

void meet_in_trouble(const RankEnvironment& self, const std::string& trouble) {
  const std::string named = self.is_on_one_host ? trouble : fmt::format("host {}: {}", host_name(), trouble);
  if (self.world_size == 1) throw InvalidInput(named);
  try {
    const auto store = connect_store(self, /*may_host=*/true, {.refused = 1min});
    meet_at_store(self, *store, {.trouble = named}, 1min);
  } catch (const InvalidInput&) {
    throw;
  } catch (const std::exception&) {  // there is nobody to tell
  }
  throw InvalidInput(named);
}

}  // namespace frostpipe
