#include "serving/server/http/tensor_forms.h"

namespace frostpipe {

std::vector<TensorForm> input_tensors(const RequestForm& form) {
  if (form.task == ServedTask::image_classification)
    return {{"pixel_values", "FP32", {-1, 3, form.image_size, form.image_size}}};
  const TensorForm tokens = {"input_ids", "INT64", {-1, -1}};
  if (!form.tokens_of) return {tokens};
  return {{"text", "BYTES", {-1}}, tokens};
}

std::vector<TensorForm> output_tensors_of_head(ServedTask task) {
  if (task == ServedTask::language_modeling)
    return {{"loss", "FP64", {-1}}, {"num_predicted", "INT64", {-1}}, {"num_correct", "INT64", {-1}}};
  return {{"label", "BYTES", {-1}}, {"label_id", "INT64", {-1}}, {"probability", "FP64", {-1}}};
}

std::vector<TensorForm> output_tensors(const RequestForm& form) {
  std::vector<TensorForm> tensors;
  for (const HeadForm& head : form.heads) {
    for (TensorForm& tensor : output_tensors_of_head(form.task)) {
      if (!head.name.empty()) tensor.name = head.name + "." + tensor.name;
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

}  // namespace frostpipe
