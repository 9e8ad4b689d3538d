#include "executor/job/launch.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "executor/job/control_channel.h"
#include "executor/job/membership.h"
#include "profiles/error.h"
#include "profiles/system_reason.h"

namespace frostpipe {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

Nanoseconds nanoseconds_of(Clock::time_point moment) { return moment.time_since_epoch() / std::chrono::nanoseconds(1); }

/// A process may take so long until its first heartbeat: it loads its libraries.
constexpr int kStartLimitSeconds = 60;

/// Ranks that were asked to end may take so long beyond their longest step, to write a checkpoint.
constexpr int kEndLimitSeconds = 120;

volatile std::sig_atomic_t received_signal = 0, num_signals = 0;
void remember_signal(int signal) {
  received_signal = signal;
  num_signals = num_signals + 1;
}

/// A process of the job: a rank of the running forming, or a spare.
struct Member {
  pid_t pid;
  ControlChannel channel;
  int rank = -1;  // -1 = a spare
  int seat = -1;
  bool running = true;
  int status = 0;       // waitpid's, once it no longer runs
  bool silent = false;  // killed because it was
  bool stuck = false;   // killed because it did not stop
  bool named = false;   // in the cause of the forming that is under way
  bool has_beaten = false;
  bool stopped = false;                        // has given up its connections, to form anew
  bool done = false;                           // has ended its work
  std::optional<messages::Progress> progress;  // of this forming, once it was asked to end
  Clock::time_point last_beat = Clock::now();

  bool lost() const { return !running && (silent || WIFSIGNALED(status)); }
  bool failed() const { return !running && !lost() && status != 0; }
  bool lost_its_peer() const { return failed() && WEXITSTATUS(status) == kPeerLostExitCode; }
};

std::string how_it_ended(const Member& member) {
  if (member.silent)
    return fmt::format("has sent no heartbeat for {} s: it is stopped or stuck",
                       member.has_beaten ? kSilenceLimitSeconds : kStartLimitSeconds);
  if (WIFSIGNALED(member.status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(member.status), strsignal(WTERMSIG(member.status)));
  if (WEXITSTATUS(member.status) == 127) return "could not be started";
  if (member.lost_its_peer()) return "lost the connection to another rank";
  return fmt::format("ended with exit code {}", WEXITSTATUS(member.status));
}

std::string name_of(const Member& member) {
  return member.rank < 0 ? fmt::format("a spare (process {})", member.pid)
                         : fmt::format("rank {} (process {})", member.rank, member.pid);
}

Member start_member(const LaunchOptions& options, int id) {
  auto [ours, theirs] = ControlChannel::make_pair();
  // Everything that allocates happens before fork: other threads may be running.
  std::map<std::string, std::string> variables{{"RANK", std::to_string(id)},
                                               {"LOCAL_RANK", std::to_string(id)},
                                               {"WORLD_SIZE", std::to_string(options.num_ranks)},
                                               {"FROSTPIPE_LAUNCHER", std::to_string(getpid())},
                                               {kControlVariable, std::to_string(theirs.descriptor())}};
  if (options.max_restarts > 0) variables[kMayReFormVariable] = "1";
  std::vector<std::string> environment;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    if (!variables.contains(text.substr(0, text.find('=')))) environment.push_back(text);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  std::vector<char*> arguments, environment_pointers;
  for (const std::string& text : options.command) arguments.push_back(const_cast<char*>(text.c_str()));
  for (const std::string& text : environment) environment_pointers.push_back(const_cast<char*>(text.c_str()));
  arguments.push_back(nullptr);
  environment_pointers.push_back(nullptr);

  const pid_t launcher = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw RuntimeFailure(fmt::format("starting rank {}: {}", id, system_reason(errno)));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Ctrl-C, or whoever ends a whole group of processes, asks the launcher: it says what the ranks do.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    if (getppid() != launcher) _exit(1);  // the launcher died before the line above
    execve(arguments[0], arguments.data(), environment_pointers.data());
    _exit(127);
  }
  return Member{.pid = pid, .channel = std::move(ours)};
}

class Launcher {
 public:
  explicit Launcher(const LaunchOptions& options) : options_(options) {}

  int run() {
    received_signal = 0;
    num_signals = 0;
    std::signal(SIGINT, remember_signal);
    std::signal(SIGTERM, remember_signal);
    std::signal(SIGPIPE, SIG_IGN);  // whoever reads what is printed may leave; the job goes on
    for (int id = 0; id < options_.num_ranks + options_.num_spares; ++id) {
      members_.push_back(start_member(options_, id));
      if (id < options_.num_ranks) members_.back().rank = members_.back().seat = id;
    }
    announce();
    for (;;) {
      look();
      if (received_signal) {
        if (const std::optional<int> code = obey_signal()) return *code;
      }
      if (const std::optional<int> code = judge()) {
        look();  // what they have said last
        return *code == 0 && was_interrupted_ ? 128 + received_signal : *code;
      }
      std::this_thread::sleep_for(20ms);
    }
  }

