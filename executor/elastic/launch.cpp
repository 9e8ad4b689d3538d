#include "executor/elastic/launch.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "executor/elastic/membership.h"
#include "executor/elastic/rank_process.h"
#include "executor/elastic/rendezvous.h"

namespace frostpipe {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

Nanoseconds nanoseconds_of(Clock::time_point moment) { return moment.time_since_epoch() / std::chrono::nanoseconds(1); }

/// Ranks that were asked to end may take this long, in addition to their longest step, to write a checkpoint: enough
/// for 60 GB at 100 MB/s.
constexpr int kEndLimitSeconds = 600;

volatile std::sig_atomic_t received_signal = 0, num_signals = 0;
void remember_signal(int signal) {
  received_signal = signal;
  num_signals = num_signals + 1;
}

class Launcher {
 public:
  explicit Launcher(const LaunchOptions& options) : options_(options) {}

  int run() {
    received_signal = 0;
    num_signals = 0;
    std::signal(SIGINT, remember_signal);
    std::signal(SIGTERM, remember_signal);
    // SIGHUP says that the terminal is closed. Under nohup it is ignored, and stays so.
    if (std::signal(SIGHUP, SIG_IGN) != SIG_IGN) std::signal(SIGHUP, remember_signal);
    std::signal(SIGPIPE, SIG_IGN);  // a closed stdout must not end the job
    for (int id = 0; id < options_.num_ranks + options_.num_spares; ++id) {
      processes_.push_back(start_rank_process(options_, id));
      if (id < options_.num_ranks) processes_.back().rank = processes_.back().logical_rank = id;
    }
    start_round();
    for (;;) {
      look();
      if (received_signal) {
        if (const std::optional<int> code = obey_signal()) return *code;
      }
      if (const std::optional<int> code = judge()) {
        look();  // receive the last messages
        return *code == 0 && was_interrupted_ ? 128 + received_signal : *code;
      }
      std::this_thread::sleep_for(20ms);
    }
  }

