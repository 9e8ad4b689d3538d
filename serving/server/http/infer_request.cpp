#include "serving/server/http/infer_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include "base/error_values.h"
#include "base/json_reader.h"
#include "base/parse_json.h"
#include "serving/server/http/tensor_forms.h"

namespace frostpipe {
namespace {

using json::fail;
using json::Place;
using Json = nlohmann::ordered_json;

using Shape = std::vector<std::size_t>;

constexpr std::string_view kSource = "request";

/// Returns the largest number of JSON values in a request, lists included: a picture's row of nested data has 3 x side
/// + 4 lists.
std::size_t max_values(const RequestForm& form) {
  const auto side = static_cast<std::size_t>(form.image_size), tokens = static_cast<std::size_t>(form.max_tokens);
  return kMaxRows * (std::max(tokens, 3 * side * side) + 3 * side + 8) + 4 * kMaxKeys;
}

/// Builds the JSON tree during parsing, and limits its keys and values. Keys are limited because each new one of an
/// object is compared with all earlier ones.
class BoundedTree : public nlohmann::detail::json_sax_dom_parser<Json> {
 public:
  BoundedTree(Json& root, std::size_t max_values, const std::function<void()>& look)
      : json_sax_dom_parser(root), max_values_(max_values), look_(look) {}

  bool null() { return count(), json_sax_dom_parser::null(); }
  bool boolean(bool value) { return count(), json_sax_dom_parser::boolean(value); }
  bool number_integer(std::int64_t value) { return count(), json_sax_dom_parser::number_integer(value); }
  bool number_unsigned(std::uint64_t value) { return count(), json_sax_dom_parser::number_unsigned(value); }
  bool number_float(double value, const std::string& text) {
    return count(), json_sax_dom_parser::number_float(value, text);
  }
  bool string(std::string& value) { return count(), json_sax_dom_parser::string(value); }
  bool start_array(std::size_t size) { return count(), json_sax_dom_parser::start_array(size); }
  bool start_object(std::size_t size) { return count(), json_sax_dom_parser::start_object(size); }
  bool key(std::string& name) {
    if (++num_keys_ > kMaxKeys)
      throw InvalidInput(fmt::format("{}: must have at most {} keys in all its objects", kSource, kMaxKeys));
    return json_sax_dom_parser::key(name);
  }

 private:
  void count() {
    static constexpr std::size_t kValuesPerLook = 4096;
    if (++num_values_ > max_values_)
      throw InvalidInput(fmt::format("{}: must have at most {} values, more than {} rows of this model need", kSource,
                                     max_values_, kMaxRows));
    if (num_values_ % kValuesPerLook == 0) look_();
  }

  const std::size_t max_values_;
  const std::function<void()>& look_;
  std::size_t num_keys_ = 0, num_values_ = 0;
};

Json parsed(std::string_view body, const RequestForm& form, const std::function<void()>& look) {
  require_shallow_json(body, kSource);
  Json json;
  BoundedTree tree(json, max_values(form), look);
  try {
    Json::sax_parse(body, &tree);
    return json;
  } catch (const Json::exception& error) {
    refuse_json(body, kSource, error);
  }
}

void require_fields(const Json& object, const Place& place, std::initializer_list<const char*> needed,
                    std::initializer_list<const char*> optional) {
  if (!object.is_object()) fail(place, "must be an object", object);
  for (const char* const name : needed) {
    if (!object.contains(name)) throw InvalidInput(fmt::format("{}: has no field \"{}\"", place.text(), name));
  }
  for (const auto& [name, value] : object.items()) {
    const auto is_it = [&name = name](const char* known) { return name == known; };
    if (std::any_of(needed.begin(), needed.end(), is_it) || std::any_of(optional.begin(), optional.end(), is_it))
      continue;
    throw InvalidInput(fmt::format("{}: has the unknown field {}; known: {}{}{}", place.text(), in_quotes(name),
                                   fmt::join(needed, ", "), needed.size() * optional.size() == 0 ? "" : ", ",
                                   fmt::join(optional, ", ")));
  }
}

void require_no_binary_tensors(const Json& object, const Place& place) {
  const auto parameters = object.find("parameters");
  if (parameters == object.end()) return;
  const Place inside(place, "parameters");
  if (!parameters->is_object()) fail(inside, "must be an object", *parameters);
  for (const char* const name : {"binary_data_output", "binary_data_size", "binary_data"}) {
    const auto found = parameters->find(name);
    if (found != parameters->end() && *found != false)
      fail(Place(inside, std::string_view(name)), "must not be given: tensors are JSON here", *found);
  }
}

const std::string& name_among(const Json& object, const Place& place, const std::vector<TensorForm>& forms) {
  const Place inside(place, "name");
  const std::string& name = json::read_string(object["name"], inside);
  const auto has_name = [&](const TensorForm& form) { return form.name == name; };
  if (std::none_of(forms.begin(), forms.end(), has_name)) {
    std::vector<std::string> names;
    for (const TensorForm& form : forms) names.push_back(form.name);
    throw InvalidInput(inside.text(), fmt::format("must be one of {}", in_quotes(names)), in_quotes(name));
  }
  return name;
}

/// Reads the tensor of a client's request, whose rows become requests to the model.
class TensorReader {
 public:
  TensorReader(const Json& tensor, const Place& place, const RequestForm& form, const std::function<void()>& look)
      : tensor_(tensor), place_(place), form_(form), look_(look) {}

