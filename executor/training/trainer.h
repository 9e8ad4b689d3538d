#pragma once
#include <optional>

#include "executor/elastic/membership.h"
#include "executor/execute.h"
#include "executor/run_folder/scalar_log.h"
#include "executor/training/recovery_coordinator.h"
#include "executor/training/rendezvous_round.h"
#include "executor/training/run_context.h"
#include "executor/training/training_batches.h"
#include "executor/training/training_state.h"

namespace frostpipe {

/// The training loop of one process, over all rendezvous rounds of the job. A round begins with connections and a
/// snapshot of the run from which all ranks continue (RecoveryCoordinator). Then it runs step by step until the end, or
/// until a peer is lost, after which the survivors begin the next round.
class Trainer {
 public:
  /// `store_rendezvous` is for ranks that another launcher has started, which find the survivors by themselves; else
  /// null. `first` is the first round in which this process has a rank. `membership`, `options` and `callbacks`
  /// must outlive the trainer.
  Trainer(Membership& membership, StoreRendezvous* store_rendezvous, const RendezvousInfo& first,
          const TrainOptions& options, const InputsFound& inputs, const TrainCallbacks& callbacks);
  /// Trains in the first round and those that follow losses. Returns at the end of the run. Throws PeerLost if a rank
  /// is lost and no other round may follow.
  void train(RendezvousInfo first);

 private:
  void run_round(const RendezvousInfo& info);
  void join(const RendezvousInfo& info);
  void leave();

  void write_checkpoint();
  void change_phase_if_due();
  std::string change_text(const Phase& phase) const;
  void enter(const Phase& phase);
  void train_step(bool is_last);
  void record_step(const StepRecord& step);
  void report_progress();
  void end_early();
  void finish();

  bool drains_pipeline(bool is_last) const;
  bool is_evaluated() const;
  void catch_up_on_evaluation();
  void evaluate_and_judge();
  double evaluate();
  void take_baseline(const Phase& next);
  void catch_up_on_baseline();
  void confirm_or_take_back_freeze(double accuracy);

  Membership& membership_;
  Rendezvous& rendezvous_;
  const RunContext run_;
  const ScalarLog scalars_;
  RendezvousRound round_;
  TrainingState state_;
  RecoveryCoordinator recovery_;
  std::optional<TrainingBatches> batches_;  // set from the first round on

  double recent_loss_ = 0;  // sum over the steps since the last report
  int recent_steps_ = 0;    // number of these steps
  bool has_noted_unrecorded_steps_ = false;
  bool has_begun_ = false;  // iterations overlap, and the next step has begun
};

}  // namespace frostpipe
