#pragma once
#include <optional>
#include <vector>

#include "executor/loading/batch_loader.h"
#include "executor/training/training_session.h"
#include "operators/executor/device_runner.h"
#include "operators/training/group_exchange.h"
#include "operators/training/layer_mover.h"
#include "operators/training/net_task.h"

namespace frostpipe {

/// One rank's session: rank d is device d of the phase's operator plan, a CPU of its class. It holds all weights of the
/// layers that it computes, and the momentum of the parts that it updates. Layers move from rank to rank through rank
/// 0.
class NetSession final : public TrainingSession {
 public:
  /// The task, and what `place` refers to, must outlive this object.
  NetSession(const NetTask& task, const SessionPlace& place);

  void start(const Phase& phase, int step, const LayerOrigin& origin) override;
  void enter(const Phase& phase) override;
  const Phase& phase() const override { return phase_; }
  bool has_phase() const override { return running_.has_value(); }
  IterationResult run_iteration(const MiniBatch& batch, const MiniBatch* next, int step, const IterationUpdate& update,
                                Trace& trace, bool drains) override;
  bool reports_figures() const override { return leads(); }
  LayersToWrite layers_to_write(const std::vector<int>& folder_of_rank, const CheckpointWriter& writer) override;
  std::vector<double> answers(const std::vector<int>& samples) override;
  void save(bool embeddings_are_tied, const std::filesystem::path& folder) override;

 private:
  /// The running plan on this rank.
  struct Running {
    Running(OperatorPlan whole_plan, const NetTask& task, Group& group, int device);

    OperatorPlan plan;
    OperatorTasks tasks;
    std::vector<LayerHolders> holders;
    std::vector<Action> actions;  // by task
    GroupExchange exchange;
    DeviceRunner runner;
    SlowCpu slow_cpu;
    BatchLoader loader;
  };

  bool leads() const { return place_.communicator.rank() == 0; }
  int num_layers() const { return static_cast<int>(task_.folder().net.layers.size()); }
  void run_plan_of(const Phase& phase);
  void begin_anew();
  /// Hands the layers, which only rank 0 needs to have, to their holders.
  void give(std::vector<WholeLayer> layers);
  /// Returns, on rank 0, a copy of a layer as its holders have it.
  WholeLayer collect(int layer, bool with_momentum);
  NetState collect_all();
  /// Returns the sum of all ranks' values on rank 0; the other ranks return `own` without waiting for the sum.
  double sum_on_first(double own);

  const NetTask& task_;
  SessionPlace place_;
  LayerMover mover_;
  Phase phase_;
  std::optional<Running> running_;
  NetState state_;
  std::vector<NetMomentum> momentum_;
  std::optional<Transfer> sent_loss_;  // of the last iteration
};

}  // namespace frostpipe