  std::vector<RequestInput> rows() const {
    require_fields(tensor_, place_, {"name", "shape", "datatype", "data"}, {"parameters"});
    require_no_binary_tensors(tensor_, place_);
    const std::string& name = name_among(tensor_, place_, input_tensors(form_));
    if (name != "text" && name != "input_ids") return pictures();
    std::vector<RequestInput> rows = name == "text" ? texts() : tokens();
    if (form_.drop_padding)
      for (RequestInput& row : rows) form_.drop_padding(row.tokens);
    return rows;
  }

 private:
  std::vector<RequestInput> texts() const {
    require_datatype({"BYTES"});
    std::vector<RequestInput> rows(shape("[rows]", {0})[0]);
    each_element({rows.size()}, [&](const Json& element, const Place& at, std::size_t row) {
      look_();
      const std::string& text = json::read_string(element, at);
      if (text.size() > kMaxRequestTextBytes)
        throw InvalidInput(at.text(), fmt::format("must have at most {} bytes", kMaxRequestTextBytes),
                           fmt::format("one of {}", text.size()));
      rows[row].tokens = form_.tokens_of(text);
      // A shorter text is not tokenized twice.
      rows[row].is_cut = std::cmp_greater_equal(rows[row].tokens.size(), form_.max_tokens) && form_.is_cut(text);
      if (rows[row].tokens.size() < least_tokens())
        throw InvalidInput(at.text(), fmt::format("must have at least {} tokens", least_tokens()),
                           fmt::format("of {}", rows[row].tokens.size()));
    });
    return rows;
  }

  std::vector<RequestInput> tokens() const {
    require_datatype({"INT64", "INT32"});
    const Shape sizes =
        shape(fmt::format("[rows, tokens] with {} to {} tokens", least_tokens(), form_.max_tokens), {0, 0});
    std::vector<RequestInput> rows(sizes[0]);
    const auto most = std::min<std::int64_t>(form_.vocabulary_size, std::numeric_limits<std::int32_t>::max()) - 1;
    each_element(sizes, [&](const Json& element, const Place& at, std::size_t index) {
      const std::int64_t token = json::read_integer(element, at, 0, most);
      rows[index / sizes[1]].tokens.push_back(static_cast<std::int32_t>(token));
    });
    return rows;
  }

  std::vector<RequestInput> pictures() const {
    require_datatype({"FP32"});
    const auto side = static_cast<std::size_t>(form_.image_size);
    const Shape sizes = shape(fmt::format("[rows, 3, {0}, {0}]", side), {0, 3, side, side});
    const std::size_t size = 3 * side * side;
    std::vector<std::vector<float>> pixels(sizes[0]);
    for (std::vector<float>& row : pixels) row.reserve(size);
    each_element(sizes, [&](const Json& element, const Place& at, std::size_t index) {
      if (!element.is_number()) fail(at, "must be a number", element);
      const auto pixel = static_cast<float>(element.get<double>());
      if (!std::isfinite(pixel)) fail(at, "must be a number that FP32 has", element);
      pixels[index / size].push_back(pixel);
    });
    std::vector<RequestInput> rows;
    for (std::vector<float>& row : pixels)
      rows.push_back({.tokens = {}, .pixels = std::make_shared<const std::vector<float>>(std::move(row))});
    return rows;
  }

  /// A language model predicts each token except the first.
  std::size_t least_tokens() const { return form_.task == ServedTask::language_modeling ? 2 : 1; }