 private:
  void reap() {
    for (Member& member : members_) {
      if (member.running && waitpid(member.pid, &member.status, WNOHANG) == member.pid) member.running = false;
    }
  }

  bool any(bool (*holds)(const Member&)) const { return std::any_of(members_.begin(), members_.end(), holds); }
  static bool is_running(const Member& member) { return member.running; }

  /// Ends every process that still runs.
  void end_all() {
    for (const Member& member : members_) {
      if (member.running) kill(member.pid, SIGKILL);
    }
    for (const auto until = Clock::now() + 1s; any(is_running) && Clock::now() < until;
         std::this_thread::sleep_for(10ms))
      reap();
  }

  /// To what SIGINT or SIGTERM asks for: the exit code if it is the end. Ranks that can end with a checkpoint do so,
  /// all before the same step: each says how far it is and then waits to hear how far the furthest is. Until then, and
  /// if one is lost meanwhile, the job goes on as ever.
  std::optional<int> obey_signal() {
    if (!asked_to_end_) {
      asked_to_end_ = Clock::now();
      if (options_.ends_with_checkpoint && cause_.empty()) ask_to_end();  // else once the job has formed anew
    }
    // Some send a signal to a process and to its group at once.
    if (Clock::now() < *asked_to_end_ + 500ms) num_signals = 1;
    int furthest = 0;
    bool all_have_answered = true;
    Clock::duration limit = std::chrono::seconds(kEndLimitSeconds);
    for (const Member& member : members_) {
      if (member.rank < 0) continue;
      if (!member.progress) {
        all_have_answered = false;
        continue;
      }
      furthest = std::max(furthest, member.progress->num_steps);
      limit = std::max<Clock::duration>(
          limit, std::chrono::seconds(kEndLimitSeconds) + std::chrono::nanoseconds(member.progress->longest_step_ns));
    }
    const bool has_done_nothing = all_have_answered && furthest == 0 && generation_ == 0;
    if (!options_.ends_with_checkpoint || num_signals > 1 || has_done_nothing ||
        Clock::now() > *asked_to_end_ + limit) {
      end_all();
      std::fprintf(stderr, "frostpipe: stopped by signal %d%s\n", static_cast<int>(received_signal),
                   has_done_nothing ? " before the first step" : "");
      return 128 + received_signal;
    }
    if (all_have_answered && cause_.empty() && !std::exchange(end_is_settled_, true)) {
      std::fprintf(stderr, "frostpipe: signal %d (%s): ends with a checkpoint; once more: at once\n",
                   static_cast<int>(received_signal), strsignal(received_signal));
      tell_ranks(messages::end_after(furthest));
    }
    return std::nullopt;
  }

  void tell_ranks(const std::string& text) {
    for (Member& member : members_) {
      if (member.rank >= 0) member.channel.send(text);
    }
  }

  void ask_to_end() {
    end_is_settled_ = false;
    for (Member& member : members_) member.progress.reset();
    tell_ranks(messages::kInterrupt);
  }

  int fail(const std::string& sentence, int code) {
    end_all();
    std::fprintf(stderr, "frostpipe: %s; ended the other ranks\n", sentence.c_str());
    return code;
  }

  int fail(const Member& member) {
    const bool bad_usage = member.failed() && WEXITSTATUS(member.status) == 2;
    return fail(fmt::format("{} {}", name_of(member), how_it_ended(member)), bad_usage ? 2 : 1);
  }

  /// What has happened since the last look.
  void look() {
    if (Clock::now() > last_look_ + 3s) {
      // This process itself was held up (Ctrl-Z, a busy machine): the others may have been too.
      for (Member& member : members_) member.last_beat = Clock::now();
    }
    look_before_ = std::exchange(last_look_, Clock::now());
    for (Member& member : members_) {
      while (const std::optional<ControlText> said = member.channel.receive(0ms)) {
        member.last_beat = Clock::now();
        member.has_beaten = true;
        if (said->text == messages::kDone) member.done = true;
        if (said->text == messages::kInterrupted) was_interrupted_ = true;
        if (const auto progress = messages::parse_progress(said->text)) member.progress = progress;
        if (messages::parse_stopped(said->text) == generation_) member.stopped = true;
      }
      const std::chrono::seconds limit(member.has_beaten ? kSilenceLimitSeconds : kStartLimitSeconds);
      // Also one that has ended its work: it may be stopped on its way out.
      if (member.running && !member.silent && Clock::now() - member.last_beat > limit) {
        member.silent = true;
        kill(member.pid, SIGKILL);
      }
    }
    reap();
  }

