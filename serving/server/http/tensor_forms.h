#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "serving/server/served_models.h"

namespace frostpipe {

/// A tensor of the Open Inference Protocol.
struct TensorForm {
  std::string name;
  std::string datatype;             // the one that is asked for where several are taken
  std::vector<std::int64_t> shape;  // -1: any; the first dimension are the rows
};

/// What a request for such a model may hold, one of them at a time: "text" where texts can be made tokens, and
/// "input_ids"; or "pixel_values".
std::vector<TensorForm> input_tensors(const RequestForm& form);

/// What a head answers with, in this order: "label", "label_id" and "probability", or "loss", "num_predicted" and
/// "num_correct".
std::vector<TensorForm> output_tensors_of_head(ServedTask task);

/// The same of all heads, one after the other; where they have names, "NAME.label" and so on.
std::vector<TensorForm> output_tensors(const RequestForm& form);

}  // namespace frostpipe
