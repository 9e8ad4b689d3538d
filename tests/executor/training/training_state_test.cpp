// Oracle: the list given to --freeze, of which every decision uses the next number.
#include "executor/training/training_state.h"

#include <gtest/gtest.h>

#include <numeric>

#include "executor/runtime/transformer_stage.h"
#include "executor/training/recovery_coordinator.h"
#include "plan/memory.h"
#include "tests/executor/random_weights.h"
#include "tests/executor/small_model.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe::test {
namespace {

/// A model of three blocks that is never trained.
class SmallTask final : public PipelineTask {
 public:
  SmallTask() {
    dataset_.samples = small_samples(config_, 8);
    dataset_.split.train.resize(8);
    std::iota(dataset_.split.train.begin(), dataset_.split.train.end(), 0);
    dataset_.test_by_length = {0};
  }
  const Model& model() const override { return model_; }
  const Dataset& dataset() const override { return dataset_; }
  std::int64_t hidden_size() const override { return config_.hidden_size; }
  std::int64_t tied_values() const override { return 0; }
  std::vector<std::string> starts_at_random() const override { return {}; }
  std::unique_ptr<StageFactory> make_factory(const SessionPlace&) const override {
    return std::make_unique<TransformerStageFactory>(TransformerStageInputs{.config = config_,
                                                                            .model = model_,
                                                                            .data = *dataset_.samples,
                                                                            .types = layer_types_of(DType::kFloat32),
                                                                            .device = at::kCPU,
                                                                            .optimizer = Optimizer::kAdamW});
  }
  void fill(int layer, LayerState& state) const override { randomise_layer(config_, layer, 5, state); }
  void save(bool, const std::map<int, LayerState>&, const std::vector<std::vector<LayerPart>>&, Communicator&,
            const std::filesystem::path&) const override {}

 private:
  TransformerConfig config_ = small_config();
  Model model_ = model_of(config_, "small");
  Dataset dataset_;
};

/// The plan freezes blocks before step 34 if `freeze` is "plan".
TrainOptions options_in(const std::filesystem::path& folder, const std::string& freeze) {
  TrainOptions options;
  options.plan.global_batch_size = 8;
  options.plan.num_steps = 100;
  options.plan.memory_limited = false;
  options.plan.phases = {small_phase(1, 1, 1, "1F1B", 0)};
  if (freeze == "plan") {
    options.plan.phases.push_back(small_phase(1, 1, 1, "1F1B", 3));
    options.plan.phases.back().from_step = 34;
  }
  options.output = folder;
  options.freeze = parse_freeze_policy(freeze, {});
  options.accuracy_tolerance = 0.125;
  options.num_nodes = 1;
  return options;
}

/// A job of one rank, up to its first freeze.
class TrainingStateTest : public ScratchFolderTest {
 protected:
  explicit TrainingStateTest(const std::string& freeze) : options_(options_in(folder_, freeze)) {
    round_.connect({.generation = 0, .self = {}, .logical_ranks = {0}, .cause = ""});
    round_.open({run_.dataset.split.train});
    state_.recorder.join(round_.communicator(), round_.logical_ranks());
    const Phase phase = state_.restore(state_.beginning(), round_);
    start_session(phase);
    for (; state_.step < 34; ++state_.step)
      state_.recorder.record_step({.step = state_.step, .samples = 8, .iteration_ns = 1000}, /*reports_figures=*/true);
  }
  void start_session(const Phase& phase) {
    round_.session().start(phase, state_.step, {});
    state_.recorder.begin_phase(phase, 0, {});
  }
  std::optional<Phase> next(int step) {
    return state_.phases.next(step, round_, state_.recorder, state_.summary.decisions);
  }
  int frozen_in(const std::optional<Phase>& phase) {
    return phase ? frozen_blocks(run_.model, phase->first_trainable_layer) : -1;
  }
  /// The state after a loss, from this rank's snapshot.
  Phase recover_at(int step) {
    std::vector<Phase> known{round_.with_logical_ranks(round_.session().phase())};
    for (const Phase& phase : state_.phases.state().upcoming) known.push_back(round_.with_logical_ranks(phase));
    return state_.restore(checkpoint_from_text(to_text(state_.remembered(step, round_, known))), round_);
  }

