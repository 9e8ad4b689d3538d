// Oracle: datasheets.
#include "profiles/hardware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "base/error.h"

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
              HasSubstr("must be one of RTX5000, RTX2080Ti, V100, A100, A100-80GB, RTX3090, RTX4090, L4, L40S, GH200, "
                        "H100, H200, B200, or a file"));
  EXPECT_EQ(find_hardware("a100-80gb").memory_bytes, 2 * find_hardware("A100").memory_bytes);
  EXPECT_DOUBLE_EQ(rates_of(find_hardware("A100")).flops_per_second, 0.7 * 19.5e12);
}

TEST(Hardware, HasPeaksByNameAndType) {
  EXPECT_EQ(peak_flops_of("h100", DType::kBFloat16), 989e12);
  EXPECT_EQ(peak_flops_of("A100-80GB", DType::kFloat32), 19.5e12);
  EXPECT_EQ(peak_flops_of("V100", DType::kFloat32), 15.7e12);
  EXPECT_EQ(peak_flops_of("V100", DType::kBFloat16), std::nullopt) << "its 125 TFLOP/s are in float16";
  EXPECT_EQ(peak_flops_of("H100", DType::kFloat64), std::nullopt);
  EXPECT_EQ(peak_flops_of("cpu", DType::kFloat32), std::nullopt);
}

/// Oracle: by hand, 0.65 of 312 TFLOP/s, or the file's own efficiency.
TEST(Hardware, HasAnEfficiencyForEachType) {
  Hardware a100 = find_hardware("A100");
  EXPECT_DOUBLE_EQ(rates_of(a100, DType::kBFloat16).flops_per_second, 0.65 * 312e12);
  a100.efficiency = 0.9;  // of float32
  EXPECT_DOUBLE_EQ(rates_of(a100, DType::kBFloat16).flops_per_second, 0.65 * 312e12);
  a100.bfloat16_efficiency = 0.72;
  EXPECT_DOUBLE_EQ(rates_of(a100, DType::kBFloat16).flops_per_second, 0.72 * 312e12);
  EXPECT_EQ(hardware_from_json(to_json(a100), "file"), a100);
  Hardware without = a100;
  without.bfloat16_flops.reset();
  EXPECT_EQ(rates_of(without, DType::kBFloat16).flops_per_second, rates_of(without).flops_per_second);
}

/// Times are divided by the efficiency, and no device is faster than its peak.
TEST(Hardware, NeedsAnEfficiency) {
  Hardware hardware = known_hardware().front();
  for (const double efficiency : {0.0, -1.0, 1.01, 1e9, std::numeric_limits<double>::quiet_NaN()}) {
    hardware.efficiency = efficiency;
    EXPECT_THAT(hardware_error([&] { hardware_from_json(to_json(hardware), "mine.json"); }),
                HasSubstr("mine.json: efficiency: must be >"));
  }
  hardware.efficiency = 1;
  EXPECT_EQ(hardware_from_json(to_json(hardware), "mine.json"), hardware);
  hardware.efficiency = 0.5;
  hardware.peak_flops = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(hardware_error([&] { hardware_from_json(to_json(hardware), "mine.json"); }),
              HasSubstr("mine.json: peak_flops: must be >= 1000000000, is \"NaN\""));
}

/// Oracle: the bounds of the files that are made from these figures, which hold 64-bit bandwidths, sizes up to 2^50 and
/// times up to 10^15 ns.
TEST(Hardware, HasFiguresThatProfilesAndClustersCanHold) {
  const auto error_with = [](auto edit) {
    Hardware hardware = find_hardware("A100");
    edit(hardware);
    return hardware_error([&] { hardware_from_json(to_json(hardware), "mine.json"); });
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double rate : {1e300, kInfinity}) {
    EXPECT_THAT(error_with([&](Hardware& mine) { mine.peak_flops = rate; }), HasSubstr("mine.json: peak_flops: must"));
    EXPECT_THAT(error_with([&](Hardware& mine) { mine.node_bytes_per_second = rate; }),
                HasSubstr("mine.json: node_bytes_per_second: must be <= 1000000000000000000, is "));
    EXPECT_THAT(error_with([&](Hardware& mine) { mine.network_bytes_per_second = rate; }),
                HasSubstr("mine.json: network_bytes_per_second: must be <= "));
  }
  EXPECT_THAT(error_with([](Hardware& mine) { mine.peak_flops = 1; }), HasSubstr("must be >= 1000000000, is 1"));
  EXPECT_THAT(error_with([](Hardware& mine) { mine.memory_bytes = (Bytes{1} << 50) + 1; }),
              HasSubstr("mine.json: memory_bytes: must be <= 1125899906842624, is "));
  EXPECT_EQ(error_with([](Hardware& mine) { mine.network_bytes_per_second = 1.25e6; }), "no error") << "10 Mbit/s";
}

}  // namespace
}  // namespace frostpipe
