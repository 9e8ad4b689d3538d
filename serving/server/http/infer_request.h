#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/server/served_models.h"

namespace frostpipe {

/// A client's request: the rows of one tensor, each of which is a request to the model.
struct InferRequest {
  std::optional<std::string> id;
  std::vector<RequestInput> rows;
  std::vector<std::string> outputs;  // names of requested output tensors; empty = all
};

inline constexpr std::size_t kMaxRows = kMaxRequestsAtOnce;
/// Limit for a text, so that tokenizing it takes less than a second.
inline constexpr std::size_t kMaxRequestTextBytes = std::size_t{1} << 20;
/// Limit for all objects of a request together. The protocol uses some twenty keys; others are parameters.
inline constexpr std::size_t kMaxKeys = 1024;

/// Parses {"id"?, "parameters"?, "inputs": [{"name", "shape", "datatype", "data", "parameters"?}], "outputs"?:
/// [{"name", "parameters"?}]}. Throws InvalidInput that names place, rule and value if the body is not JSON, or the
/// model has no such inputs or outputs. Parameters are ignored, except those of the binary tensor extension, which is
/// refused. A request with more than kMaxKeys keys, or many more values than the form allows, is refused during
/// parsing, so that time and memory are linear in the body. `look` is called now and then during parsing, and before
/// each text is tokenized; it may throw to stop.
InferRequest read_infer_request(
    std::string_view body, const RequestForm& form, const std::function<void()>& look = [] {});

/// Returns {"model_name", "id"?, "outputs": [{"name", "datatype", "shape", "data"}]}. Requires one answer per row, each
/// of kind `answered`. There are no outputs if the answers have no values. A loss that is NaN becomes null.
std::string infer_answer(std::string_view model, const RequestForm& form, const InferRequest& request,
                         const std::vector<RequestAnswer>& answers);

}  // namespace frostpipe
