#include "executor/communication/store_rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "executor/communication/guarded.h"
#include "executor/communication/heartbeat.h"
#include "executor/communication/store_exchange.h"
#include "executor/elastic/addresses.h"

namespace frostpipe {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// In a round in which a connection has broken, a rank that is silent for this long is lost.
constexpr std::chrono::seconds kSilenceAfterLoss(5);
/// Survivors wait this long for each other; they arrive at about the same time.
constexpr std::chrono::seconds kRegistrationLimit(15);
/// Rank 0, with which the store ends, waits this long for the others to read why all end.
constexpr std::chrono::seconds kEndLimit(3);
/// If the store is gone, the heartbeat ends the process within this time, with a better message.
constexpr std::chrono::seconds kUntilHeartbeatEnds(5);

// Names of the entries that ranks store at their start and after a loss.
constexpr const char* kHost = "host";
constexpr const char* kStopped = "stopped";
constexpr const char* kVerdict = "verdict";            // stored by rank 0
constexpr const char* kAcknowledged = "acknowledged";  // the rank has read that all end

/// Rank 0's decision after a loss. Ranks are numbered as they were started.
struct Verdict {
  std::vector<int> survivors;  // ascending
  std::string cause;           // "rank 3 on host b has sent no heartbeat for 10 s"
  std::string end;             // why all ranks end; "" if the survivors go on
  int attempt = 0;             // attempt of the next round
  Nanoseconds silence_ns = 0;  // of the rank that was silent for longest; 0 if none was
};

std::string to_text(const Verdict& verdict) {
  return nlohmann::json{{"survivors", verdict.survivors},
                        {"cause", verdict.cause},
                        {"end", verdict.end},
                        {"attempt", verdict.attempt},
                        {"silence_ns", verdict.silence_ns}}
      .dump();
}

Verdict verdict_from_text(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  return {.survivors = json.at("survivors"),
          .cause = json.at("cause"),
          .end = json.at("end"),
          .attempt = json.at("attempt"),
          .silence_ns = json.at("silence_ns")};
}

std::string ranks_text(std::size_t count) { return fmt::format("{} rank{}", count, count == 1 ? "" : "s"); }

}  // namespace

struct StoreRendezvous::State {
  RankEnvironment first;  // this rank as it was started, with the first round's attempt
  int max_restarts = 0;
  RendezvousInfo round;
  bool has_begun = false, has_connected = false;
  Clock::time_point stopped_at{};
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::unique_ptr<Heartbeat> heartbeat;

  std::string alarm_key() const { return store_key(round.self, "alarm"); }

  /// Returns a text such as "rank 1 on host a and ranks 2, 3 on host b".
  std::string names_of(const std::vector<int>& ranks) const {
    std::map<std::string, std::vector<int>> on_hosts;
    for (const int rank : ranks) on_hosts[text_of_rank(first, *store, kHost, rank)].push_back(rank);
    std::string names;
    for (const auto& [host, numbers] : on_hosts)
      names += fmt::format("{}rank{} {} on host {}", names.empty() ? "" : " and ", numbers.size() == 1 ? "" : "s",
                           fmt::join(numbers, ", "), host);
    return names;
  }

  // ---- on rank 0

  /// Waits until every rank of the round has stopped or is silent. A rank that has done neither within the limit is
  /// stuck.
  Verdict decide() const {
    for (;; std::this_thread::sleep_for(20ms)) {
      const bool too_late = Clock::now() - stopped_at > std::chrono::seconds(kStopLimitSeconds);
      const std::vector<Pulse> pulses = heartbeat->pulses();
      std::vector<int> silent, stuck, failed, done;
      Verdict verdict{.attempt = static_cast<int>(std::random_device()() >> 1)};
      Nanoseconds silence_ns = 0;
      for (std::size_t index = 0; index < round.logical_ranks.size(); ++index) {
        const int rank = round.logical_ranks[index];
        const Pulse& pulse = pulses[rank];
        if (pulse.status == Heartbeat::kFailed) {
          failed.push_back(rank);
        } else if (pulse.status == Heartbeat::kDone) {
          done.push_back(rank);
        } else if (rank != first.rank && pulse.age > kSilenceAfterLoss) {
          silent.push_back(rank);
          silence_ns = std::max<Nanoseconds>(silence_ns, std::chrono::nanoseconds(pulse.age).count());
        } else if (has_text(round.self, *store, kStopped, static_cast<int>(index))) {
          verdict.survivors.push_back(rank);
        } else {
          stuck.push_back(rank);
        }
      }
      if (!stuck.empty() && !too_late) continue;
      verdict.silence_ns = silence_ns;
      verdict.cause = cause_of(silent, stuck, silence_ns);
      verdict.end = reason_to_end(failed, done, verdict.cause);
      return verdict;
    }
  }

