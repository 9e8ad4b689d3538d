#include "executor/serving/http/tensor_forms.h"

namespace frostpipe {

std::vector<TensorForm> input_tensors(const RequestForm& form) {
  if (form.task == ServedTask::image_classification)
    return {{"pixel_values", "FP32", {-1, 3, form.image_size, form.image_size}}};
  const TensorForm tokens = {"input_ids", "INT64", {-1, -1}};
  if (!form.tokens_of) return {tokens};
  return {{"text", "BYTES", {-1}}, tokens};
}

std::vector<TensorForm> output_tensors(const RequestForm& form) {
  if (form.task == ServedTask::language_modeling)
    return {{"loss", "FP64", {-1}}, {"num_predicted", "INT64", {-1}}, {"num_correct", "INT64", {-1}}};
  return {{"label", "BYTES", {-1}}, {"label_id", "INT64", {-1}}, {"probability", "FP64", {-1}}};
}

}  // namespace frostpipe