  void require_datatype(const std::vector<std::string>& known) const {
    const Place place(place_, "datatype");
    const std::string& datatype = json::read_string(tensor_["datatype"], place);
    if (std::find(known.begin(), known.end(), datatype) == known.end())
      throw InvalidInput(place.text(), fmt::format("must be {}", fmt::join(known, " or ")), in_quotes(datatype));
  }

  /// Reads a shape and compares it with `expected`, which is 0 for a free dimension: the first may be 1 to kMaxRows,
  /// the second least_tokens() to max_tokens.
  Shape shape(std::string_view rule, const Shape& expected) const {
    const Place place(place_, "shape");
    const Json& given = tensor_["shape"];
    const auto refuse = [&] { fail(place, fmt::format("must be {}, of 1 to {} rows", rule, kMaxRows), given); };
    if (!given.is_array() || given.size() != expected.size()) refuse();
    Shape sizes;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (!given[i].is_number_unsigned()) refuse();
      const auto size = given[i].get<std::uint64_t>();
      const std::uint64_t least = i == 0 ? 1 : expected[i] > 0 ? expected[i] : least_tokens();
      const std::uint64_t most = i == 0            ? kMaxRows
                                 : expected[i] > 0 ? expected[i]
                                                   : static_cast<std::uint64_t>(form_.max_tokens);
      if (size < least || size > most) refuse();
      sizes.push_back(static_cast<std::size_t>(size));
    }
    return sizes;
  }

  /// Visits (element, place, index) in row-major order. The data may be nested as the shape or flat.
  template <class Visit>
  void each_element(const Shape& sizes, const Visit& visit) const {
    const Json& data = tensor_["data"];
    const Place place(place_, "data");
    std::size_t index = 0;
    if (sizes.size() > 1 && data.is_array() && !data.empty() && data[0].is_array())
      return each_nested(data, place, sizes.data(), sizes.data() + sizes.size(), index, visit);
    std::size_t count = 1;
    for (const std::size_t size : sizes) count *= size;  // cannot overflow, since the shape is bounded
    each_nested(data, place, &count, &count + 1, index, visit);
  }

  template <class Visit>
  static void each_nested(const Json& data, const Place& place, const std::size_t* size, const std::size_t* end,
                          std::size_t& index, const Visit& visit) {
    if (size == end) return visit(data, place, index++);
    if (!data.is_array()) fail(place, fmt::format("must be a list of {} as the shape says", *size), data);
    if (data.size() != *size)
      throw InvalidInput(place.text(), fmt::format("must be a list of {} as the shape says", *size),
                         fmt::format("one of {}", data.size()));
    for (std::size_t i = 0; i < data.size(); ++i) each_nested(data[i], Place(place, i), size + 1, end, index, visit);
  }

  const Json& tensor_;
  const Place& place_;
  const RequestForm& form_;
  const std::function<void()>& look_;
};

const Json& list(const Json& object, const Place& place) {
  if (!object.is_array()) fail(place, "must be a list", object);
  return object;
}

std::vector<std::string> output_names(const Json& outputs, const Place& place, const RequestForm& form) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < list(outputs, place).size(); ++i) {
    const Place inside(place, i);
    require_fields(outputs[i], inside, {"name"}, {"parameters"});
    require_no_binary_tensors(outputs[i], inside);
    const std::string& name = name_among(outputs[i], inside, output_tensors(form));
    if (std::find(names.begin(), names.end(), name) != names.end())
      throw InvalidInput(Place(inside, "name").text(), "must be asked for once", in_quotes(name) + " again");
    names.push_back(name);
  }
  return names;
}

}  // namespace

InferRequest read_infer_request(std::string_view body, const RequestForm& form, const std::function<void()>& look) {
  const Json json = parsed(body, form, look);
  const Place place(kSource);
  require_fields(json, place, {"inputs"}, {"id", "parameters", "outputs"});
  require_no_binary_tensors(json, place);
  InferRequest request;
  if (json.contains("id")) request.id = json::read_string(json["id"], Place(place, "id"));
  if (json.contains("outputs")) request.outputs = output_names(json["outputs"], Place(place, "outputs"), form);
  const Place inputs(place, "inputs");
  const Json& tensors = list(json["inputs"], inputs);
  if (tensors.size() != 1)
    throw InvalidInput(inputs.text(), "must be one tensor, whose rows are answered one by one",
                       fmt::format("{} tensors", tensors.size()));
  const Place only(inputs, std::size_t{0});
  request.rows = TensorReader(tensors[0], only, form, look).rows();
  return request;
}

}  // namespace frostpipe
