#include "executor/communication/registration.h"

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

/// Returns the key of a request for the attempt. It does not name the attempt, since the rank that asks does not know
/// it yet.
std::string request_key(int rank) { return fmt::format("attempt_request/{}", rank); }
std::string attempt_key(const std::string& request) { return "attempt/" + request; }
constexpr const char* kClosedKey = "closed";

std::string new_request() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

void set(c10d::TCPStore& store, const std::string& key, const std::string& text) {
  store.set(key, std::vector<std::uint8_t>(text.begin(), text.end()));
}

/// Polls until `is_there()` or until `limit` is over. After 10 s prints a line that names what this rank waits for.
template <class IsThere, class Missing>
void wait_for(const RankEnvironment& self, std::chrono::milliseconds limit, const IsThere& is_there,
              const Missing& missing) {
  const auto began = std::chrono::steady_clock::now();
  bool is_reported = false;
  while (!is_there() && std::chrono::steady_clock::now() - began < limit) {
    if (!is_reported && std::chrono::steady_clock::now() - began > 10s) {
      is_reported = true;
      std::fprintf(stderr, "frostpipe: rank %d on host %s waits for %s\n", self.rank, host_name().c_str(),
                   missing().c_str());
    }
    std::this_thread::sleep_for(20ms);
  }
}

/// Waits until all ranks have registered. With `answers_requests`, rank 0 meanwhile answers requests for the attempt.
/// Requests of ranks from before a restart are answered too; those answers are never read.
void wait_for_all(const RankEnvironment& self, c10d::TCPStore& store, bool answers_requests,
                  std::chrono::milliseconds limit) {
  std::map<int, std::string> answered;
  const auto missing = [&] {
    std::vector<int> ranks;
    for (int rank = 0; rank < self.world_size; ++rank)
      if (!has_text(self, store, "registration", rank)) ranks.push_back(rank);
    return ranks;
  };
  const auto all_have_registered = [&] {
    for (int rank = 1; answers_requests && self.rank == 0 && rank < self.world_size; ++rank) {
      if (!store.check({request_key(rank)})) continue;
      const std::string request = store.get_to_str(request_key(rank));
      if (request != answered[rank]) set(store, attempt_key(request), std::to_string(self.attempt));
      answered[rank] = request;
    }
    return missing().empty();
  };
  wait_for(self, limit, all_have_registered, [&] {
    const std::vector<int> ranks = missing();
    return fmt::format("{} {} of {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "), self.world_size);
  });
  if (const std::vector<int> ranks = missing(); !ranks.empty())
    throw RuntimeFailure(have_not_registered(self, ranks, limit));
}

void register_rank(const RankEnvironment& self, c10d::TCPStore& store, const std::string& failure,
                   bool answers_requests, std::chrono::milliseconds limit) {
  publish_text(self, store, "registration", failure);
  wait_for_all(self, store, answers_requests, limit);
  for (const std::string& one : gather_texts(self, store, "registration")) {
    if (one.empty()) continue;
    wait_until_all_read(self, store);
    throw InvalidInput(one);
  }
}

}  // namespace

int find_attempt(const RankEnvironment& self, c10d::TCPStore& store, std::chrono::milliseconds limit) {
  if (self.rank == 0) return static_cast<int>(std::random_device()() >> 1);
  const std::string request = new_request();
  set(store, request_key(self.rank), request);
  const auto is_answered = [&] { return store.check({attempt_key(request)}); };
  const auto is_too_late = [&] { return store.check({kClosedKey}); };
  wait_for(
      self, limit, [&] { return is_answered() || is_too_late(); },
      [&] { return fmt::format("rank 0 of {}", self.world_size); });
  if (is_answered()) return std::stoi(store.get_to_str(attempt_key(request)));
  if (is_too_late())
    throw RuntimeFailure(
        fmt::format("rank {} on host {} registers too late: all ranks of this job have registered, and "
                    "after a loss they go on without those that are lost",
                    self.rank, host_name()));
  throw RuntimeFailure(have_not_registered(self, {0}, limit));
}

void register_at_store(const RankEnvironment& self, c10d::TCPStore& store, const std::string& failure,
                       std::chrono::milliseconds limit) {
  register_rank(self, store, failure, /*answers_requests=*/true, limit);
}

void register_again_at_store(const RankEnvironment& self, c10d::TCPStore& store, std::chrono::milliseconds limit) {
  register_rank(self, store, "", /*answers_requests=*/false, limit);
}

void close_registration(c10d::TCPStore& store) { store.set(kClosedKey, std::vector<std::uint8_t>()); }

void register_failure(const RankEnvironment& self, const std::string& failure) {
  const std::string named = self.is_on_one_host ? failure : fmt::format("host {}: {}", host_name(), failure);
  if (self.world_size == 1) throw InvalidInput(named);
  try {
    const auto store = connect_store(self, /*may_host=*/true, {.refused = 1min});
    RankEnvironment in_attempt = self;
    in_attempt.attempt = find_attempt(self, *store, 1min);
    register_at_store(in_attempt, *store, named, 1min);
  } catch (const InvalidInput&) {
    throw;
  } catch (const std::exception&) {  // the other ranks cannot be reached
  }
  throw InvalidInput(named);
}

}  // namespace frostpipe
