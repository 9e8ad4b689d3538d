#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "serving/server/served_models.h"

namespace frostpipe {

/// A tensor of the Open Inference Protocol.
struct TensorForm {
  std::string name;
  std::string datatype;             // the preferred one if several are accepted
  std::vector<std::int64_t> shape;  // -1: any; the first dimension is that of rows
};

/// Returns the input tensors that a model accepts, of which a request has one: "text" (if the model has a tokenizer)
/// and "input_ids", or "pixel_values".
std::vector<TensorForm> input_tensors(const RequestForm& form);

/// Returns the outputs of a head, in this order: "label", "label_id" and "probability", or "loss", "num_predicted" and
/// "num_correct".
std::vector<TensorForm> output_tensors_of_head(ServedTask task);

/// Returns the outputs of all heads in order; if heads have names, as "NAME.label" and so on.
std::vector<TensorForm> output_tensors(const RequestForm& form);

}  // namespace frostpipe
