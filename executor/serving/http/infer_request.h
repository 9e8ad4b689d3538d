#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/serving/served_models.h"

namespace frostpipe {

/// What a client asks a model for: the rows of one tensor, each a request of its own.
struct InferRequest {
  std::optional<std::string> id;
  std::vector<RequestInput> rows;
  std::vector<std::string> outputs;  // names of tensors; none: all
};

inline constexpr std::size_t kMostRows = 64;

/// Reads {"id"?, "parameters"?, "inputs": [{"name", "shape", "datatype", "data", "parameters"?}], "outputs"?: [{"name",
/// "parameters"?}]}. Throws InvalidInput that names place, rule and value where the body is not JSON, or the model has
/// no such inputs or outputs. Parameters are not looked at, but for those of the extension for binary tensors, which is
/// refused.
InferRequest read_infer_request(std::string_view body, const RequestForm& form);

/// {"model_name", "id"?, "outputs": [{"name", "datatype", "shape", "data"}]}. Requires an answer per row, each of kind
/// `answered`. Without outputs where the answers have no values. A loss that is no number is null.
std::string infer_answer(std::string_view model, const RequestForm& form, const InferRequest& request,
                         const std::vector<RequestAnswer>& answers);

}  // namespace frostpipe
