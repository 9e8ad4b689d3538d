#include <nlohmann/json.hpp>
#include <span>

#include "base/error.h"
#include "serving/server/http/infer_request.h"
#include "serving/server/http/tensor_forms.h"

namespace frostpipe {
namespace {

using Json = nlohmann::ordered_json;

std::size_t answer_size(ServedTask task) { return task == ServedTask::language_modeling ? 3 : 2; }

/// Returns output number `index` of a head's answer to one row. A loss over no tokens is NaN, which becomes null in
/// JSON.
Json value_of(std::size_t index, ServedTask task, const HeadForm& head, std::span<const double> values) {
  if (task == ServedTask::language_modeling)
    return index == 0 ? Json(values[index]) : Json(static_cast<std::int64_t>(values[index]));
  if (index == 2) return values[1];
  const auto label = static_cast<std::size_t>(values[0]);
  FROSTPIPE_CHECK(label < head.label_names.size(), "a classifier answers with one of its labels");
  return index == 0 ? Json(head.label_names[label]) : Json(label);
}

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string infer_answer(std::string_view model, const RequestForm& form, const InferRequest& request,
                         const std::vector<RequestAnswer>& answers) {
  const std::vector<TensorForm> tensors = output_tensors(form);
  const std::size_t outputs_per_head = tensors.size() / form.heads.size(), size = answer_size(form.task);
  Json outputs = Json::array();
  const auto add = [&](std::size_t index) {
    const std::size_t head = index / outputs_per_head, output = index % outputs_per_head;
    Json data = Json::array();
    for (const RequestAnswer& answer : answers)
      data.push_back(
          value_of(output, form.task, form.heads[head], std::span(answer.values).subspan(head * size, size)));
    outputs.push_back({{"name", tensors[index].name},
                       {"datatype", tensors[index].datatype},
                       {"shape", Json::array({answers.size()})},
                       {"data", std::move(data)}});
  };
  FROSTPIPE_CHECK(answers.size() == request.rows.size(), "each row has an answer");
  if (!answers.empty() && !answers.front().values.empty()) {
    for (const RequestAnswer& answer : answers)
      FROSTPIPE_CHECK(answer.values.size() == form.heads.size() * size, "all rows are answered in the model's form");
    if (request.outputs.empty()) {
      for (std::size_t i = 0; i < tensors.size(); ++i) add(i);
    }
    for (const std::string& name : request.outputs) {
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].name == name) add(i);
      }
    }
  }
  Json answer = {{"model_name", model}};
  if (request.id) answer["id"] = *request.id;
  answer["outputs"] = std::move(outputs);
  return dumped(answer);
}

}  // namespace frostpipe
