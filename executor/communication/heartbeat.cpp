#include "executor/communication/heartbeat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "executor/elastic/addresses.h"

namespace frostpipe {
namespace {
using Clock = std::chrono::steady_clock;

/// After a connection has been lost, a rank that is silent for this long is taken to be the cause.
constexpr int kSilenceAfterLossSeconds = 3;
/// After it has lost the store, a process has this long to end: at the end of a run rank 0 may close the store first.
constexpr std::chrono::seconds kTimeToFail(3);
// These are process-wide because there is one heartbeat per process.
std::atomic<bool> peer_was_lost{false};
std::atomic<bool> someone_watches{false};

/// Returns the key of a rank's counter in the rendezvous store. The counter counts up once a second and ends with the
/// last status.
std::string heartbeat_key(const RankEnvironment& self, int rank) {
  return store_key(self, fmt::format("heartbeat/{}", rank));
}

/// Connects to a store that another process hosts. c10d waits for the store's first answer without a limit, so a thread
/// connects. After `limit` that thread is left behind, since nothing interrupts it, and RuntimeFailure is thrown, which
/// ends the process.
c10::intrusive_ptr<c10d::TCPStore> answering_store(const RankEnvironment& self, const std::string& host,
                                                   const c10d::TCPStoreOptions& options,
                                                   std::chrono::milliseconds limit) {
  std::packaged_task<c10::intrusive_ptr<c10d::TCPStore>()> connect(
      [host, options] { return c10::make_intrusive<c10d::TCPStore>(host, options); });
  auto store = connect.get_future();
  std::thread(std::move(connect)).detach();
  if (store.wait_for(limit) == std::future_status::timeout)
    throw RuntimeFailure(fmt::format(
        "rank {} on host {}: {} accepts connections, but has not answered as a rendezvous store for {:g} s. Does "
        "another program listen there (choose another MASTER_PORT), or is rank 0 stopped?",
        self.rank, host_name(), with_port(host, self.master_port), std::chrono::duration<double>(limit).count()));
  return store.get();
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
  auto store = options.isServer ? c10::make_intrusive<c10d::TCPStore>(host, options)
                                : answering_store(self, host, options, limits.unanswered);
  store->setTimeout(for_late_ranks);
  return store;
}

struct Heartbeat::State {
  /// The last status of a rank and when it changed.
  struct Seen {
    std::string status;
    Clock::time_point at = Clock::now();
  };
  /// The arguments of watch_round().
  struct Round {
    std::string alarm;
    std::vector<int> ranks;
    std::function<void()> on_loss;
    bool is_lost = false;
  };

  RankEnvironment self;
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false, has_reported = false;  // the reporter should end; it has ended
  std::string last_status = kDone;
  std::atomic<bool> is_over{false};            // set by finish()
  std::atomic<Clock::rep> last_round{now()};   // when the store last answered all requests
  std::atomic<Clock::rep> giving_up_since{0};  // start of on_loss while it runs; else 0
  mutable std::mutex watching;                 // never locked together with `mutex`
  std::condition_variable lost;
  bool ends_process = true;  // a silent rank ends this process
  std::optional<Round> round;
  std::vector<Seen> seen;                   // by rank
  Clock::time_point looked = Clock::now();  // when `seen` was last updated
  std::thread reporter, guard;
  std::thread closer;  // waits for the loss of a round's rank and calls on_loss

  /// It also runs if the second thread could not be started. The guard thread ends after the reporter, which may be
  /// waiting for the store.
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
    end_round();
  }

  static Clock::rep now() { return Clock::now().time_since_epoch().count(); }

  [[noreturn]] void give_up(const std::string& reason) const {
    std::fprintf(stderr, "frostpipe: rank %d: %s; ending this rank\n", self.rank, reason.c_str());
    _exit(1);
  }

  std::string host() const {
    return self.store_is_external ? "the rendezvous store" : "rank 0, which hosts the rendezvous store,";
  }

  /// Returns false when the heartbeat should end.
  bool sleep(std::chrono::milliseconds duration) {
    std::unique_lock lock(mutex);
    return !wake.wait_for(lock, duration, [&] { return stopping; });
  }

  void report(c10d::TCPStore& store, const std::string& status) const {
    store.set(heartbeat_key(self, self.rank), std::vector<std::uint8_t>(status.begin(), status.end()));
  }

  void look(c10d::TCPStore& store, bool was_held_up) {
    for (int rank = 0; rank < self.world_size; ++rank) {
      if (rank == self.rank) continue;
      const bool has_reported = store.check({heartbeat_key(self, rank)});
      const std::string status = has_reported ? store.get_to_str(heartbeat_key(self, rank)) : "";
      const std::lock_guard lock(watching);
      if (was_held_up || status != seen[rank].status) seen[rank] = {status};
    }
    const std::lock_guard lock(watching);
    looked = Clock::now();
  }

  bool is_silent(int rank, std::chrono::seconds limit) const {
    const std::string& status = seen[rank].status;
    return !status.empty() && status != kDone && status != kFailed && looked - seen[rank].at > limit;
  }

