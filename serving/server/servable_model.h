#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "serving/plan/serving_plan.h"
#include "serving/server/served_models.h"
#include "serving/server/worker/batch_buffer.h"
#include "serving/server/worker/folder_bytes.h"

namespace frostpipe {

/// A Hugging Face folder of one head, and the head's name in answers; "" if it is the only one.
struct HeadFolder {
  std::string name;
  std::filesystem::path folder;
};

/// The properties of a model to be served.
struct ServableModel {
  std::vector<std::string> folders;       // one per head; empty if emulated
  std::vector<FolderBytes> folder_bytes;  // hashes of each folder, taken before it was read
  RequestForm form;
  BatchShape shape;  // without max_requests
  std::string device = "cpu";
};

/// Opens the folders of a plan's model: as many as the plan has heads, which share its prefix. They hold Transformers
/// that predict one label of a text or a picture, or the next token. Throws InvalidInput if one is not such a folder,
/// lacks weights, has other layers than the plan, takes fewer tokens (for pictures: another number), or does not share
/// the prefix. Only in the program with LibTorch.
ServableModel open_servable_model(const std::vector<HeadFolder>& heads, const ServedModel& planned, DType dtype);

/// Makes an emulated model: its requests, arbitrary tokens, take the plan's times without computation.
ServableModel emulated_model(const ServedModel& planned);

}  // namespace frostpipe
