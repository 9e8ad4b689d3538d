#include "executor/subject.h"

#include <numeric>

#include "executor/emulated_stage.h"
#include "executor/encoder_stage.h"
#include "executor/model_folder.h"
#include "plan/memory.h"

namespace frostpipe {
namespace {

class EncoderSubject final : public Subject {
 public:
  explicit EncoderSubject(const TrainOptions& options)
      : seed_(options.seed), optimizer_(options.plan.optimizer), folder_(open_model_folder(options.model)),
        dataset_(load_dataset({options.data, options.test_data, options.held_out, options.seed}, folder_, options.max_tokens)),
        weights_(folder_.path / "model.safetensors") {
    folder_.label_names = dataset_.text.label_names;
    folder_.config.num_labels = static_cast<std::int64_t>(folder_.label_names.size());
    model_ = model_of(folder_.config, folder_.name);
    check_weights(folder_, weights_);
  }
  const Model& model() const override { return model_; }
  const Dataset& dataset() const override { return dataset_; }
  std::int64_t hidden_size() const override { return folder_.config.hidden_size; }
  std::unique_ptr<StageFactory> make_factory(const at::TensorOptions& compute, ActivationCache* cache, int) const override {
    return std::make_unique<EncoderStageFactory>(folder_.config, model_, dataset_.encoded, compute, optimizer_moments(optimizer_), cache);
  }
  void fill(int layer, LayerState& state) const override { load_layer(folder_, weights_, layer, seed_, state); }
  void save(const std::map<int, LayerState>& layers, const std::vector<int>& holders, Communicator& communicator,
            const std::filesystem::path& folder) const override {
    save_model_folder(folder_, folder_.label_names, layers, holders, communicator, folder);
  }

 private:
  std::uint64_t seed_;
  std::string optimizer_;
  ModelFolder folder_;
  Dataset dataset_;
  SafetensorsFile weights_;
  Model model_;
};

class EmulatedSubject final : public Subject {
 public:
  explicit EmulatedSubject(const TrainOptions& options) : plan_(options.plan), emulation_(*options.emulation), cluster_(*options.cluster) {
    const Workload& workload = *emulation_.profile.workload;
    dataset_.encoded.token_ids.assign(workload.num_samples, std::vector<std::int32_t>(workload.tokens, 0));
    dataset_.encoded.labels.assign(workload.num_samples, 0);
    dataset_.split.train.resize(workload.num_samples);
    std::iota(dataset_.split.train.begin(), dataset_.split.train.end(), 0);
  }
  const Model& model() const override { return emulation_.profile.model; }
  const Dataset& dataset() const override { return dataset_; }
  std::int64_t hidden_size() const override { return shrunk_hidden_size(model(), emulation_.shrink); }
  std::unique_ptr<StageFactory> make_factory(const at::TensorOptions& compute, ActivationCache* cache, int seat) const override {
    return std::make_unique<EmulatedStageFactory>(emulation_.profile, cluster_.devices.at(seat).type, plan_.optimizer, plan_.dtype, emulation_.shrink, compute, cache);
  }
  void fill(int, LayerState&) const override {}  // the factory has
  void save(const std::map<int, LayerState>&, const std::vector<int>&, Communicator&, const std::filesystem::path&) const override {}

 private:
  const TrainingPlan& plan_;
  const Emulation& emulation_;
  const Cluster& cluster_;
  Dataset dataset_;
};

}  // namespace

std::unique_ptr<Subject> make_subject(const TrainOptions& options) {
  if (options.emulation) return std::make_unique<EmulatedSubject>(options);
  return std::make_unique<EncoderSubject>(options);
}

}  // namespace frostpipe
