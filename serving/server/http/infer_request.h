#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/server/served_models.h"

namespace frostpipe {

/// What a client asks a model for: the rows of one tensor, each a request of its own.
struct InferRequest {
  std::optional<std::string> id;
  std::vector<RequestInput> rows;
  std::vector<std::string> outputs;  // names of tensors; none: all
};

inline constexpr std::size_t kMostRows = 64;
/// In all objects of a request together: those of the protocol are some twenty, the others are parameters.
inline constexpr std::size_t kMostKeys = 1024;

/// Reads {"id"?, "parameters"?, "inputs": [{"name", "shape", "datatype", "data", "parameters"?}], "outputs"?: [{"name",
/// "parameters"?}]}. Throws InvalidInput that names place, rule and value where the body is not JSON, or the model has
/// no such inputs or outputs. Parameters are not looked at, but for those of the extension for binary tensors, which is
/// refused. A request of more than kMostKeys keys, or of many more values than the form has room for, is refused while
/// it is parsed, so that time and memory are linear in the body. `look` is called now and then while it is parsed: what
/// it throws ends the reading.
InferRequest read_infer_request(
    std::string_view body, const RequestForm& form, const std::function<void()>& look = [] {});

/// {"model_name", "id"?, "outputs": [{"name", "datatype", "shape", "data"}]}. Requires an answer per row, each of kind
/// `answered`. Without outputs where the answers have no values. A loss that is no number is null.
std::string infer_answer(std::string_view model, const RequestForm& form, const InferRequest& request,
                         const std::vector<RequestAnswer>& answers);

}  // namespace frostpipe