 private:
  /// Handles SIGINT, SIGTERM or SIGHUP; returns the exit code if the job ends now. Ranks that can end with a checkpoint
  /// do so before the same step: each reports its progress and then waits for the step at which all end. Until then,
  /// and if a rank is lost meanwhile, the job goes on as usual.
  std::optional<int> obey_signal() {
    if (!asked_to_end_) {
      asked_to_end_ = Clock::now();
      if (options_.ends_with_checkpoint && cause_.empty()) ask_to_end();  // otherwise the next round asks
    }
    // A signal may be sent to a process and to its process group at once.
    if (Clock::now() < *asked_to_end_ + 500ms) num_signals = 1;
    int furthest = 0;
    bool all_have_answered = true;
    Clock::duration limit = std::chrono::seconds(kEndLimitSeconds);
    for (const RankProcess& process : processes_) {
      if (process.rank < 0) continue;
      if (!process.progress) {
        all_have_answered = false;
        continue;
      }
      furthest = std::max(furthest, process.progress->num_steps);
      limit = std::max<Clock::duration>(
          limit, std::chrono::seconds(kEndLimitSeconds) + std::chrono::nanoseconds(process.progress->longest_step_ns));
    }
    const bool has_done_nothing = all_have_answered && furthest == 0 && generation_ == 0;
    if (!options_.ends_with_checkpoint || num_signals > 1 || has_done_nothing ||
        Clock::now() > *asked_to_end_ + limit) {
      end_all(processes_);
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
    for (RankProcess& process : processes_) {
      if (process.rank >= 0) process.channel.send(text);
    }
  }

  void ask_to_end() {
    end_is_settled_ = false;
    for (RankProcess& process : processes_) process.progress.reset();
    tell_ranks(messages::kInterrupt);
  }

  int fail(const std::string& sentence, int code) {
    end_all(processes_);
    std::fprintf(stderr, "frostpipe: %s; ended the other ranks\n", sentence.c_str());
    return code;
  }

  int fail(const RankProcess& process) {
    const bool bad_usage = process.failed() && WEXITSTATUS(process.status) == 2;
    return fail(fmt::format("{} {}", name_of(process), how_it_ended(process)), bad_usage ? 2 : 1);
  }

  /// Updates the state of all processes.
  void look() {
    if (Clock::now() > last_look_ + 3s) {
      // This process itself was held up (Ctrl-Z, a busy machine), and so may the others have been.
      for (RankProcess& process : processes_) process.last_beat = Clock::now();
    }
    look_before_ = std::exchange(last_look_, Clock::now());
    for (RankProcess& process : processes_) {
      while (const std::optional<ControlText> said = process.channel.receive(0ms)) {
        process.last_beat = Clock::now();
        process.has_beaten = true;
        if (said->text == messages::kDone) process.done = true;
        if (said->text == messages::kInterrupted) was_interrupted_ = true;
        if (const auto from = messages::parse_begun(said->text)) begun_from_ = from;
        if (const auto progress = messages::parse_progress(said->text)) process.progress = progress;
        if (messages::parse_stopped(said->text) == generation_) process.stopped = true;
      }
      // This also holds for a process that has finished its work, which may be stopped by a signal before it exits.
      if (process.running && !process.silent && Clock::now() - process.last_beat > process.silence_limit()) {
        process.silent = true;
        kill(process.pid, SIGKILL);
      }
    }
    reap(processes_);
  }

  /// Returns the exit code once the job has ended.
  std::optional<int> judge() {
    forget_lost_spares();
    if (const RankProcess* const failed = failed_rank()) return fail(*failed);
    if (RankProcess* const lost = lost_process()) {
      if (cause_.empty() && num_restarts_ == options_.max_restarts) return fail(*lost);
      const auto finished = [](const RankProcess& process) {
        return process.rank >= 0 && (process.done || (!process.running && process.status == 0));
      };
      if (std::any_of(processes_.begin(), processes_.end(), finished))
        return fail(fmt::format("{} {} while the others were ending", name_of(*lost), how_it_ended(*lost)), 1);
      if (cause_.empty()) begin_restart(*lost);
    }
    const auto has_stopped = [](const RankProcess& process) { return process.stopped; };
    if (cause_.empty() && std::any_of(processes_.begin(), processes_.end(), has_stopped) && !first_stop_)
      first_stop_ = Clock::now();
    if (cause_.empty() && first_stop_ && Clock::now() - *first_stop_ > std::chrono::seconds(kSilenceLimitSeconds + 2)) {
      if (num_restarts_ == options_.max_restarts)
        return fail("connections between ranks broke though all ranks are alive", 1);
      begin_restart();
    }
    if (!cause_.empty()) return wait_for_survivors();
    const auto is_rank = [](const RankProcess& process) { return process.rank >= 0 && process.running; };
    if (std::any_of(processes_.begin(), processes_.end(), is_rank)) return std::nullopt;
    for (RankProcess& spare : processes_) spare.channel.send(messages::kEnd);
    wait_for_end(processes_, 5s);
    end_all(processes_);
    return 0;
  }

  /// Forgets spares that were lost, since their loss has no consequences.
  void forget_lost_spares() {
    std::erase_if(processes_, [](const RankProcess& process) {
      if (process.rank >= 0 || process.running) return false;
      std::fprintf(stderr, "frostpipe: %s %s; going on without it\n", name_of(process).c_str(),
                   how_it_ended(process).c_str());
      return true;
    });
  }

  /// Returns the first process that is lost; null if none is.
  RankProcess* lost_process() {
    const auto found =
        std::find_if(processes_.begin(), processes_.end(), [](const RankProcess& process) { return process.lost(); });
    return found == processes_.end() ? nullptr : &*found;
  }

  /// Returns the rank that failed by itself, if there is one; otherwise one that lost its peer; null if none failed.
  const RankProcess* failed_rank() {
    const auto find = [&]() -> const RankProcess* {
      const RankProcess* found = nullptr;
      for (const RankProcess& process : processes_) {
        if (process.failed() && (!found || found->lost_its_peer())) found = &process;
      }
      return found && found->lost_its_peer() && lost_process() ? lost_process() : found;
    };
    // The rank at fault may not have exited yet, or be stopped by a signal, when its peers see the broken connection.
    const auto until = Clock::now() + 1s;
    const RankProcess* failed = find();
    for (; failed && failed->lost_its_peer() && is_any_running(processes_) && Clock::now() < until; failed = find()) {
      std::this_thread::sleep_for(10ms);
      reap(processes_);
    }
    return failed;
  }

  void begin_restart(RankProcess& lost) {
    lost.named = true;
    cause_ = fmt::format("{} {}", name_of(lost), how_it_ended(lost));
    lost_at_ = lost.silent ? lost.last_beat : look_before_;
    begin_restart();
  }

  void begin_restart() {
    if (cause_.empty()) {
      cause_ = "connections between ranks broke";
      lost_at_ = *first_stop_;
    }
    noticed_at_ = Clock::now();
    ++num_restarts_;
    // Release the ranks that wait for the step at which all end, so that they find the loss.
    if (asked_to_end_) tell_ranks(messages::end_after(std::numeric_limits<int>::max()));
  }

  /// Starts a new round once all survivors have stopped.
  std::optional<int> wait_for_survivors() {
    const bool too_late = Clock::now() - noticed_at_ > std::chrono::seconds(kStopLimitSeconds);
    bool all_stopped = true;
    for (RankProcess& process : processes_) {
      if (process.rank < 0 || !process.running || process.stopped) continue;
      if (too_late && !process.stuck) {
        process.stuck = true;
        kill(process.pid, SIGKILL);
        cause_ += fmt::format(", {} did not stop within {} s", name_of(process), kStopLimitSeconds);
      }
      all_stopped = false;
    }
    return all_stopped ? finish_restart() : std::nullopt;
  }

  std::optional<int> finish_restart() {
    for (const RankProcess& process : processes_) {
      if (process.rank >= 0 && !process.running && !process.named && !process.stuck)
        cause_ += fmt::format(", {} {}", name_of(process), how_it_ended(process));
    }
    const std::string who_goes_on = assign_ranks(processes_);
    if (who_goes_on.empty()) return fail(cause_ + "; no rank is left", 1);
    std::fprintf(stderr, "frostpipe: %s; %s (restart %d of %d)\n", cause_.c_str(), who_goes_on.c_str(), num_restarts_,
                 options_.max_restarts);
    ++generation_;
    start_round();
    cause_.clear();
    first_stop_.reset();
    return std::nullopt;
  }

  void start_round() {
    announce(processes_, {.generation = generation_,
                          .cause = cause_,
                          .begun_from = begun_from_,
                          .lost_ns = nanoseconds_of(lost_at_),
                          .noticed_ns = nanoseconds_of(noticed_at_)});
    if (asked_to_end_) ask_to_end();
  }

  const LaunchOptions& options_;
  std::vector<RankProcess> processes_;
  int generation_ = 0, num_restarts_ = 0;
  std::string cause_;                      // why a new round begins; empty otherwise
  std::optional<std::string> begun_from_;  // what a rank has told by Membership::begun()
  Clock::time_point lost_at_{}, noticed_at_{};
  std::optional<Clock::time_point> first_stop_;    // time of the first survivor's stop in this round
  std::optional<Clock::time_point> asked_to_end_;  // time of the first signal
  bool end_is_settled_ = false;                    // the ranks of this round know the step before which they end
  bool was_interrupted_ = false;                   // the ranks have ended at that step
  Clock::time_point last_look_ = Clock::now(), look_before_ = Clock::now();
};

}  // namespace

int launch_local_ranks(const LaunchOptions& options) { return Launcher(options).run(); }

}  // namespace frostpipe
