#pragma once
#include <filesystem>
#include <string>

#include "executor/serving/served_models.h"
#include "executor/serving/worker/batch_buffer.h"
#include "plan/serving/serving_plan.h"

namespace frostpipe {

/// What a server knows of a model that it serves.
struct ServableModel {
  std::string folder;  // empty: emulated
  RequestForm form;
  BatchShape shape;  // but for most_requests
  std::string device = "cpu";
  int threads = 1;  // of a worker
};

/// A Hugging Face folder of a BERT or ViT classifier or a GPT-2 language model, to be served as planned. Throws
/// InvalidInput where it is none, lacks weights, or has other layers than the plan. In the program with LibTorch.
ServableModel open_servable_model(const std::filesystem::path& folder, const ServedModel& planned, DType dtype);

/// Nothing is computed: requests, tokens with any numbers, take the plan's times.
ServableModel emulated_model(const ServedModel& planned);

}  // namespace frostpipe
