#include "executor/heartbeat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

namespace frostpipe {
namespace {
using Clock = std::chrono::steady_clock;
}

std::string heartbeat_key(int rank) { return fmt::format("heartbeat/{}", rank); }

c10::intrusive_ptr<c10d::TCPStore> connect_store(const RankEnvironment& self, bool may_host) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(self.master_port);
  options.isServer = may_host && self.rank == 0 && !self.store_is_external;
  options.waitWorkers = false;
  options.timeout = std::chrono::minutes(5);
  return c10::make_intrusive<c10d::TCPStore>(self.master_address, options);
}

struct Heartbeat::State {
  RankEnvironment self;
  bool watches_others = std::getenv("FROSTPIPE_LAUNCHER") == nullptr;
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  std::thread thread;

  struct Seen {
    std::string value;
    Clock::time_point at = Clock::now();
  };

  [[noreturn]] void give_up(const std::string& reason) const {
    std::fprintf(stderr, "frostpipe: rank %d: %s; ending this rank\n", self.rank, reason.c_str());
    _exit(1);
  }

  void watch(c10d::TCPStore& store, std::vector<Seen>& seen) const {
    for (int rank = 0; rank < self.world_size; ++rank) {
      if (rank == self.rank || !store.check({heartbeat_key(rank)})) continue;
      const std::string value = store.get_to_str(heartbeat_key(rank));
      if (value != seen[rank].value) {
        seen[rank] = {value};
      } else if (value != "done" && Clock::now() - seen[rank].at > std::chrono::seconds(kSilenceLimitSeconds)) {
        give_up(fmt::format("rank {} has sent no heartbeat for {} s: it is stopped or stuck", rank, kSilenceLimitSeconds));
      }
    }
  }

  void run() {
    try {
      const auto store = connect_store(self, /*may_host=*/false);
      store->setTimeout(std::chrono::seconds(kSilenceLimitSeconds));
      std::vector<Seen> seen(self.world_size);
      for (long beat = 0;; ++beat) {
        std::unique_lock lock(mutex);
        const bool stop = wake.wait_for(lock, std::chrono::seconds(beat == 0 ? 0 : 1), [&] { return stopping; });
        lock.unlock();
        const std::string value = stop ? "done" : std::to_string(beat);
        store->set(heartbeat_key(self.rank), std::vector<std::uint8_t>(value.begin(), value.end()));
        if (stop) return;
        if (watches_others) watch(*store, seen);
      }
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex);
      if (stopping) return;
      const std::string text = error.what();
      give_up("lost the rendezvous store (its host ended or is stopped): " + text.substr(0, text.find('\n')));
    }
  }
};

Heartbeat::Heartbeat(const RankEnvironment& self) : state_(std::make_unique<State>()) {
  state_->self = self;
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

Heartbeat::~Heartbeat() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_all();
  state_->thread.join();
}

}  // namespace frostpipe
