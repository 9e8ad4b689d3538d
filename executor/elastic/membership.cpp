#include "executor/elastic/membership.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/process/control_channel.h"

namespace frostpipe {
namespace {

using namespace std::chrono_literals;

/// Reads a variable that frostpipe's launcher sets.
int number_of_member(const char* name) { return number_of(environment_variables(), name, "by frostpipe's launcher"); }

}  // namespace

namespace messages {

std::string stopped(int generation) { return "stopped " + std::to_string(generation); }

int parse_stopped(const std::string& text) { return text.starts_with("stopped ") ? std::atoi(text.c_str() + 8) : -1; }

std::string begun(const std::string& from) { return "begun " + from; }

std::optional<std::string> parse_begun(const std::string& text) {
  return text.starts_with("begun ") ? std::optional(text.substr(6)) : std::nullopt;
}

std::string peer(int rank) { return "peer " + std::to_string(rank); }

int parse_peer(const std::string& text) { return text.starts_with("peer ") ? std::atoi(text.c_str() + 5) : -1; }

std::string progress(const Progress& progress) {
  return "progress " + std::to_string(progress.num_steps) + " " + std::to_string(progress.longest_step_ns);
}

std::optional<Progress> parse_progress(const std::string& text) {
  if (!text.starts_with("progress ")) return std::nullopt;
  char* rest = nullptr;
  const long num_steps = std::strtol(text.c_str() + 9, &rest, 10);
  return Progress{static_cast<int>(num_steps), std::strtoll(rest, nullptr, 10)};
}

std::string end_after(int num_steps) { return "end after " + std::to_string(num_steps); }

std::optional<int> parse_end_after(const std::string& text) {
  if (!text.starts_with("end after ")) return std::nullopt;
  return std::atoi(text.c_str() + 10);
}

std::string start_round(const RendezvousInfo& info) {
  nlohmann::json json{
      {"generation", info.generation},       {"rank", info.self.rank}, {"world_size", info.self.world_size},
      {"logical_ranks", info.logical_ranks}, {"cause", info.cause},    {"lost_ns", info.lost_ns},
      {"noticed_ns", info.noticed_ns}};
  if (info.begun_from) json["begun_from"] = *info.begun_from;
  return json.dump(-1, ' ', /*ensure_ascii=*/false,
                   nlohmann::json::error_handler_t::replace);  // a path may be no UTF-8
}

std::optional<RendezvousInfo> parse_start_round(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  RendezvousInfo info;
  info.generation = json.at("generation");
  info.self = {.rank = json.at("rank"), .world_size = json.at("world_size"), .watched_by_launcher = true};
  info.logical_ranks = json.at("logical_ranks").get<std::vector<int>>();
  info.cause = json.at("cause");
  if (json.contains("begun_from")) info.begun_from = json["begun_from"].get<std::string>();
  info.lost_ns = json.at("lost_ns");
  info.noticed_ns = json.at("noticed_ns");
  return info;
}

}  // namespace messages

struct Membership::State {
  std::optional<RankEnvironment> fixed;  // set under another launcher, which gives one round
  int max_restarts = 0;                  // under another launcher
  std::optional<ControlChannel> channel;
  bool may_rendezvous_again = false;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<RendezvousInfo> infos;
  std::map<int, Descriptor> sockets;  // of the next round, by rank
  bool ended = false, leaving = false;
  messages::Progress progress;  // in this round
  std::optional<std::chrono::steady_clock::time_point> step_began;
  bool is_asked_to_end = false;
  std::optional<int> end_after;  // number of steps after which this round ends; comes soon after the request
  std::thread thread;

  void serve() {
    auto next_beat = std::chrono::steady_clock::now();
    for (;;) {
      if (std::chrono::steady_clock::now() >= next_beat) {
        channel->send(messages::kBeat);
        next_beat = std::chrono::steady_clock::now() + 1s;
      }
      std::optional<ControlText> said = channel->receive(50ms);
      const std::lock_guard lock(mutex);
      if (leaving) return;
      if (channel->closed()) _exit(1);  // the launcher is gone, and its ranks end with it
      if (!said) continue;
      if (said->text == messages::kEnd) ended = true;
      if (said->text == messages::kInterrupt) {
        is_asked_to_end = true;
        send_surely(messages::progress(progress));
      }
      if (const auto num_steps = messages::parse_end_after(said->text)) end_after = num_steps;
      if (const int rank = messages::parse_peer(said->text); rank >= 0)
        sockets.insert_or_assign(rank, std::move(said->descriptor));
      if (auto info = messages::parse_start_round(said->text)) add(std::move(*info));
      changed.notify_all();
    }
  }

