#include "executor/communication/store_exchange.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "base/error.h"
#include "executor/communication/heartbeat.h"
#include "executor/elastic/addresses.h"

namespace frostpipe {
namespace {

std::string key_of(const RankEnvironment& self, const std::string& name, int rank) {
  return store_key(self, fmt::format("{}/{}", name, rank));
}

}  // namespace

void publish_text(const RankEnvironment& self, c10d::Store& store, const std::string& name, const std::string& text) {
  store.set(key_of(self, name, self.rank), std::vector<std::uint8_t>(text.begin(), text.end()));
}

bool has_text(const RankEnvironment& self, c10d::Store& store, const std::string& name, int rank) {
  return store.check({key_of(self, name, rank)});
}

std::string text_of_rank(const RankEnvironment& self, c10d::Store& store, const std::string& name, int rank) {
  const std::vector<std::uint8_t> text = store.get(key_of(self, name, rank));
  return {text.begin(), text.end()};
}

std::string have_not_registered(const RankEnvironment& self, const std::vector<int>& ranks,
                                std::chrono::milliseconds limit) {
  return fmt::format(
      "rank {} on host {} has waited {} s for {} {} of {}. Have they been started, with the same MASTER_ADDR and "
      "MASTER_PORT? If they have ended, their output says why",
      self.rank, host_name(), std::chrono::duration<double>(limit).count(), ranks.size() == 1 ? "rank" : "ranks",
      fmt::join(ranks, ", "), self.world_size);
}

std::vector<std::string> gather_texts(const RankEnvironment& self, c10d::Store& store, const std::string& name,
                                      std::chrono::milliseconds limit) {
  std::vector<std::string> keys, texts;
  for (int rank = 0; rank < self.world_size; ++rank) keys.push_back(key_of(self, name, rank));
  try {
    store.wait(keys, limit);
  } catch (const c10::DistStoreError&) {
    std::vector<int> missing;
    for (int rank = 0; rank < self.world_size; ++rank)
      if (!store.check({keys[rank]})) missing.push_back(rank);
    if (missing.empty()) throw;
    throw RuntimeFailure(have_not_registered(self, missing, limit));
  }
  for (const std::vector<std::uint8_t>& text : store.multiGet(keys)) texts.emplace_back(text.begin(), text.end());
  return texts;
}

void wait_until_all_read(const RankEnvironment& self, c10d::Store& store) {
  publish_text(self, store, "left", "");
  if (self.rank != 0) return;
  try {
    gather_texts(self, store, "left", std::chrono::seconds(10));
  } catch (const std::exception&) {  // too late, or the store is gone
  }
}

}  // namespace frostpipe