  /// Freezes before step 34, and undoes that before `step`.
  void take_back_at(int step) {
    const AccuracyGate::Baseline baseline{.step = 34, .accuracy = 0.5};
    state_.begin_decision();
    const std::optional<Phase> phase = next(34);
    ASSERT_EQ(frozen_in(phase), 1);
    state_.gate.open(baseline);
    round_.checkpoints().write_and_hold(state_.snapshot_before_decision(round_), round_.collect_layers());
    state_.phases.begin_next();
    state_.end_decision();
    round_.session().enter(*phase);
    state_.recorder.begin_phase(*phase, 0, {});
    for (; state_.step < step; ++state_.step)
      state_.recorder.record_step({.step = state_.step, .samples = 8, .iteration_ns = 1000}, /*reports_figures=*/true);
    round_.checkpoints().finish();
    RecoveryCoordinator(run_, round_, state_).take_back_freeze(baseline, "accuracy");
    EXPECT_EQ(state_.step, 34);
  }
  /// The checkpoint of a step, once it is written.
  Checkpoint written_for(int step) {
    round_.checkpoints().finish();
    return read_checkpoint(round_.checkpoints().path_of(step));
  }

  const TrainOptions options_;
  const TrainCallbacks callbacks_{
      .replan = {}, .recover = {}, .progress = [](double, const std::string&) {}, .note = [](const std::string&) {}};
  const InputsFound inputs_{.training_task = std::make_shared<SmallTask>()};
  const RunContext run_{options_, callbacks_, inputs_, RendezvousInfo{}};
  RendezvousRound round_{run_, /*store_rendezvous=*/nullptr};
  TrainingState state_{run_};
};

class DecisionTest : public TrainingStateTest {
 protected:
  DecisionTest() : TrainingStateTest("fixed:1,2,3") {}  // asked before steps 34, 47, ...
};

class PlannedFreezeTest : public TrainingStateTest {
 protected:
  PlannedFreezeTest() : TrainingStateTest("plan") {}
};

TEST_F(DecisionTest, ThatALossInterruptsIsTakenAgainAsIfForTheFirstTime) {
  const std::vector<double> before = state_.phases.state().freeze_rule;
  state_.begin_decision();
  ASSERT_EQ(frozen_in(next(34)), 1);
  state_.summary.decisions.push_back({.step = 34});
  state_.gate.open({.step = 34, .accuracy = 0.5});
  state_.undo_decision();
  EXPECT_EQ(state_.phases.state().freeze_rule, before);
  EXPECT_TRUE(state_.phases.state().upcoming.empty());
  EXPECT_TRUE(state_.summary.decisions.empty());
  EXPECT_FALSE(state_.gate.baseline()) << "its checkpoint may not be whole";
  recover_at(34);
  EXPECT_EQ(frozen_in(next(34)), 1) << "not the second figure of the list";
}

TEST_F(DecisionTest, IsNotInTheCheckpointThatItCanBeTakenBackTo) {
  state_.summary.decisions.push_back({.step = 21});
  state_.begin_decision();
  ASSERT_EQ(frozen_in(next(34)), 1);
  state_.summary.decisions.push_back({.step = 34});
  state_.gate.open({.step = 34, .accuracy = 0.5});
  const Checkpoint baseline = state_.snapshot_before_decision(round_);
  ASSERT_EQ(baseline.run.decisions.size(), 1u) << "who goes on from it decides again";
  EXPECT_EQ(baseline.run.decisions.front().step, 21);
  EXPECT_EQ(baseline.plan.phases.size(), 1u);
  EXPECT_EQ(baseline.watched_step, 34);
  EXPECT_EQ(state_.snapshot(round_).run.decisions.size(), 2u) << "the run itself keeps it";
}

TEST_F(DecisionTest, IsNotRepeatedAfterALossInAStepWhosePhaseHasBegun) {
  state_.begin_decision();
  const std::optional<Phase> phase = next(34);
  ASSERT_EQ(frozen_in(phase), 1);
  state_.phases.begin_next();
  state_.end_decision();
  round_.session().enter(*phase);
  state_.undo_decision();  // there is none left to undo
  recover_at(34);
  EXPECT_EQ(next(34), std::nullopt);
  EXPECT_EQ(frozen_in(next(47)), 2);
}

TEST_F(DecisionTest, OfAFreezeThatWasTakenBackIsTakenWithCautionAlsoFromTheCheckpoint) {
  take_back_at(47);
  state_.restore(written_for(34), round_);
  EXPECT_FALSE(state_.gate.baseline()) << "nothing is frozen that could be taken back";
  EXPECT_EQ(next(34), std::nullopt) << "nothing freezes before step 47";
  ASSERT_EQ(state_.summary.recoveries.size(), 1u);
  EXPECT_EQ(state_.summary.recoveries.front().lost_steps, 47 - 34);
}

TEST_F(PlannedFreezeTest, ThatWasTakenBackComesLaterAlsoFromTheCheckpoint) {
  take_back_at(47);
  EXPECT_EQ(frozen_in(state_.restore(written_for(34), round_)), 0);
  EXPECT_FALSE(state_.gate.baseline());
  EXPECT_EQ(next(46), std::nullopt);
  EXPECT_EQ(frozen_in(next(47)), 1);
}

TEST_F(PlannedFreezeTest, LacksABaselineAfterALossWhileOneWasTaken) {
  state_.begin_decision();
  ASSERT_EQ(frozen_in(next(34)), 1);
  state_.gate.open({.step = 34, .accuracy = 0.5});
  state_.undo_decision();
  const Phase phase = recover_at(34);
  EXPECT_EQ(frozen_in(phase), 1);
  EXPECT_TRUE(state_.lacks_baseline(phase)) << "the checkpoint of the first one may not be whole";
}

TEST_F(PlannedFreezeTest, LacksABaselineWhereACheckpointEndsExactlyBeforeIt) {
  const Phase phase = state_.restore(state_.snapshot(round_), round_);
  EXPECT_EQ(frozen_in(phase), 1);
  EXPECT_TRUE(state_.lacks_baseline(phase));
}

TEST_F(PlannedFreezeTest, HasTheBaselineOfTheCheckpointThatItCanBeTakenBackTo) {
  state_.begin_decision();
  state_.gate.open({.step = 34, .accuracy = 0.5});
  const Phase phase = state_.restore(state_.snapshot_before_decision(round_), round_);
  EXPECT_EQ(frozen_in(phase), 1);
  EXPECT_FALSE(state_.lacks_baseline(phase));
}

TEST_F(PlannedFreezeTest, NeedsNoBaselineOnceAStepIsDoneInIt) {
  const std::optional<Phase> phase = next(34);
  ASSERT_EQ(frozen_in(phase), 1);
  state_.phases.begin_next();
  round_.session().enter(*phase);
  state_.recorder.begin_phase(*phase, 0, {});
  state_.recorder.record_step({.step = state_.step++, .samples = 8, .iteration_ns = 1000}, /*reports_figures=*/true);
  const Phase later = state_.restore(state_.snapshot(round_), round_);
  EXPECT_EQ(frozen_in(later), 1);
  EXPECT_FALSE(state_.lacks_baseline(later)) << "it was watched, and confirmed";
}

TEST_F(PlannedFreezeTest, IsKnownToComeBeforeItsStepAlone) {
  EXPECT_FALSE(state_.phases.changes_at(33));
  EXPECT_TRUE(state_.phases.changes_at(34));
  state_.phases.begin_next();
  EXPECT_FALSE(state_.phases.changes_at(34)) << "nothing follows";
}

/// Oracle: the plan, which has no change before step 34 and freezes there.
TEST_F(DecisionTest, WithinAPhaseTheOlderWeightsStayHoweverOftenTheRunIsStoppedThere) {
  EXPECT_FALSE(state_.keeps_older_weights) << "at the beginning there are none";
  for (int stop = 0; stop < 3; ++stop) {
    const Phase phase = state_.restore(state_.snapshot(round_), round_);
    EXPECT_TRUE(state_.keeps_older_weights) << stop;
    round_.renew_session();
    start_session(phase);
  }
}

TEST_F(PlannedFreezeTest, BeginsWithoutTheOlderWeightsOfThePhaseBeforeIt) {
  EXPECT_EQ(frozen_in(state_.restore(state_.snapshot(round_), round_)), 1);
  EXPECT_FALSE(state_.keeps_older_weights);
}

}  // namespace
}  // namespace frostpipe::test
