#include "executor/training/pipeline_session.h"

#include <utility>

#include "executor/models/layer_images.h"
#include "executor/training/evaluation/test_score.h"
#include "plan/memory.h"

namespace frostpipe {

PipelineSession::PipelineSession(const PipelineTask& task, const SessionPlace& place)
    : task_(task),
      place_(place),
      factory_(task.make_factory(place)),
      rank_(task.model(), *factory_, place.communicator, place.device, place.options.plan.optimizer,
            place.options.plan.dtype) {}

void PipelineSession::start(const Phase& phase, int step, const LayerOrigin& origin) {
  rank_.tie_embeddings(origin.embeddings_are_tied ? task_.tied_values() : 0);
  const int num_moments = optimizer_moments(place_.options.plan.optimizer);
  rank_.start(phase, step, [&](int layer, LayerState& state, std::map<int, OffloadedMoments>& offloaded) {
    if (!origin.checkpoint) return task_.fill(layer, state);
    restore_layer(*origin.checkpoint, layer, num_moments, state, offloaded);
    if (!origin.keeps_older_weights) state.older = {};
  });
}

void PipelineSession::start_with(const Phase& phase, int step, bool embeddings_are_tied, HeldLayers held,
                                 const std::vector<TensorMove>& moves) {
  rank_.tie_embeddings(embeddings_are_tied ? task_.tied_values() : 0);
  rank_.start_with(phase, step, std::move(held), moves);
}

IterationResult PipelineSession::run_iteration(const MiniBatch& batch, const MiniBatch* next, int step,
                                               const IterationUpdate& update, Trace& trace, bool drains) {
  ScheduleRunner* const runner = rank_.runner();
  return runner ? runner->run_iteration(batch, next, step, update, trace, drains) : IterationResult{};
}

LayersToWrite PipelineSession::layers_to_write(const std::vector<int>& folder_of_rank, const CheckpointWriter& writer) {
  return layers_of(rank_, place_.communicator)(folder_of_rank, writer);
}

std::vector<double> PipelineSession::answers(const std::vector<int>& samples) {
  return own_answers(task_.dataset(), samples, place_.options.plan.global_batch_size, rank_);
}

void PipelineSession::save(bool embeddings_are_tied, const std::filesystem::path& folder) {
  task_.save(embeddings_are_tied, rank_.layers(), rank_.parts_of_layers(), place_.communicator, folder);
}

std::unique_ptr<TrainingSession> PipelineTask::make_session(const SessionPlace& place) const {
  return std::make_unique<PipelineSession>(*this, place);
}

}  // namespace frostpipe
