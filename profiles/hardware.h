#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "profiles/dtype.h"

namespace frostpipe {

/// A device as specified by its vendor.
struct Hardware {
  std::string name;
  double peak_flops = 0;        // per second, float32 without tensor cores
  double bytes_per_second = 0;  // of its memory
  Bytes memory_bytes = 0;
  /// Fraction of peak_flops, not of bfloat16_flops, that large matrix products reach: above 0 and at most 1.
  double efficiency = 0.7;
  /// Peak FLOP per second of dense matrix products of bfloat16 (of float16 on devices without it); none = that of
  /// float32, with its efficiency.
  std::optional<double> bfloat16_flops = std::nullopt;
  /// Fraction of bfloat16_flops that large matrix products reach: above 0 and at most 1. Measured ones lie between 0.6
  /// and 0.75 on A100s and H100s.
  double bfloat16_efficiency = 0.65;
  bool lacks_bfloat16 = false;  // then bfloat16_flops is the peak of float16
  /// Bytes per second between two devices of a node, and of a device's share of the network, in each direction; none =
  /// PCIe 3.0 x16 and 40 Gbit/s.
  std::optional<double> node_bytes_per_second = std::nullopt, network_bytes_per_second = std::nullopt;
  std::string source;
  bool operator==(const Hardware&) const = default;
};

/// Returns GPUs from the Quadro RTX 5000 and V100 to the B200, with the figures of their datasheets. The memory of
/// those that exist with several sizes is in their names, or it is the smaller one.
const std::vector<Hardware>& known_hardware();

/// Returns "RTX5000, RTX2080Ti, ...".
std::string known_hardware_names();

/// Returns the peak FLOP per second of a device in `dtype` if `name` is one of known_hardware(), in upper or lower
/// case; none for other devices, float64, and bfloat16 on devices that lack it.
std::optional<double> peak_flops_of(std::string_view name, DType dtype);

/// Finds a device by name, in upper or lower case, or reads it from a file (envelope "frostpipe.hardware"). Throws
/// InvalidInput that lists the known names, or says what is wrong in the file.
Hardware find_hardware(const std::string& name_or_file);

std::string to_json(const Hardware& hardware);
Hardware hardware_from_json(std::string_view json, std::string_view source);

/// The sustained rates of a device. The defaults are those of a Quadro RTX 5000 in float32, on which large matrix
/// products reach about 70 % of the peak of 11.2 TFLOP/s.
struct DeviceRates {
  double flops_per_second = 8e12;
  double bytes_per_second = 448e9;
  /// The overhead of starting kernels, per layer and pass.
  Nanoseconds overhead_ns = 50'000;
};

/// Returns the sustained rates of a device, with the default overhead: the efficiency for the dtype times its peak. For
/// bfloat16 without bfloat16_flops, and for float64, these are the rates for float32.
DeviceRates rates_of(const Hardware& hardware, DType dtype = DType::kFloat32);

}  // namespace frostpipe
