#pragma once
#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "executor/models/folder/model_config.h"
#include "executor/runtime/rank_session.h"
#include "executor/runtime/transformer_stage.h"
#include "plan/memory.h"
#include "tests/executor/end_together.h"
#include "tests/executor/ranks.h"
#include "tests/executor/small_model.h"
#include "tests/executor/test_device.h"
#include "tests/executor/wrapped_device.h"

namespace frostpipe::test {

inline constexpr std::uint64_t kSeed = 5;

inline double l2(const at::Tensor& t) { return t.to(at::kDouble).norm().item<double>(); }

/// The results of one process without stages for a mini-batch.
struct Expected {
  double loss;
  std::vector<at::Tensor> gradients;  // by layer
  double norm;                        // of all gradients together
};

/// A job as seen by one rank, with all objects that the tests need.
struct Job {
  explicit Job(const RankEnvironment& self) : Job(self, test_device(self.local_rank)) {}
  Job(const RankEnvironment& self, std::unique_ptr<ComputeDevice> with_device)
      : config(small_config()),
        model(model_of(config, "small")),
        device(std::move(with_device)),
        communicator(Communicator::connect(self, *device)) {}
  ~Job() {
    if (communicator) end_together(*communicator);
  }
  Job(Job&&) = default;
  TransformerConfig config;
  Model model;
  std::unique_ptr<ComputeDevice> device;
  std::unique_ptr<Communicator> communicator;
  std::vector<std::unique_ptr<TransformerStageFactory>> factories;
  std::map<std::tuple<std::size_t, DType, int>, Expected> expected;  // see expected_of
  double label_smoothing = 0;
  bool cuda_graphs = false;

  /// Uses this model from now on; sessions of another model must have ended.
  void train_now(const TransformerConfig& other) {
    config = other;
    model = model_of(config, "small");
    expected.clear();
  }
  MicroBatch whole(const Samples& data, const MiniBatch& batch, DType dtype) const {
    return data.load(batch, batch.samples, layer_types_of(dtype).computed, /*with_input=*/true);
  }
  RankSession session(const Samples& data, Optimizer optimizer, DType dtype) {
    factories.push_back(
        std::make_unique<TransformerStageFactory>(TransformerStageInputs{.config = config,
                                                                         .model = model,
                                                                         .data = data,
                                                                         .types = layer_types_of(dtype),
                                                                         .device = device->torch_device(),
                                                                         .optimizer = optimizer,
                                                                         .label_smoothing = label_smoothing,
                                                                         .cuda_graphs = cuda_graphs}));
    RankSession session(model, *factories.back(), *communicator, *device, optimizer, dtype);
    session.tie_embeddings(tied_parameter_count(config));
    return session;
  }
};

/// A job in which two ranks share a device.
inline Job job_through_host(const RankEnvironment& self) {
  std::unique_ptr<ComputeDevice> device = test_device(self.local_rank);
  if (self.rank < 2) device = shared(std::move(device));
  Job job(self, std::move(device));
  CHECK_RANK(job.communicator->uses_host_staging(), "two ranks share a device");
  return job;
}

}  // namespace frostpipe::test
