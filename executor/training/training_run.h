#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/cache/node_cache.h"
#include "executor/checkpoint/holdings.h"
#include "executor/execute.h"
#include "executor/run_folder/scalar_log.h"
#include "executor/runtime/rank_session.h"
#include "executor/training/checkpoint_keeper.h"
#include "executor/training/freeze_controller.h"
#include "executor/training/run_recorder.h"
#include "executor/training/subject.h"

namespace frostpipe {

/// One process's part of a training run, through all formings of the job.
///
/// A forming begins with join() (connections) and a moment of the run from which all go on: a Checkpoint, from a
/// folder, from the survivors' memory, or the beginning. resume_from() makes it the present: layers, phases, freeze
/// rule, figures. Then step by step to the end.
class TrainingRun {
 public:
  TrainingRun(Membership& membership, const TrainOptions& options, const InputsFound& inputs,
              const TrainCallbacks& callbacks);
  /// Returns at the run's end, or, in a spare that was not needed, the job's.
  void train();

 private:
  /// Where layers come from.
  struct LayerSource {
    const Checkpoint* checkpoint =
        nullptr;  // null: from the ranks' memory, or, with no moves and nothing held, the subject
    std::optional<HeldLayers> held;
    std::vector<Holding> holdings;  // by rank
  };

  // training_run.cpp
  bool is_first() const { return communicator_->rank() == 0; }
  void work(const Formation& formation);
  /// After each epoch, and at the run's end, which may be in the middle of one.
  bool is_tested_after(int steps) const { return steps % steps_per_epoch_ == 0 || steps == num_steps_; }
  std::span<const int> order_of(int epoch);
  MiniBatch batch_of(int step);
  void change_phase_before(int step);
  std::optional<Phase> next_phase(int step);
  std::vector<Phase> phases_after_decision(int first_trainable_layer, int step);
  std::vector<Phase> phases_of_first_rank(std::vector<Phase> phases, int from_step);
  void enter(const Phase& phase, int step);
  void run_step(int step);
  void report(int step);
  void end_early();
  void finish();

  // training_evaluation.cpp
  double evaluate(int steps);
  void evaluate_after(int steps);
  void watch_accuracy(const Phase& next, int step, const std::vector<double>& freeze_state,
                      std::vector<Phase> upcoming);
  void check_accuracy(int steps);

  // training_forming.cpp: connections, and from which moment to go on
  void join(const Formation& formation);
  void open_cache(const at::TensorOptions& compute);
  void leave();
  void begin();
  void begin_again(const Formation& formation);
  std::string describe_recovery(const Recovery& recovery) const;

  // training_moments.cpp: moments made, and made the present
  std::filesystem::path checkpoints_folder() const { return options_.output / "checkpoints"; }
  RunSettings settings_now() const;
  Checkpoint beginning() const;
  std::optional<Checkpoint> resumed() const;
  void add_watched(Checkpoint& moment) const;
  /// The present as a moment, by all ranks together.
  Checkpoint present(const std::vector<double>& freeze_state);
  /// The same as this rank alone knows it, at a step that was already passed.
  Checkpoint remembered(int step);
  void resume_from(const Checkpoint& moment, LayerSource source);
  std::vector<Phase> phases_from(const Checkpoint& moment);
  std::vector<Phase> planned_anew(const Phase& lost, const std::vector<Phase>& later, int step);
  void adopt_parked(const Checkpoint& checkpoint, int first_trainable_layer);

  Membership& membership_;
  const TrainOptions& options_;
  const TrainCallbacks& callbacks_;
  Nanoseconds started_ns_;
  std::shared_ptr<const Subject> subject_;
  const Dataset& dataset_ = subject_->dataset();
  const Model& model_ = subject_->model();
  int steps_per_epoch_ = 0, num_steps_ = 0;
  std::unique_ptr<ComputeDevice> device_;
  RunRecorder recorder_;
  ScalarLog scalars_;
  FreezeController controller_;

  // Of this forming.
  Formation formation_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<int> nodes_;  // by rank
  std::unique_ptr<NodeCache> cache_;
  std::unique_ptr<StageFactory> factory_;
  std::optional<RankSession> session_;
  std::unique_ptr<CheckpointKeeper> keeper_;
  std::unique_ptr<CheckpointKeeper> given_up_keeper_;  // of the forming before

  // Survives a forming.
  std::optional<HeldLayers> held_;
  Holding holding_;
  std::vector<Phase> known_phases_;  // seated: the running one, and those to come, as of the last change

  int step_ = 0;        // to be done next
  int num_shards_ = 0;  // of the training data
  std::vector<std::vector<int>> shards_;
  RunSettings settings_;
  bool is_tied_ = true;  // the head's matrix to the embedding, if the model ties them: until a layer freezes
  std::map<int, std::vector<int>> orders_;  // by epoch
  std::vector<Phase> upcoming_;             // decided, not begun
  RunSummary summary_;
  struct Watched {
    int step = 0;         // of the checkpoint to go back to
    double accuracy = 0;  // there
  };
  std::optional<Watched> watched_;                                    // a freeze that no evaluation has confirmed yet
  Nanoseconds begin_ns_ = 0;                                          // of the loop in this process; 0 = not begun
  double earlier_wall_seconds_ = 0, earlier_evaluation_seconds_ = 0;  // of other processes
  Nanoseconds evaluation_ns_ = 0;
  Nanoseconds last_step_end_ns_ = 0;
  double recent_loss_ = 0;
  int recent_steps_ = 0;
  bool has_said_unrecorded_ = false;
};

Nanoseconds steady_now_ns();

}  // namespace frostpipe
