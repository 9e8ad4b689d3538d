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
/// A survivor that has not stopped for this long after a loss is stuck.
inline constexpr int kStopLimitSeconds = 15;
/// Exit code by which a rank tells our launcher that it only lost its peer: another rank is the one to name.
inline constexpr int kPeerLostExitCode = 3;

/// Of a rendezvous round: who is who until somebody is lost.
struct RendezvousInfo {
  int generation = 0;  // 0 = the first
  RankEnvironment self;
  std::vector<int> logical_ranks;  // by rank: the rank in the first round; says which device of the cluster it is
  std::string cause;               // why there is a new round: "rank 1 was killed by signal 9"; empty for the first
  Nanoseconds lost_ns = 0;         // on the machine's steady clock: when whoever was lost last showed a sign of life,
  Nanoseconds noticed_ns = 0;      // and when the launcher knew
};

/// A process's view of the rendezvous rounds of its job. Where our launcher has started the ranks, it says who is who
/// (Membership); where another has, the ranks find it out at their store (executor/communication/store_rendezvous.h).
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  /// The next round; waits for it. Nothing if this process is a spare that was not needed.
  virtual std::optional<RendezvousInfo> next_round() = 0;
  /// After a loss there may be another round: the survivors call stop() and next_round().
  virtual bool may_rendezvous_again() const = 0;
  /// Says that this process has given up all its connections of that round.
  virtual void stop(int generation) = 0;
};

/// A process's side of a job: a heartbeat to the launcher every second, from a thread of its own, and who it is in each
/// rendezvous round.
class Membership final : public Rendezvous {
 public:
  /// Null in a process that is no rank. Of ranks that others have started: `interface`, unless "", goes before the one
  /// that the variables name; `max_restarts` is how many rounds may follow a loss, as LaunchOptions has it.
  static std::unique_ptr<Membership> join(const std::string& interface = "", int max_restarts = 0);
  /// Says that all went well; the launcher no longer expects a heartbeat.
  ~Membership() override;
  /// Who this rank is, where another launcher than ours has started it. From here it has one round alone.
  const std::optional<RankEnvironment>& started_by_others() const;
  /// Of ranks that others have started: how many rounds they may arrange by themselves. None where torchrun's agent
  /// ends all ranks when one is lost.
  int max_restarts() const;
  /// Number of this process on its machine: which GPU it takes.
  int local_rank() const;
  std::optional<RendezvousInfo> next_round() override;
  bool may_rendezvous_again() const override;
  void stop(int generation) override;
  /// To be asked before every step, on all ranks equally often: true where the launcher wants the run to end, at the
  /// same step on all ranks. Waits for nobody as long as it does not, and then no longer than until the launcher knows
  /// how far each rank is.
  bool is_to_end();
  /// Tells the launcher that the run has ended because it wanted that.
  void interrupted();

 private:
  Membership();
  struct State;
  std::unique_ptr<State> state_;
};

/// What launcher and members write to each other.
namespace messages {
inline constexpr const char* kBeat = "beat";
inline constexpr const char* kDone = "done";
inline constexpr const char* kEnd = "end";
inline constexpr const char* kInterrupt = "interrupt";      // how far are you?
inline constexpr const char* kInterrupted = "interrupted";  // the run has ended before that step
std::string stopped(int generation);
/// With a socket that leads to that rank, before the round that it is for.
std::string peer(int rank);
/// The answer to kInterrupt: steps that the rank has begun in this round, and the longest of them.
struct Progress {
  int num_steps = 0;
  Nanoseconds longest_step_ns = 0;
};
std::string progress(const Progress& progress);
std::optional<Progress> parse_progress(const std::string& text);
/// What a rank does then: no more than `num_steps` steps of this round.
std::string end_after(int num_steps);
std::optional<int> parse_end_after(const std::string& text);
std::string start_round(const RendezvousInfo& info);
/// The generation of stopped(); -1 if the text is something else.
int parse_stopped(const std::string& text);
/// The rank of peer(); -1 if the text is something else.
int parse_peer(const std::string& text);
std::optional<RendezvousInfo> parse_start_round(const std::string& text);
}  // namespace messages

/// Variable of a member's environment: the job may have another rendezvous round.
inline constexpr const char* kMayRendezvousAgainVariable = "FROSTPIPE_MAY_RENDEZVOUS_AGAIN";

}  // namespace frostpipe
