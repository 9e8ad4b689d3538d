#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "serving/plan/serving_plan.h"
#include "serving/server/served_models.h"
#include "serving/server/worker/batch_buffer.h"
#include "serving/server/worker/folder_bytes.h"

namespace frostpipe {

/// A Hugging Face folder that answers requests, and what its answers are called: nothing where it is the only one.
struct HeadFolder {
  std::string name;
  std::filesystem::path folder;
};

/// What a server knows of a model that it serves.
struct ServableModel {
  std::vector<std::string> folders;       // one per head; empty: emulated
  std::vector<FolderBytes> folder_bytes;  // of each, before it was read
  RequestForm form;
  BatchShape shape;  // but for most_requests
  std::string device = "cpu";
  int threads = 1;  // of a worker
};

/// Folders of a BERT or ViT classifier or a GPT-2 language model, to be served as planned: one, or as many heads as the
/// plan has, which share its prefix. Throws InvalidInput where one is no such folder, lacks weights, has other layers
/// than the plan, or does not share the prefix. In the program with LibTorch.
ServableModel open_servable_model(const std::vector<HeadFolder>& heads, const ServedModel& planned, DType dtype);

/// Nothing is computed: requests, tokens with any numbers, take the plan's times.
ServableModel emulated_model(const ServedModel& planned);

}  // namespace frostpipe
