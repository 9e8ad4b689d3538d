// Simulates the same 1F1B pipeline in SimGrid and in our simulator, in turns. In SimGrid every rank is an actor, and
// every neighbouring pair has a link per direction (latency, then bytes over bandwidth). Prints both makespans and the
// medians of both wall times.
//
//     frostpipe_simgrid_twin [RANKS MICRO_BATCHES]
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <simgrid/s4u.hpp>
#include <vector>

#include "simulator/simulate.h"

namespace {

namespace sg = simgrid::s4u;
using namespace frostpipe;

constexpr double kForward = 1e-3, kBackward = 2e-3, kLatency = 20e-6, kBytes = 1e6, kBandwidth = 20e9;
constexpr int kRepetitions = 5;

struct Result {
  double makespan = 0, wall_seconds = 0;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Result run_here(int ranks, int micro_batches) {
  const auto begin = std::chrono::steady_clock::now();
  const Schedule schedule = lower(one_f_one_b({.pipeline_parallel_size = ranks, .num_micro_batches = micro_batches}));
  const UniformCostModel costs({.forward_ns = 1'000'000,
                                .input_gradient_ns = 1'000'000,
                                .weight_gradient_ns = 1'000'000,
                                .latency_ns = 20'000,
                                .occupancy_ns = 50'000});
  const Timing timing = simulate_timing(schedule, {.pipeline_parallel_size = ranks}, costs, 1);
  return {1e-9 * static_cast<double>(timing.iteration_end_ns.front()), seconds_since(begin)};
}

std::string mailbox(bool forward, int to) { return (forward ? "f" : "b") + std::to_string(to); }

void rank_actor(int r, int ranks, int micro_batches) {
  static int token = 0;
  // A mailbox with a receiver takes messages at once, before they are asked for.
  if (r > 0) sg::Mailbox::by_name(mailbox(true, r))->set_receiver(sg::Actor::self());
  if (r + 1 < ranks) sg::Mailbox::by_name(mailbox(false, r))->set_receiver(sg::Actor::self());
  const auto forward = [&] {
    if (r > 0) sg::Mailbox::by_name(mailbox(true, r))->get<int>();
    sg::this_actor::sleep_for(kForward);
    if (r + 1 < ranks)
      sg::Mailbox::by_name(mailbox(true, r + 1))->put_init(&token, static_cast<std::uint64_t>(kBytes))->detach();
  };
  const auto backward = [&] {
    if (r + 1 < ranks) sg::Mailbox::by_name(mailbox(false, r))->get<int>();
    sg::this_actor::sleep_for(kBackward);
    if (r > 0)
      sg::Mailbox::by_name(mailbox(false, r - 1))->put_init(&token, static_cast<std::uint64_t>(kBytes))->detach();
  };
  const int ahead = std::min(ranks - 1 - r, micro_batches);
  for (int i = 0; i < micro_batches; ++i) {
    forward();
    if (i >= ahead) backward();
  }
  for (int i = 0; i < ahead; ++i) backward();
}

Result run_simgrid(int ranks, int micro_batches) {
  const auto begin = std::chrono::steady_clock::now();
  int argc = 1;
  char name[] = "twin";
  char* argv[] = {name, nullptr};
  sg::Engine engine(&argc, argv);
  // Bandwidth and latency are used as given: there is no TCP window and no share for the reverse direction.
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("network/TCP-gamma:0");
  sg::Engine::set_config("network/crosstraffic:0");
  sg::NetZone* const zone = sg::create_full_zone("cluster");
  std::vector<sg::Host*> hosts;
  for (int r = 0; r < ranks; ++r) hosts.push_back(zone->create_host("rank" + std::to_string(r), 1e9));
  for (int r = 0; r + 1 < ranks; ++r) {
    for (const auto& [from, to] : {std::pair{r, r + 1}, std::pair{r + 1, r}}) {
      const sg::Link* const link =
          zone->create_link(std::to_string(from) + "to" + std::to_string(to), kBandwidth)->set_latency(kLatency);
      zone->add_route(hosts[from]->get_netpoint(), hosts[to]->get_netpoint(), nullptr, nullptr, {sg::LinkInRoute(link)},
                      false);
    }
  }
  zone->seal();
  for (int r = 0; r < ranks; ++r)
    sg::Actor::create("rank" + std::to_string(r), hosts[r], [=] { rank_actor(r, ranks, micro_batches); });
  engine.run();
  return {sg::Engine::get_clock(), seconds_since(begin)};
}

/// Calls `run` in a child process, since SimGrid allows one engine per process.
Result in_child(Result (*run)(int, int), int ranks, int micro_batches) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    const Result result = run(ranks, micro_batches);
    const bool written = write(ends[1], &result, sizeof result) == sizeof result;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Result result;
  const bool read_all = read(ends[0], &result, sizeof result) == sizeof result;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!read_all) std::exit((std::fputs("a run failed\n", stderr), 1));
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 2 ? std::atoi(argv[1]) : 64, micro_batches = argc > 2 ? std::atoi(argv[2]) : 512;
  if (ranks < 1 || micro_batches < 1) return std::fputs("frostpipe_simgrid_twin [RANKS MICRO_BATCHES]\n", stderr), 2;
  std::vector<double> here, there;
  Result ours, theirs;
  for (int i = 0; i < kRepetitions; ++i) {
    ours = in_child(run_here, ranks, micro_batches);
    theirs = in_child(run_simgrid, ranks, micro_batches);
    here.push_back(ours.wall_seconds);
    there.push_back(theirs.wall_seconds);
  }
  std::sort(here.begin(), here.end());
  std::sort(there.begin(), there.end());
  const double difference = ours.makespan / theirs.makespan - 1;
  std::printf(
      "1F1B, %d ranks, %d micro-batches\nmakespan   frostpipe %.6f s, SimGrid %.6f s (%+.3f %%)\nwall time  frostpipe "
      "%.2f ms, SimGrid %.1f ms (%.0f times)\n",
      ranks, micro_batches, ours.makespan, theirs.makespan, 100 * difference, 1e3 * here[kRepetitions / 2],
      1e3 * there[kRepetitions / 2], there[kRepetitions / 2] / here[kRepetitions / 2]);
  return difference > -0.01 && difference < 0.01 ? 0 : 1;
}
