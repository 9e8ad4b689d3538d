#include "executor/communication/arrival.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <map>
#include <random>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/error.h"
#include "executor/communication/heartbeat.h"
#include "executor/communication/store_exchange.h"
#include "executor/elastic/addresses.h"

namespace frostpipe {

using namespace std::chrono_literals;

namespace {

/// Without the attempt, since the rank that asks does not know it yet.
std::string hello_key(int rank) { return fmt::format("hello/{}", rank); }
std::string welcome_key(const std::string& word) { return "welcome/" + word; }
constexpr const char* kClosedKey = "closed";

std::string new_word() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

void set(c10d::TCPStore& store, const std::string& key, const std::string& text) {
  store.set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
}

/// Polls until `is_there()` or until `limit` is over. After 10 s prints a line that names whom this rank waits for.
template <class IsThere, class Whom>
void look_for(const RankEnvironment& self, std::chrono::milliseconds limit, const IsThere& is_there, const Whom& whom) {
  const auto began = std::chrono::steady_clock::now();
  bool is_said = false;
  while (!is_there() && std::chrono::steady_clock::now() - began < limit) {
    if (!is_said && std::chrono::steady_clock::now() - began > 10s) {
      is_said = true;
      std::fprintf(stderr, "frostpipe: rank %d on host %s waits for %s\n", self.rank, host_name().c_str(),
                   whom().c_str());
    }
    std::this_thread::sleep_for(20ms);
  }
}

/// Waits until all ranks have registered. With `welcomes`, rank 0 meanwhile answers requests for the attempt. Requests
/// of ranks from before a restart are answered too; nobody reads those answers.
void wait_for_all(const RankEnvironment& self, c10d::TCPStore& store, bool welcomes, std::chrono::milliseconds limit) {
  std::map<int, std::string> welcomed;
  const auto missing = [&] {
    std::vector<int> ranks;
    for (int rank = 0; rank < self.world_size; ++rank)
      if (!has_text(self, store, "arrived", rank)) ranks.push_back(rank);
    return ranks;
  };
  const auto all_are_there = [&] {
    for (int rank = 1; welcomes && self.rank == 0 && rank < self.world_size; ++rank) {
      if (!store.check({hello_key(rank)})) continue;
      const std::string word = store.get_to_str(hello_key(rank));
      if (word != welcomed[rank]) set(store, welcome_key(word), std::to_string(self.attempt));
      welcomed[rank] = word;
    }
    return missing().empty();
  };
  look_for(self, limit, all_are_there, [&] {
    const std::vector<int> ranks = missing();
    return fmt::format("{} {} of {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "), self.world_size);
  });
  if (const std::vector<int> ranks = missing(); !ranks.empty()) throw RuntimeFailure(have_not_come(self, ranks, limit));
}

bool meet(const RankEnvironment& self, c10d::TCPStore& store, const Arrival& own, bool welcomes,
          std::chrono::milliseconds limit) {
  constexpr char kShares = 's', kOwns = 'o';
  put_text(self, store, "arrived", (own.shares_device ? kShares : kOwns) + own.trouble);
  bool any_shares = false;
  wait_for_all(self, store, welcomes, limit);
  for (const std::string& one : texts_of_all(self, store, "arrived")) {
    any_shares = any_shares || one.at(0) == kShares;
    if (one.size() == 1) continue;
    leave_together(self, store);
    throw InvalidInput(one.substr(1));
  }
  return any_shares;
}

}  // namespace

int find_attempt(const RankEnvironment& self, c10d::TCPStore& store, std::chrono::milliseconds limit) {
  if (self.rank == 0) return static_cast<int>(std::random_device()() >> 1);
  const std::string word = new_word();
  set(store, hello_key(self.rank), word);
  const auto is_welcome = [&] { return store.check({welcome_key(word)}); };
  const auto is_too_late = [&] { return store.check({kClosedKey}); };
  look_for(
      self, limit, [&] { return is_welcome() || is_too_late(); },
      [&] { return fmt::format("rank 0 of {}", self.world_size); });
  if (is_welcome()) return std::stoi(store.get_to_str(welcome_key(word)));
  if (is_too_late())
    throw RuntimeFailure(
        fmt::format("rank {} on host {} comes too late: the ranks of this job have met already, and "
                    "after a loss they go on without those that are lost",
                    self.rank, host_name()));
  throw RuntimeFailure(have_not_come(self, {0}, limit));
}

bool meet_at_store(const RankEnvironment& self, c10d::TCPStore& store, const Arrival& own,
                   std::chrono::milliseconds limit) {
  return meet(self, store, own, /*welcomes=*/true, limit);
}

bool meet_again_at_store(const RankEnvironment& self, c10d::TCPStore& store, const Arrival& own,
                         std::chrono::milliseconds limit) {
  return meet(self, store, own, /*welcomes=*/false, limit);
}

void close_arrivals(c10d::TCPStore& store) { store.set(kClosedKey, std::vector<std::uint8_t>()); }

void meet_in_trouble(const RankEnvironment& self, const std::string& trouble) {
  const std::string named = self.is_on_one_host ? trouble : fmt::format("host {}: {}", host_name(), trouble);
  if (self.world_size == 1) throw InvalidInput(named);
  try {
    const auto store = connect_store(self, /*may_host=*/true, {.refused = 1min});
    RankEnvironment in_attempt = self;
    in_attempt.attempt = find_attempt(self, *store, 1min);
    meet_at_store(in_attempt, *store, {.trouble = named}, 1min);
  } catch (const InvalidInput&) {
    throw;
  } catch (const std::exception&) {  // no other rank could be told
  }
  throw InvalidInput(named);
}

}  // namespace frostpipe