  /// The exit code, once there is one.
  std::optional<int> judge() {
    forget_lost_spares();
    if (const Member* const culprit = failed_rank()) return fail(*culprit);
    if (Member* const lost = lost_member()) {
      if (cause_.empty() && num_restarts_ == options_.max_restarts) return fail(*lost);
      const auto finished = [](const Member& member) {
        return member.rank >= 0 && (member.done || (!member.running && member.status == 0));
      };
      if (std::any_of(members_.begin(), members_.end(), finished))
        return fail(fmt::format("{} {} while the others were ending", name_of(*lost), how_it_ended(*lost)), 1);
      if (cause_.empty()) begin_to_re_form(*lost);
    }
    const auto has_stopped = [](const Member& member) { return member.stopped; };
    if (cause_.empty() && std::any_of(members_.begin(), members_.end(), has_stopped) && !first_stop_)
      first_stop_ = Clock::now();
    if (cause_.empty() && first_stop_ && Clock::now() - *first_stop_ > std::chrono::seconds(kSilenceLimitSeconds + 2)) {
      if (num_restarts_ == options_.max_restarts)
        return fail("connections between ranks broke though all ranks are alive", 1);
      begin_to_re_form();
    }
    if (!cause_.empty()) return wait_for_survivors();
    const auto is_rank = [](const Member& member) { return member.rank >= 0 && member.running; };
    if (std::any_of(members_.begin(), members_.end(), is_rank)) return std::nullopt;
    for (Member& spare : members_) spare.channel.send(messages::kEnd);
    for (const auto until = Clock::now() + 5s; any(is_running) && Clock::now() < until;
         std::this_thread::sleep_for(10ms))
      reap();
    end_all();
    return 0;
  }

  /// A spare that is gone is no reason to do anything.
  void forget_lost_spares() {
    std::erase_if(members_, [](const Member& member) {
      if (member.rank >= 0 || member.running) return false;
      std::fprintf(stderr, "frostpipe: %s %s; going on without it\n", name_of(member).c_str(),
                   how_it_ended(member).c_str());
      return true;
    });
  }

  /// The first that is lost; null if none is.
  Member* lost_member() {
    const auto found =
        std::find_if(members_.begin(), members_.end(), [](const Member& member) { return member.lost(); });
    return found == members_.end() ? nullptr : &*found;
  }

  /// The rank that failed by itself, if one has; else one that lost its peer; null if all is well so far.
  const Member* failed_rank() {
    const auto find = [&]() -> const Member* {
      const Member* found = nullptr;
      for (const Member& member : members_) {
        if (member.failed() && (!found || found->lost_its_peer())) found = &member;
      }
      return found && found->lost_its_peer() && lost_member() ? lost_member() : found;
    };
    // The rank at fault may still be on its way out, or stopped: its peers see the broken connection first.
    const auto until = Clock::now() + 1s;
    const Member* culprit = find();
    for (; culprit && culprit->lost_its_peer() && any(is_running) && Clock::now() < until; culprit = find()) {
      std::this_thread::sleep_for(10ms);
      reap();
    }
    return culprit;
  }

  void begin_to_re_form(Member& lost) {
    lost.named = true;
    cause_ = fmt::format("{} {}", name_of(lost), how_it_ended(lost));
    lost_at_ = lost.silent ? lost.last_beat : look_before_;
    begin_to_re_form();
  }

  void begin_to_re_form() {
    if (cause_.empty()) {
      cause_ = "connections between ranks broke";
      lost_at_ = *first_stop_;
    }
    noticed_at_ = Clock::now();
    ++num_restarts_;
    // Whoever waits to hear where all end finds out that somebody is lost.
    if (asked_to_end_) tell_ranks(messages::end_after(std::numeric_limits<int>::max()));
  }

  /// Forms the job anew once all that are left have stopped.
  std::optional<int> wait_for_survivors() {
    const bool too_late = Clock::now() - noticed_at_ > std::chrono::seconds(kStopLimitSeconds);
    bool all_stopped = true;
    for (Member& member : members_) {
      if (member.rank < 0 || !member.running || member.stopped) continue;
      if (too_late && !member.stuck) {
        member.stuck = true;
        kill(member.pid, SIGKILL);
        cause_ += fmt::format(", {} did not stop within {} s", name_of(member), kStopLimitSeconds);
      }
      all_stopped = false;
    }
    return all_stopped ? re_form() : std::nullopt;
  }

