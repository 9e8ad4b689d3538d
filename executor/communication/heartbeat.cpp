#include "executor/communication/heartbeat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "executor/elastic/addresses.h"

namespace frostpipe {
namespace {
using Clock = std::chrono::steady_clock;

/// Once a connection is lost, a rank that is silent for this long is the reason.
constexpr int kSilenceAfterLossSeconds = 3;
/// From the end of the last collective to the end of the process.
constexpr std::chrono::seconds kTimeToLeave(3);
// Process-wide, as the heartbeat is.
std::atomic<bool> peer_was_lost{false};
std::atomic<bool> someone_watches{false};

/// Key of a rank's counter in the rendezvous store; counts up once a second, "done" after a normal end.
std::string heartbeat_key(const RankEnvironment& self, int rank) {
  return store_key(self, fmt::format("heartbeat/{}", rank));
}

}  // namespace

std::string store_key(const RankEnvironment& self, const std::string& name) {
  return fmt::format("attempt/{}/{}", self.attempt, name);
}

c10::intrusive_ptr<c10d::TCPStore> connect_store(const RankEnvironment& self, bool may_host,
                                                 const ConnectLimits& limits) {
  const bool is_host = self.rank == 0 && !self.store_is_external;
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(self.master_port);
  options.isServer = may_host && is_host;
  options.waitWorkers = false;
  std::string host = store_address(self);
  if (options.isServer) {  // c10d itself would listen on every interface
    options.masterListenFd = bound_socket(host, self.master_port).release();
  } else {
    host =
        wait_for_listener(self.rank,
                          {.host = host,
                           .port = self.master_port,
                           .what = self.store_is_external ? "where torchrun's agent listens" : "where rank 0 listens",
                           .if_refused = "Has it been started, with the same MASTER_ADDR and MASTER_PORT?"},
                          limits);
  }
  const std::chrono::minutes for_late_ranks(5);
  options.timeout = for_late_ranks;
  auto store = c10::make_intrusive<c10d::TCPStore>(host, options);
  store->setTimeout(for_late_ranks);
  return store;
}

struct Heartbeat::State {
  RankEnvironment self;
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  std::atomic<Clock::rep> last_round{now()};  // when the store last answered everything
  std::thread reporter, guard;

  /// Also where the second thread could not be started.
  ~State() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    someone_watches = false;
    wake.notify_all();
    for (std::thread* const thread : {&reporter, &guard}) {
      if (thread->joinable()) thread->join();
    }
  }

  struct Seen {
    std::string value;
    Clock::time_point at = Clock::now();
  };

  static Clock::rep now() { return Clock::now().time_since_epoch().count(); }

  [[noreturn]] void give_up(const std::string& reason) const {
    std::fprintf(stderr, "frostpipe: rank %d: %s; ending this rank\n", self.rank, reason.c_str());
    _exit(1);
  }

  std::string host() const {
    return self.store_is_external ? "the rendezvous store" : "rank 0, which hosts the rendezvous store,";
  }

  /// False once the heartbeat is to end.
  bool sleep(std::chrono::milliseconds duration) {
    std::unique_lock lock(mutex);
    return !wake.wait_for(lock, duration, [&] { return stopping; });
  }

  void watch(c10d::TCPStore& store, std::vector<Seen>& seen) const {
    for (int rank = 0; rank < self.world_size; ++rank) {
      if (rank == self.rank || !store.check({heartbeat_key(self, rank)})) continue;
      const std::string value = store.get_to_str(heartbeat_key(self, rank));
      const std::chrono::seconds limit(peer_was_lost ? kSilenceAfterLossSeconds : kSilenceLimitSeconds);
      if (value != seen[rank].value) {
        seen[rank] = {value};
      } else if (value != "done" && Clock::now() - seen[rank].at > limit) {
        give_up(
            fmt::format("rank {} has sent no heartbeat for {} s: it is dead, stopped or stuck", rank, limit.count()));
      }
    }
  }

  void report() {
    try {
      // This rank has been there already: who refuses now is gone, and at the end nobody is to wait for him.
      const auto store = connect_store(self, /*may_host=*/false, {.refused = std::chrono::seconds(1)});
      std::vector<Seen> seen(self.world_size);
      for (long beat = 0;; ++beat) {
        const Clock::time_point began = Clock::now();
        const bool goes_on = beat == 0 || sleep(std::chrono::seconds(1));
        if (Clock::now() - began > std::chrono::seconds(3)) {
          for (Seen& other : seen) other.at = Clock::now();  // this process itself was held up
        }
        const std::string value = goes_on ? std::to_string(beat) : "done";
        store->set(heartbeat_key(self, self.rank), std::vector<std::uint8_t>(value.begin(), value.end()));
        if (!goes_on) return;
        watch(*store, seen);
        last_round = now();
      }
    } catch (const std::exception& error) {
      // At the end of a run rank 0 may be the first to leave.
      if (!sleep(kTimeToLeave)) return;
      const std::string text = error.what();
      give_up(host() + " is gone: " + text.substr(0, text.find('\n')));
    }
  }

  /// The store's client may wait for an answer without end; this thread does not.
  void guard_against_a_silent_store() {
    Clock::time_point looked = Clock::now();
    while (sleep(std::chrono::seconds(1))) {
      if (Clock::now() - looked > std::chrono::seconds(3)) last_round = now();  // this process itself was held up
      looked = Clock::now();
      const Clock::duration silence(now() - last_round);
      if (silence > std::chrono::seconds(kSilenceLimitSeconds)) {
        give_up(fmt::format("{} has not answered for {} s: it is stopped or stuck", host(), kSilenceLimitSeconds));
      }
    }
  }
};

Heartbeat::Heartbeat(const RankEnvironment& self) : state_(std::make_unique<State>()) {
  state_->self = self;
  someone_watches = true;
  state_->reporter = std::thread([state = state_.get()] { state->report(); });
  state_->guard = std::thread([state = state_.get()] { state->guard_against_a_silent_store(); });
}

Heartbeat::~Heartbeat() = default;

void wait_for_failed_peer() {
  peer_was_lost = true;
  if (someone_watches) std::this_thread::sleep_for(std::chrono::seconds(kSilenceAfterLossSeconds + 2));
}

}  // namespace frostpipe
