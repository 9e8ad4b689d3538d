#include "profiles/hardware.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <ranges>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json_reader.h"
#include "base/spelling.h"

namespace frostpipe {
namespace {

/// A line of a datasheet; the fields are those of Hardware.
struct Gpu {
  const char* name;
  double peak_flops, bytes_per_second;
  int memory_gigabytes;
  double bfloat16_flops;
  bool lacks_bfloat16;
  double node_bytes_per_second, network_bytes_per_second;  // 0 = none
  const char* source;
};

// Per second. Rates from these bounds give times and bandwidths that files can hold.
constexpr json::Bounds kDeviceRate = json::between(1'000'000'000, 1'000'000'000'000'000'000),
                       kLinkRate = json::between(1'000'000, 1'000'000'000'000'000'000);

constexpr Gpu kGpus[] = {
    {"RTX5000", 11.2e12, 448e9, 16, 89.2e12, true, 0, 0, "Quadro RTX 5000 datasheet, NVIDIA 2018"},
    {"RTX2080Ti", 13.45e12, 616e9, 11, 107.6e12, true, 0, 0, "Turing architecture whitepaper, NVIDIA 2018"},
    {"V100", 15.7e12, 900e9, 16, 125e12, true, 150e9, 6.25e9,
     "Tesla V100 SXM2 datasheet, NVIDIA 2018; DGX-1: 4 x 100 Gbit/s for 8"},
    {"A100", 19.5e12, 1555e9, 40, 312e12, false, 300e9, 25e9,
     "A100 SXM datasheet, NVIDIA 2020; DGX A100: 8 x 200 Gbit/s for 8"},
    {"A100-80GB", 19.5e12, 2039e9, 80, 312e12, false, 300e9, 25e9,
     "A100 80GB SXM datasheet, NVIDIA 2021; DGX A100: 8 x 200 Gbit/s for 8"},
    {"RTX3090", 35.6e12, 936e9, 24, 71e12, false, 32e9, 0,
     "Ampere GA102 whitepaper (sums in float32), NVIDIA 2020; PCIe 4.0 x16"},
    {"RTX4090", 82.6e12, 1008e9, 24, 165.2e12, false, 32e9, 0,
     "Ada architecture whitepaper (sums in float32), NVIDIA 2022; PCIe 4.0 x16"},
    {"L4", 30.3e12, 300e9, 24, 121e12, false, 32e9, 0,
     "L4 datasheet (half of the figure with sparsity), NVIDIA 2023; PCIe 4.0 x16"},
    {"L40S", 91.6e12, 864e9, 48, 362e12, false, 32e9, 0, "L40S datasheet, NVIDIA 2023; PCIe 4.0 x16"},
    {"GH200", 67e12, 4000e9, 96, 989e12, false, 450e9, 50e9,
     "GH200 datasheet (96 GB HBM3), NVIDIA 2023; 400 Gbit/s each"},
    {"H100", 67e12, 3350e9, 80, 989e12, false, 450e9, 50e9,
     "H100 SXM datasheet, NVIDIA 2022; DGX H100: 8 x 400 Gbit/s for 8"},
    {"H200", 67e12, 4800e9, 141, 989e12, false, 450e9, 50e9,
     "H200 SXM datasheet, NVIDIA 2023; DGX H200: 8 x 400 Gbit/s for 8"},
    {"B200", 75e12, 8000e9, 180, 2250e12, false, 900e9, 50e9,
     "DGX B200 and HGX B200 datasheets, NVIDIA 2024; 8 x 400 Gbit/s for 8"},
};

Hardware hardware_of(const Gpu& gpu) {
  const auto given = [](double rate) { return rate > 0 ? std::optional(rate) : std::nullopt; };
  return {.name = gpu.name,
          .peak_flops = gpu.peak_flops,
          .bytes_per_second = gpu.bytes_per_second,
          .memory_bytes = Bytes{gpu.memory_gigabytes} * 1'000'000'000,
          .bfloat16_flops = gpu.bfloat16_flops,
          .lacks_bfloat16 = gpu.lacks_bfloat16,
          .node_bytes_per_second = given(gpu.node_bytes_per_second),
          .network_bytes_per_second = given(gpu.network_bytes_per_second),
          .source = gpu.source};
}

}  // namespace

template <class Archive>
void fields(Archive& archive, json::Value<Archive, Hardware>& hardware) {
  archive("name", hardware.name);
  archive("peak_flops", hardware.peak_flops, kDeviceRate);
  archive("bytes_per_second", hardware.bytes_per_second, kDeviceRate);
  archive("memory_bytes", hardware.memory_bytes, json::kSize);
  archive("efficiency", hardware.efficiency, json::at_least(0));
  archive("bfloat16_flops", hardware.bfloat16_flops, kDeviceRate);
  archive("bfloat16_efficiency", hardware.bfloat16_efficiency, json::Otherwise{Hardware().bfloat16_efficiency});
  archive("lacks_bfloat16", hardware.lacks_bfloat16, json::MayBeMissing());
  archive("node_bytes_per_second", hardware.node_bytes_per_second, kLinkRate);
  archive("network_bytes_per_second", hardware.network_bytes_per_second, kLinkRate);
  archive("source", hardware.source);
}

/// Requires efficiencies above 0, since times are divided by them, and of at most 1.
void check(const json::Place& place, const Hardware& hardware) {
  for (const auto& [name, efficiency] :
       {std::pair("efficiency", hardware.efficiency), {"bfloat16_efficiency", hardware.bfloat16_efficiency}})
    if (!(efficiency > 0 && efficiency <= 1))
      throw InvalidInput(json::Place(place, std::string_view(name)).text(), "must be > 0 and <= 1",
                         fmt::format("{:g}", efficiency));
}

const std::vector<Hardware>& known_hardware() {
  static const std::vector<Hardware> hardware = [] {
    std::vector<Hardware> all;
    for (const Gpu& gpu : kGpus) all.push_back(hardware_of(gpu));
    return all;
  }();
  return hardware;
}

std::string known_hardware_names() {
  return fmt::format("{}", fmt::join(known_hardware() | std::views::transform(&Hardware::name), ", "));
}

std::optional<double> peak_flops_of(std::string_view name, DType dtype) {
  if (dtype == DType::kFloat64) return std::nullopt;
  for (const Hardware& one : known_hardware())
    if (equal_ignoring_case(one.name, name))
      return dtype == DType::kFloat32 ? one.peak_flops : one.lacks_bfloat16 ? std::nullopt : one.bfloat16_flops;
  return std::nullopt;
}

Hardware find_hardware(const std::string& name_or_file) {
  for (const Hardware& one : known_hardware())
    if (equal_ignoring_case(one.name, name_or_file)) return one;
  if (std::filesystem::exists(name_or_file)) return hardware_from_json(read_named_file(name_or_file), name_or_file);
  throw InvalidInput("hardware", fmt::format("must be one of {}, or a file", known_hardware_names()),
                     fmt::format("\"{}\"", name_or_file));
}

std::string to_json(const Hardware& hardware) { return json::write_envelope("frostpipe.hardware", hardware); }

Hardware hardware_from_json(std::string_view json, std::string_view source) {
  return json::read_envelope<Hardware>(json, source, "frostpipe.hardware");
}

DeviceRates rates_of(const Hardware& hardware, DType dtype) {
  const double flops = dtype == DType::kBFloat16 && hardware.bfloat16_flops
                           ? hardware.bfloat16_efficiency * *hardware.bfloat16_flops
                           : hardware.efficiency * hardware.peak_flops;
  return {.flops_per_second = flops, .bytes_per_second = hardware.bytes_per_second};
}

}  // namespace frostpipe