  std::string cause_of(const std::vector<int>& silent, const std::vector<int>& stuck, Nanoseconds silence_ns) const {
    const auto have = [](const std::vector<int>& ranks) { return ranks.size() == 1 ? "has" : "have"; };
    std::string cause;
    if (!silent.empty())
      cause =
          fmt::format("{} {} sent no heartbeat for {} s", names_of(silent), have(silent), silence_ns / 1'000'000'000);
    if (!stuck.empty())
      cause += fmt::format("{}{} {} not stopped within {} s", cause.empty() ? "" : ", ", names_of(stuck), have(stuck),
                           kStopLimitSeconds);
    return cause.empty() ? "connections between ranks broke" : cause;
  }

  std::string reason_to_end(const std::vector<int>& failed, const std::vector<int>& done,
                            const std::string& cause) const {
    if (!failed.empty())
      return fmt::format("{} {} failed; {} output says why", names_of(failed), failed.size() == 1 ? "has" : "have",
                         failed.size() == 1 ? "its" : "their");
    if (!done.empty()) return fmt::format("{} while others were ending", cause);
    if (round.generation == max_restarts)
      return fmt::format("{}; the job has gone on {} after a loss already (--max-restarts)", cause,
                         max_restarts == 1 ? "once" : fmt::format("{} times", max_restarts));
    return "";
  }

  // ---- on the other ranks

  /// Waits for rank 0's verdict. Rank 0 may be busy until it finds that the round is over; the limit counts from then
  /// on.
  Verdict wait_for_verdict() const {
    constexpr std::chrono::seconds kLimit(kStopLimitSeconds + 5);
    std::optional<Clock::time_point> begin;  // when the limit began to count
    while (!has_text(round.self, *store, kVerdict, 0)) {
      const bool is_busy =
          !has_text(round.self, *store, kStopped, 0) && heartbeat->pulses().front().age <= kSilenceAfterLoss;
      if (!begin && !is_busy) begin = Clock::now();
      if (begin && Clock::now() - *begin > kLimit)
        throw RuntimeFailure(fmt::format("rank {}: rank 0 has not named the ranks that go on after a loss within {} s",
                                         first.rank, kLimit.count()));
      std::this_thread::sleep_for(20ms);
    }
    return verdict_from_text(text_of_rank(round.self, *store, kVerdict, 0));
  }

  // ---- on all ranks

  /// Acknowledges a verdict that ends the job. Rank 0, whose end closes the store, waits briefly for the others.
  void end_together(const Verdict& verdict) const {
    publish_text(round.self, *store, kAcknowledged, "");
    const auto has_acknowledged = [&](int rank) {
      const auto index = std::find(round.logical_ranks.begin(), round.logical_ranks.end(), rank);
      return has_text(round.self, *store, kAcknowledged, static_cast<int>(index - round.logical_ranks.begin()));
    };
    for (const auto until = Clock::now() + kEndLimit;
         first.rank == 0 && !std::all_of(verdict.survivors.begin(), verdict.survivors.end(), has_acknowledged) &&
         Clock::now() < until;)
      std::this_thread::sleep_for(20ms);
  }

  void follow(const Verdict& verdict) {
    if (!verdict.end.empty()) throw RuntimeFailure(verdict.end);
    const auto place = std::find(verdict.survivors.begin(), verdict.survivors.end(), first.rank);
    if (place == verdict.survivors.end())
      throw RuntimeFailure(fmt::format("rank {}: the others go on without this rank: {}", first.rank, verdict.cause));
    ++round.generation;
    round.self.rank = static_cast<int>(place - verdict.survivors.begin());
    round.self.world_size = static_cast<int>(verdict.survivors.size());
    round.self.attempt = verdict.attempt;
    round.logical_ranks = verdict.survivors;
    round.cause = verdict.cause;
    round.noticed_ns = stopped_at.time_since_epoch() / 1ns;
    round.lost_ns = round.noticed_ns - verdict.silence_ns;
  }

  /// Runs a request to the store. If the store is gone, waits for the heartbeat to report that.
  template <class Call>
  auto asking_store(const std::string& what, Call call) const {
    try {
      return guarded(first.rank, what, call);
    } catch (const PeerLost&) {
      std::this_thread::sleep_for(kUntilHeartbeatEnds);
      throw;
    }
  }
};

StoreRendezvous::StoreRendezvous(RendezvousInfo first, int max_restarts) : state_(std::make_unique<State>()) {
  state_->first = first.self;
  state_->max_restarts = max_restarts;
  state_->round = std::move(first);
}

StoreRendezvous::~StoreRendezvous() = default;

std::optional<RendezvousInfo> StoreRendezvous::next_round() {
  State& state = *state_;
  if (!std::exchange(state.has_begun, true)) return state.round;
  const Verdict verdict = state.asking_store("the rendezvous after a loss", [&] {
    const Verdict found = state.first.rank == 0 ? state.decide() : state.wait_for_verdict();
    if (state.first.rank == 0) publish_text(state.round.self, *state.store, kVerdict, to_text(found));
    if (!found.end.empty()) state.end_together(found);
    return found;
  });
  state.follow(verdict);
  if (state.first.rank == 0)
    std::fprintf(stderr, "frostpipe: %s; %s go%s on (restart %d of %d)\n", verdict.cause.c_str(),
                 ranks_text(verdict.survivors.size()).c_str(), verdict.survivors.size() == 1 ? "es" : "",
                 state.round.generation, state.max_restarts);
  return state.round;
}

bool StoreRendezvous::may_rendezvous_again() const { return state_->max_restarts > 0 && state_->has_connected; }

void StoreRendezvous::stop(int) {
  State& state = *state_;
  state.stopped_at = Clock::now();
  state.asking_store("stopping after a loss", [&] {
    state.store->set(state.alarm_key(), {});
    publish_text(state.round.self, *state.store, kStopped, "");
  });
}

void StoreRendezvous::finish() {
  if (state_->heartbeat) state_->heartbeat->finish();
}

RankEnvironment StoreRendezvous::connect() {
  State& state = *state_;
  if (state.store) return state.round.self;
  RankEnvironment& self = state.first;
  state.store = guarded(self.rank, "connecting to " + with_port(store_address(self), self.master_port),
                        [&] { return connect_store(self, /*may_host=*/true); });
  self.attempt = guarded(self.rank, "waiting for rank 0", [&] { return find_attempt(self, *state.store); });
  state.round.self.attempt = self.attempt;
  state.heartbeat = std::make_unique<Heartbeat>(self);
  if (state.max_restarts > 0) state.heartbeat->set_last_status(Heartbeat::kFailed);
  guarded(self.rank, "naming this host", [&] { publish_text(self, *state.store, kHost, host_name()); });
  return self;
}

c10::intrusive_ptr<c10d::TCPStore> StoreRendezvous::store() const { return state_->store; }

bool StoreRendezvous::is_first_round() const { return state_->round.generation == 0; }

void StoreRendezvous::register_rank() {
  const RankEnvironment& self = state_->round.self;
  if (is_first_round()) return register_at_store(self, *state_->store);
  try {
    register_again_at_store(self, *state_->store, kRegistrationLimit);
  } catch (const RuntimeFailure& late) {
    throw PeerLost(late.what());
  }
}

void StoreRendezvous::watch(std::function<void()> give_up_connections) {
  if (state_->max_restarts == 0) return;
  if (state_->first.rank == 0 && !state_->has_connected && !state_->first.store_is_external)
    guarded(state_->first.rank, "closing the registration", [&] { close_registration(*state_->store); });
  state_->has_connected = true;
  state_->store->setTimeout(kRegistrationLimit);  // no rank is late from now on
  state_->heartbeat->watch_round(state_->alarm_key(), state_->round.logical_ranks, std::move(give_up_connections));
}

void StoreRendezvous::end_watch() {
  if (state_->heartbeat) state_->heartbeat->end_round();
}

}  // namespace frostpipe