  void judge(c10d::TCPStore& store) {
    const std::lock_guard lock(watching);
    if (ends_process) return name_a_silent_rank();
    if (!round || round->is_lost) return;
    const bool has_lost = std::any_of(round->ranks.begin(), round->ranks.end(), [&](int rank) {
      return seen[rank].status == kFailed || is_silent(rank, std::chrono::seconds(kSilenceLimitSeconds));
    });
    if (has_lost) store.set(round->alarm, {});
    if (!has_lost && !store.check({round->alarm})) return;
    round->is_lost = true;
    lost.notify_all();
  }

  void close_when_lost() {
    std::unique_lock lock(watching);
    lost.wait(lock, [&] { return !round || round->is_lost; });
    if (!round) return;
    const std::function<void()> on_loss = std::move(round->on_loss);
    round.reset();
    lock.unlock();
    giving_up_since = now();
    try {
      on_loss();
    } catch (const std::exception& error) {
      give_up(std::string("connections to other ranks cannot be given up: ") + error.what());
    }
    giving_up_since = 0;
  }

  void begin_round(Round begun) {
    end_round();
    const std::lock_guard lock(watching);
    ends_process = false;
    closer = std::thread([this] { close_when_lost(); });
    round = std::move(begun);
  }

  void end_round() {
    std::thread ended;
    {
      const std::lock_guard lock(watching);
      round.reset();
      ended = std::move(closer);
    }
    lost.notify_all();
    if (ended.joinable()) ended.join();
  }

  void name_a_silent_rank() const {
    const std::chrono::seconds limit(peer_was_lost ? kSilenceAfterLossSeconds : kSilenceLimitSeconds);
    for (int rank = 0; rank < self.world_size; ++rank) {
      if (rank != self.rank && is_silent(rank, limit))
        give_up(
            fmt::format("rank {} has sent no heartbeat for {} s: it is dead, stopped or stuck", rank, limit.count()));
    }
  }

  void report() {
    try {
      // The store was reachable before: if it now refuses connections it is gone, and at the end of a run nobody should
      // wait for it.
      const auto store = connect_store(self, /*may_host=*/false, {.refused = std::chrono::seconds(1)});
      for (long beat = 0;; ++beat) {
        const Clock::time_point began = Clock::now();
        if (beat > 0 && !sleep(std::chrono::seconds(1))) return report(*store, last_status);
        const bool was_held_up = Clock::now() - began > std::chrono::seconds(3);
        report(*store, std::to_string(beat));
        look(*store, was_held_up);
        judge(*store);
        last_round = now();
      }
    } catch (const std::exception& error) {
      // At the end of a run rank 0 may leave first.
      if (!sleep(kTimeToFail) || is_over) return;
      const std::string text = error.what();
      give_up(host() + " is gone: " + text.substr(0, text.find('\n')));
    }
  }

  /// The store's client may wait for an answer forever; this thread bounds that wait.
  void guard_against_a_silent_store() {
    Clock::time_point before = Clock::now();
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, std::chrono::seconds(1), [&] { return has_reported; })) {
      if (Clock::now() - before > std::chrono::seconds(3)) last_round = now();  // this process itself was held up
      before = Clock::now();
      const Clock::rep since = giving_up_since;
      if (since != 0 && Clock::duration(now() - since) > std::chrono::seconds(kStopLimitSeconds))
        give_up(fmt::format("connections to other ranks are not given up within {} s", kStopLimitSeconds));
      if (Clock::duration(now() - last_round) <= std::chrono::seconds(kSilenceLimitSeconds)) continue;
      if (!is_over)
        give_up(fmt::format("{} has not answered for {} s: it is stopped or stuck", host(), kSilenceLimitSeconds));
      if (stopping) {  // the reporter would wait for the store forever
        std::fflush(nullptr);
        _exit(0);
      }
    }
  }
};

Heartbeat::Heartbeat(const RankEnvironment& self) : state_(std::make_unique<State>()) {
  state_->self = self;
  state_->seen.resize(self.world_size);
  someone_watches = true;
  state_->reporter = std::thread([state = state_.get()] {
    state->report();
    const std::lock_guard lock(state->mutex);
    state->has_reported = true;
    state->wake.notify_all();
  });
  state_->guard = std::thread([state = state_.get()] { state->guard_against_a_silent_store(); });
}

Heartbeat::~Heartbeat() = default;

void Heartbeat::set_last_status(const std::string& status) {
  const std::lock_guard lock(state_->mutex);
  state_->last_status = status;
}

void Heartbeat::finish() {
  set_last_status(kDone);
  state_->is_over = true;
}

void Heartbeat::watch_round(const std::string& alarm, std::vector<int> ranks, std::function<void()> on_loss) {
  state_->begin_round({alarm, std::move(ranks), std::move(on_loss)});
  someone_watches = false;
}

void Heartbeat::end_round() { state_->end_round(); }

std::vector<Pulse> Heartbeat::pulses() const {
  const std::lock_guard lock(state_->watching);
  std::vector<Pulse> pulses;
  for (const State::Seen& seen : state_->seen)
    pulses.push_back({seen.status, std::chrono::duration_cast<std::chrono::milliseconds>(state_->looked - seen.at)});
  return pulses;
}

void wait_for_failed_peer() {
  peer_was_lost = true;
  if (someone_watches) std::this_thread::sleep_for(std::chrono::seconds(kSilenceAfterLossSeconds + 2));
}

}  // namespace frostpipe
