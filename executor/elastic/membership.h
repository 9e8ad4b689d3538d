#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "executor/elastic/job_environment.h"

namespace frostpipe {

/// A process that has been silent for this long is dead or stuck.
inline constexpr int kSilenceLimitSeconds = 10;
/// A survivor that has not stopped this long after a loss is stuck.
inline constexpr int kStopLimitSeconds = 15;
/// The exit code of a rank that failed only because it lost a peer. The launcher then names the other rank.
inline constexpr int kPeerLostExitCode = 3;

/// A rendezvous round: the ranks of all processes until the next loss.
struct RendezvousInfo {
  int generation = 0;  // 0 = the first
  RankEnvironment self;
  std::vector<int> logical_ranks;  // by rank: the rank in the first round, which identifies the device of the cluster
  std::string cause;               // reason for the round: "rank 1 was killed by signal 9"; empty for the first one
  // What a rank of an earlier round has told by Membership::begun(); not set if none has.
  std::optional<std::string> begun_from;
  Nanoseconds lost_ns = 0;     // steady clock: last sign of life of the lost rank
  Nanoseconds noticed_ns = 0;  // steady clock: time at which the loss was noticed
};

/// A process's view of the rendezvous rounds of its job. If frostpipe's launcher has started the ranks, it assigns the
/// ranks (Membership); if another launcher has, they agree through their store
/// (executor/communication/store_rendezvous.h).
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  /// Waits for the next round and returns it. Returns nothing if this process is a spare that was not needed.
  virtual std::optional<RendezvousInfo> next_round() = 0;
  /// True if another round may follow a loss: survivors then call stop() and next_round().
  virtual bool may_rendezvous_again() const = 0;
  /// Reports that this process has given up all its connections of that round.
  virtual void stop(int generation) = 0;
};

/// A process's side of a job: it sends a heartbeat to the launcher every second, from a thread of its own, and receives
/// its rank in each rendezvous round.
class Membership final : public Rendezvous {
 public:
  /// Returns null if this process is not a rank. The arguments are for ranks that another launcher has started:
  /// `interface`, unless "", overrides the one that the environment names; `max_restarts` has the meaning of
  /// LaunchOptions::max_restarts. Throws InvalidInput if the launcher's environment variables are wrong.
  static std::unique_ptr<Membership> join(const std::string& interface = "", int max_restarts = 0);
  /// Reports success; the launcher then expects no further heartbeat.
  ~Membership() override;
  /// Returns the environment of this rank if another launcher than frostpipe's has started it. Membership then gives it
  /// one round.
  const std::optional<RankEnvironment>& started_by_others() const;
  /// Returns how many further rounds the ranks of another launcher may arrange by themselves: 0 if torchrun's agent
  /// ends all ranks when one is lost.
  int max_restarts() const;
  std::optional<RendezvousInfo> next_round() override;
  bool may_rendezvous_again() const override;
  void stop(int generation) override;
  /// Tells the launcher that the run has begun, and from which checkpoint ("": from none). The launcher tells the ranks
  /// of later rounds (RendezvousInfo::begun_from), since all ranks that know it may be lost.
  void begun(const std::string& from);
  /// Returns true before the step at which the launcher wants all ranks to end the run; always false under another
  /// launcher. All ranks must ask before every step. Returns at once until the launcher has asked the ranks to end;
  /// from then on waits until the launcher knows the progress of every rank.
  bool is_to_end();
  /// Tells the launcher that the run has ended because the launcher has asked for it.
  void interrupted();

 private:
  Membership();
  struct State;
  std::unique_ptr<State> state_;
};

/// The messages between launcher and members.
namespace messages {
inline constexpr const char* kBeat = "beat";
inline constexpr const char* kDone = "done";
inline constexpr const char* kEnd = "end";
inline constexpr const char* kInterrupt = "interrupt";      // asks for the rank's progress
inline constexpr const char* kInterrupted = "interrupted";  // the run has ended before the step of end_after()
/// Makes the message of a survivor that has closed its connections of that round.
std::string stopped(int generation);
/// Makes the message of Membership::begun().
std::string begun(const std::string& from);
/// Returns nothing for any other text.
std::optional<std::string> parse_begun(const std::string& text);
/// Makes the message that comes with a socket to that rank, before the start of the round that uses it.
std::string peer(int rank);
/// The answer to kInterrupt: the number of steps that the rank has begun in this round, and the longest duration of
/// one.
struct Progress {
  int num_steps = 0;
  Nanoseconds longest_step_ns = 0;
};
std::string progress(const Progress& progress);
std::optional<Progress> parse_progress(const std::string& text);
/// Makes the launcher's reply: run no more than `num_steps` steps of this round.
std::string end_after(int num_steps);
std::optional<int> parse_end_after(const std::string& text);
/// Makes the message that gives a process its rank in a round; parse_start_round() reads it.
std::string start_round(const RendezvousInfo& info);
/// Returns the generation of a stopped() message; -1 for any other text.
int parse_stopped(const std::string& text);
/// Returns the rank of a peer() message; -1 for any other text.
int parse_peer(const std::string& text);
/// Returns nothing for any other text.
std::optional<RendezvousInfo> parse_start_round(const std::string& text);
}  // namespace messages

/// Environment variable that is set if the job may have another rendezvous round.
inline constexpr const char* kMayRendezvousAgainVariable = "FROSTPIPE_MAY_RENDEZVOUS_AGAIN";

}  // namespace frostpipe
