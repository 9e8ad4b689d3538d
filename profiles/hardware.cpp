#include "profiles/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/spelling.h"

namespace frostpipe {
namespace {

constexpr Bytes gigabytes(Bytes count) { return count * 1'000'000'000; }

}  // namespace

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Hardware>& hardware) {
  archive("name", hardware.name);
  archive("peak_flops", hardware.peak_flops, json::at_least(1));
  archive("bytes_per_second", hardware.bytes_per_second, json::at_least(1));
  archive("memory_bytes", hardware.memory_bytes, json::at_least(0));
  archive("efficiency", hardware.efficiency, json::at_least(0));
  archive("bfloat16_flops", hardware.bfloat16_flops, json::at_least(1));
  archive("lacks_bfloat16", hardware.lacks_bfloat16, json::MayBeMissing());
  archive("node_bytes_per_second", hardware.node_bytes_per_second, json::at_least(1));
  archive("network_bytes_per_second", hardware.network_bytes_per_second, json::at_least(1));
  archive("source", hardware.source);
}

/// Requires a positive efficiency, since times are divided by it, and one that a device can have.
void check(const json::Place& place, const Hardware& hardware) {
  if (!(hardware.efficiency > 0 && hardware.efficiency <= 1))
    throw InvalidInput(json::Place(place, std::string_view("efficiency")).text(), "must be > 0 and <= 1",
                       fmt::format("{:g}", hardware.efficiency));
}

const std::vector<Hardware>& known_hardware() {
  static const std::vector<Hardware> hardware{
      {.name = "RTX5000",
       .peak_flops = 11.2e12,
       .bytes_per_second = 448e9,
       .memory_bytes = gigabytes(16),
       .bfloat16_flops = 89.2e12,
       .lacks_bfloat16 = true,
       .source = "Quadro RTX 5000 datasheet, NVIDIA 2018"},
      {.name = "RTX2080Ti",
       .peak_flops = 13.45e12,
       .bytes_per_second = 616e9,
       .memory_bytes = gigabytes(11),
       .bfloat16_flops = 107.6e12,
       .lacks_bfloat16 = true,
       .source = "Turing architecture whitepaper, NVIDIA 2018"},
      {.name = "V100",
       .peak_flops = 15.7e12,
       .bytes_per_second = 900e9,
       .memory_bytes = gigabytes(16),
       .bfloat16_flops = 125e12,
       .lacks_bfloat16 = true,
       .node_bytes_per_second = 150e9,
       .network_bytes_per_second = 6.25e9,
       .source = "Tesla V100 SXM2 datasheet, NVIDIA 2018; DGX-1: 4 x 100 Gbit/s for 8"},
      {.name = "A100",
       .peak_flops = 19.5e12,
       .bytes_per_second = 1555e9,
       .memory_bytes = gigabytes(40),
       .bfloat16_flops = 312e12,
       .node_bytes_per_second = 300e9,
       .network_bytes_per_second = 25e9,
       .source = "A100 SXM datasheet, NVIDIA 2020; DGX A100: 8 x 200 Gbit/s for 8"},
      {.name = "GH200",
       .peak_flops = 67e12,
       .bytes_per_second = 4000e9,
       .memory_bytes = gigabytes(96),
       .bfloat16_flops = 989e12,
       .node_bytes_per_second = 450e9,
       .network_bytes_per_second = 50e9,
       .source = "GH200 datasheet (96 GB HBM3), NVIDIA 2023; 400 Gbit/s each"},
      {.name = "H100",
       .peak_flops = 67e12,
       .bytes_per_second = 3350e9,
       .memory_bytes = gigabytes(80),
       .bfloat16_flops = 989e12,
       .node_bytes_per_second = 450e9,
       .network_bytes_per_second = 50e9,
       .source = "H100 SXM datasheet, NVIDIA 2022; DGX H100: 8 x 400 Gbit/s for 8"},
      {.name = "H200",
       .peak_flops = 67e12,
       .bytes_per_second = 4800e9,
       .memory_bytes = gigabytes(141),
       .bfloat16_flops = 989e12,
       .node_bytes_per_second = 450e9,
       .network_bytes_per_second = 50e9,
       .source = "H200 SXM datasheet, NVIDIA 2023; DGX H200: 8 x 400 Gbit/s for 8"},
  };
  return hardware;
}

Hardware find_hardware(const std::string& name_or_file) {
  std::string names;
  for (const Hardware& one : known_hardware()) {
    if (equal_ignoring_case(one.name, name_or_file)) return one;
    names += (names.empty() ? "" : ", ") + one.name;
  }
  if (std::filesystem::exists(name_or_file)) return hardware_from_json(read_named_file(name_or_file), name_or_file);
  throw InvalidInput("hardware", fmt::format("must be one of {}, or a file", names),
                     fmt::format("\"{}\"", name_or_file));
}

std::string to_json(const Hardware& hardware) { return json::write_envelope("frostpipe.hardware", hardware); }

Hardware hardware_from_json(std::string_view json, std::string_view source) {
  return json::read_envelope<Hardware>(json, source, "frostpipe.hardware");
}

DeviceRates rates_of(const Hardware& hardware, DType dtype) {
  constexpr double kBfloat16Efficiency = 0.5;
  const double flops = dtype == DType::kBFloat16 && hardware.bfloat16_flops
                           ? kBfloat16Efficiency * *hardware.bfloat16_flops
                           : hardware.efficiency * hardware.peak_flops;
  return {.flops_per_second = flops, .bytes_per_second = hardware.bytes_per_second};
}

}  // namespace frostpipe
