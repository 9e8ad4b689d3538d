#include "profiles/dtype.h"

#include "tests/plan/examples.h"

namespace frostpipe {
namespace {

using examples::message_of;

TEST(DType, HasAWordInFiles) {
  for (const DType dtype : {DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    DType read{};
    parse_text(to_string(dtype), "p.json: dtype", read);
    EXPECT_EQ(read, dtype);
    EXPECT_EQ(find_dtype(to_string(dtype)), dtype);
  }
  EXPECT_EQ(to_string(DType::kBFloat16), "bfloat16");
  EXPECT_EQ(to_string(DType::kFloat32), "float32");
  EXPECT_EQ(to_string(DType::kFloat64), "float64");
}

TEST(DType, OfAnotherWordIsRefused) {
  DType read{};
  EXPECT_EQ(message_of([&] { parse_text("int3", "p.json: dtype", read); }),
            "p.json: dtype: must be float32, float64 or bfloat16, is \"int3\"");
  EXPECT_EQ(find_dtype("int3"), std::nullopt);
}

TEST(DType, KeepsTheWeightsOfBFloat16InFloat32) {
  EXPECT_EQ(bytes_per_value(DType::kFloat32), 4);
  EXPECT_EQ(bytes_per_value(DType::kFloat64), 8);
  EXPECT_EQ(bytes_per_value(DType::kBFloat16), 2);
  EXPECT_EQ(kept_bytes_per_value(DType::kFloat32), 4);
  EXPECT_EQ(kept_bytes_per_value(DType::kFloat64), 8);
  EXPECT_EQ(kept_bytes_per_value(DType::kBFloat16), 4);
}

}  // namespace
}  // namespace frostpipe
