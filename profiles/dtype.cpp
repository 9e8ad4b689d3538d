#include "profiles/dtype.h"

#include "base/enum_words.h"

namespace frostpipe {
namespace {

struct DTypeRow {
  DType value;
  std::string_view word;
  Bytes bytes, kept_bytes;
};

constexpr std::array kDTypes{DTypeRow{DType::kFloat32, "float32", 4, 4}, DTypeRow{DType::kFloat64, "float64", 8, 8},
                             DTypeRow{DType::kBFloat16, "bfloat16", 2, 4}};

}  // namespace

std::string_view to_string(DType dtype) { return word_of(kDTypes, dtype); }

std::optional<DType> find_dtype(std::string_view word) { return value_of(kDTypes, word); }

void parse_text(std::string_view text, const std::string& place, DType& dtype) {
  dtype = parse_word(kDTypes, text, place, "must be float32, float64 or bfloat16");
}

Bytes bytes_per_value(DType dtype) { return row_of(kDTypes, dtype).bytes; }

Bytes kept_bytes_per_value(DType dtype) { return row_of(kDTypes, dtype).kept_bytes; }

}  // namespace frostpipe