  void add(RendezvousInfo info) {
    auto by_rank = std::make_shared<std::vector<Descriptor>>(info.self.world_size);
    for (auto& [rank, socket] : sockets) {
      if (rank < info.self.world_size) (*by_rank)[rank] = std::move(socket);
    }
    sockets.clear();
    info.self.peer_sockets = std::move(by_rank);
    infos.push_back(std::move(info));
    progress = {};
    step_began.reset();
    is_asked_to_end = false;
    end_after.reset();
  }

  void send_surely(const std::string& text) {
    while (!channel->closed() && !channel->send(text)) std::this_thread::sleep_for(10ms);
  }
};

Membership::Membership() : state_(std::make_unique<State>()) {}

std::unique_ptr<Membership> Membership::join(const std::string& interface, int max_restarts) {
  std::unique_ptr<Membership> membership(new Membership);
  std::signal(SIGPIPE, SIG_IGN);  // a broken connection is an error where it is used, and must not end the process
  State& state = *membership->state_;
  if (std::getenv(kControlVariable)) {
    state.channel.emplace(number_of_member(kControlVariable));
    state.may_rendezvous_again = std::getenv(kMayRendezvousAgainVariable) != nullptr;
    state.thread = std::thread([&state] { state.serve(); });
    return membership;
  }
  state.fixed = rank_environment();
  if (!state.fixed) return nullptr;
  end_with_torchruns_agent();
  if (!interface.empty()) state.fixed->interface = interface;
  if (!state.fixed->watched_by_agent) state.max_restarts = max_restarts;
  return membership;
}

Membership::~Membership() {
  if (!state_->channel) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->leaving = true;
  }
  if (state_->thread.joinable()) state_->thread.join();  // not joinable if the thread could not be started
  state_->send_surely(messages::kDone);
}

std::optional<RendezvousInfo> Membership::next_round() {
  if (!state_->channel) {
    RendezvousInfo info;
    info.self = *state_->fixed;
    for (int rank = 0; rank < info.self.world_size; ++rank) info.logical_ranks.push_back(rank);
    return info;
  }
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->ended || !state_->infos.empty(); });
  if (state_->infos.empty()) return std::nullopt;
  RendezvousInfo info = std::move(state_->infos.front());
  state_->infos.pop_front();
  info.self.local_rank = number_of_member("LOCAL_RANK");
  return info;
}

const std::optional<RankEnvironment>& Membership::started_by_others() const { return state_->fixed; }

int Membership::max_restarts() const { return state_->max_restarts; }

bool Membership::may_rendezvous_again() const { return state_->may_rendezvous_again; }

void Membership::stop(int generation) { state_->send_surely(messages::stopped(generation)); }

void Membership::begun(const std::string& from) {
  if (state_->channel) state_->send_surely(messages::begun(from));
}

bool Membership::is_to_end() {
  if (!state_->channel) return false;
  const auto now = std::chrono::steady_clock::now();
  std::unique_lock lock(state_->mutex);
  messages::Progress& progress = state_->progress;
  if (state_->step_began)
    progress.longest_step_ns =
        std::max<Nanoseconds>(progress.longest_step_ns, std::chrono::nanoseconds(now - *state_->step_began).count());
  state_->step_began = now;
  // A rank that has reported its progress waits before its next step until it knows the step at which all ranks end.
  state_->changed.wait(lock, [&] { return !state_->is_asked_to_end || state_->end_after; });
  if (state_->end_after && progress.num_steps >= *state_->end_after) return true;
  ++progress.num_steps;
  return false;
}

void Membership::interrupted() {
  if (state_->channel) state_->send_surely(messages::kInterrupted);
}

}  // namespace frostpipe
