// Oracle: datasheets.
#include "profiles/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/error.h"

namespace frostpipe {
namespace {

using testing::HasSubstr;

template <class Work>
std::string hardware_error(Work work) {
  try {
    work();
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "no error";
}

TEST(Hardware, IsFoundByNameInAnyCaseAndSaysWhereItsFiguresComeFrom) {
  EXPECT_EQ(find_hardware("h200").bytes_per_second, 4.8e12);
  for (const Hardware& one : known_hardware()) {
    EXPECT_FALSE(one.source.empty());
    EXPECT_EQ(hardware_from_json(to_json(one), "file"), one);
  }
  EXPECT_THAT(hardware_error([] { find_hardware("abacus"); }),
              HasSubstr("must be one of RTX5000, RTX2080Ti, V100, A100, GH200, H100, H200"));
  EXPECT_DOUBLE_EQ(rates_of(find_hardware("A100")).flops_per_second, 0.7 * 19.5e12);
}

}  // namespace
}  // namespace frostpipe
