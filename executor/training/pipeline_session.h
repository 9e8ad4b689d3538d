#pragma once
#include <memory>

#include "executor/runtime/rank_session.h"
#include "executor/training/training_session.h"
#include "executor/training/training_task.h"

namespace frostpipe {

/// The session of one rank of a pipeline.
class PipelineSession final : public TrainingSession {
 public:
  /// The task, and what `place` refers to, must outlive this object.
  PipelineSession(const PipelineTask& task, const SessionPlace& place);

  void start(const Phase& phase, int step, const LayerOrigin& origin) override;
  void enter(const Phase& phase) override { rank_.enter(phase); }
  const Phase& phase() const override { return rank_.phase(); }
  bool has_phase() const override { return rank_.has_phase(); }
  IterationResult run_iteration(const MiniBatch& batch, const MiniBatch* next, int step, const IterationUpdate& update,
                                Trace& trace, bool drains) override;
  bool reports_figures() const override { return rank_.reports_figures(); }
  LayersToWrite layers_to_write(const std::vector<int>& folder_of_rank, const CheckpointWriter& writer) override;
  std::vector<double> answers(const std::vector<int>& samples) override;
  void save(bool embeddings_are_tied, const std::filesystem::path& folder) override;
  PipelineSession* pipeline() override { return this; }

  /// Begins with the layers that survivors hold, as RankSession::start_with() does.
  void start_with(const Phase& phase, int step, bool embeddings_are_tied, HeldLayers held,
                  const std::vector<TensorMove>& moves);
  const StageFactory& factory() const { return *factory_; }
  RankSession& rank() { return rank_; }

 private:
  const PipelineTask& task_;
  SessionPlace place_;
  std::unique_ptr<StageFactory> factory_;
  RankSession rank_;
};

}  // namespace frostpipe
