#include "executor/elastic/rendezvous.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/system_reason.h"

namespace frostpipe {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// Sends a socket to a rank. Gives up after 5 s, since a rank that reads nothing is stuck, which the launcher notices
/// later.
void hand_over(RankProcess& process, int peer_rank, const Descriptor& socket) {
  for (const auto until = Clock::now() + 5s; !process.channel.send(messages::peer(peer_rank), socket.number()) &&
                                             !process.channel.closed() && Clock::now() < until;) {
    std::this_thread::sleep_for(1ms);
  }
}

/// Makes the socket pairs. A rank that dies closes its ends, also those that it had not received yet.
void connect_ranks(std::vector<RankProcess>& processes) {
  for (RankProcess& one : processes) {
    for (RankProcess& other : processes) {
      if (one.rank < 0 || other.rank <= one.rank) continue;
      std::array<int, 2> ends{};
      if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw RuntimeFailure(fmt::format("connecting ranks {} and {}: {}", one.rank, other.rank, system_reason(errno)));
      }
      const Descriptor to_other(ends[0]), to_one(ends[1]);
      hand_over(one, other.rank, to_other);
      hand_over(other, one.rank, to_one);
    }
  }
}

}  // namespace

std::string assign_ranks(std::vector<RankProcess>& processes) {
  std::vector<int> free_logical_ranks;
  for (const RankProcess& process : processes) {
    if (process.rank >= 0 && !process.running) free_logical_ranks.push_back(process.logical_rank);
  }
  std::erase_if(processes, [](const RankProcess& process) { return !process.running; });
  const auto wanted = free_logical_ranks.size();
  for (RankProcess& process : processes) {
    if (process.rank >= 0 || free_logical_ranks.empty()) continue;
    process.logical_rank = free_logical_ranks.front();
    free_logical_ranks.erase(free_logical_ranks.begin());
  }
  std::vector<RankProcess*> ranks;
  for (RankProcess& process : processes) {
    if (process.logical_rank >= 0) ranks.push_back(&process);
  }
  if (ranks.empty()) return "";
  std::sort(ranks.begin(), ranks.end(),
            [](const RankProcess* a, const RankProcess* b) { return a->logical_rank < b->logical_rank; });
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank]->rank = static_cast<int>(rank);
  const auto replaced = wanted - free_logical_ranks.size();
  std::string sentence = replaced == 0   ? ""
                         : replaced == 1 ? "a spare takes the place"
                                         : fmt::format("{} spares take the places", replaced);
  if (replaced == 0 || !free_logical_ranks.empty())
    sentence += fmt::format("{}{} rank{} go{} on", sentence.empty() ? "" : ", ", ranks.size(),
                            ranks.size() == 1 ? "" : "s", ranks.size() == 1 ? "es" : "");
  return sentence;
}

void announce(std::vector<RankProcess>& processes, RendezvousInfo info) {
  for (const RankProcess& process : processes) {
    if (process.rank < 0) continue;
    info.logical_ranks.resize(std::max<std::size_t>(info.logical_ranks.size(), process.rank + 1));
    info.logical_ranks[process.rank] = process.logical_rank;
  }
  info.self.world_size = static_cast<int>(info.logical_ranks.size());
  connect_ranks(processes);
  for (RankProcess& process : processes) {
    process.stopped = false;
    info.self.rank = process.rank;
    if (process.rank >= 0) process.channel.send(messages::start_round(info));
  }
}

}  // namespace frostpipe