  std::optional<int> re_form() {
    std::vector<int> free_seats;
    for (const Member& member : members_) {
      if (member.rank < 0 || member.running) continue;
      free_seats.push_back(member.seat);
      if (!member.named && !member.stuck) cause_ += fmt::format(", {} {}", name_of(member), how_it_ended(member));
    }
    std::erase_if(members_, [](const Member& member) { return !member.running; });
    const auto wanted = free_seats.size();
    for (Member& member : members_) {
      if (member.rank >= 0 || free_seats.empty()) continue;
      member.seat = free_seats.front();
      free_seats.erase(free_seats.begin());
    }
    std::vector<Member*> ranks;
    for (Member& member : members_) {
      if (member.seat >= 0) ranks.push_back(&member);
    }
    if (ranks.empty()) return fail(cause_ + "; no rank is left", 1);
    std::sort(ranks.begin(), ranks.end(), [](const Member* a, const Member* b) { return a->seat < b->seat; });
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank]->rank = static_cast<int>(rank);
    const auto taken = wanted - free_seats.size();
    std::string sentence = taken == 0   ? ""
                           : taken == 1 ? "a spare takes the place"
                                        : fmt::format("{} spares take the places", taken);
    if (taken == 0 || !free_seats.empty())
      sentence += fmt::format("{}{} rank{} go{} on", sentence.empty() ? "" : ", ", ranks.size(),
                              ranks.size() == 1 ? "" : "s", ranks.size() == 1 ? "es" : "");
    std::fprintf(stderr, "frostpipe: %s; %s (restart %d of %d)\n", cause_.c_str(), sentence.c_str(), num_restarts_,
                 options_.max_restarts);
    ++generation_;
    announce();
    cause_.clear();
    first_stop_.reset();
    return std::nullopt;
  }

  /// A pair of sockets for every two ranks: each gets its end, and nobody else has one. A rank that dies closes its
  /// ends, also those that it had not taken yet.
  void connect_ranks() {
    for (Member& one : members_) {
      for (Member& other : members_) {
        if (one.rank < 0 || other.rank <= one.rank) continue;
        std::array<int, 2> ends{};
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
          throw RuntimeFailure(
              fmt::format("connecting ranks {} and {}: {}", one.rank, other.rank, system_reason(errno)));
        }
        const OwnedDescriptor to_other(ends[0]), to_one(ends[1]);
        hand_over(one, other.rank, to_other);
        hand_over(other, one.rank, to_one);
      }
    }
  }

  /// A rank that reads nothing for so long is stuck, and is found to be so later.
  static void hand_over(Member& member, int peer_rank, const OwnedDescriptor& socket) {
    for (const auto until = Clock::now() + 5s; !member.channel.send(messages::peer(peer_rank), socket.number()) &&
                                               !member.channel.closed() && Clock::now() < until;) {
      std::this_thread::sleep_for(1ms);
    }
  }

  void announce() {
    Formation formation{.generation = generation_,
                        .cause = cause_,
                        .lost_ns = nanoseconds_of(lost_at_),
                        .noticed_ns = nanoseconds_of(noticed_at_)};
    for (const Member& member : members_) {
      if (member.rank < 0) continue;
      formation.seats.resize(std::max<std::size_t>(formation.seats.size(), member.rank + 1));
      formation.seats[member.rank] = member.seat;
    }
    formation.self.world_size = static_cast<int>(formation.seats.size());
    connect_ranks();
    for (Member& member : members_) {
      member.stopped = false;
      formation.self.rank = member.rank;
      if (member.rank >= 0) member.channel.send(messages::form(formation));
    }
    if (asked_to_end_) ask_to_end();
  }

  const LaunchOptions& options_;
  std::vector<Member> members_;
  int generation_ = 0, num_restarts_ = 0;
  std::string cause_;  // why the job is being formed anew; empty while it is not
  Clock::time_point lost_at_{}, noticed_at_{};
  std::optional<Clock::time_point> first_stop_;    // of a survivor, in this forming
  std::optional<Clock::time_point> asked_to_end_;  // by a signal
  bool end_is_settled_ = false;                    // the ranks of this forming know before which step
  bool was_interrupted_ = false;                   // they have ended there
  Clock::time_point last_look_ = Clock::now(), look_before_ = Clock::now();
};

}  // namespace

int launch_local_ranks(const LaunchOptions& options) { return Launcher(options).run(); }

}  // namespace frostpipe
