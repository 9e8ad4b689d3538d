#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace frostpipe {

/// A device as specified by its vendor.
struct Hardware {
  std::string name;
  double peak_flops = 0;        // per second, float32 without tensor cores
  double bytes_per_second = 0;  // of its memory
  Bytes memory_bytes = 0;
  /// Fraction of the peak that large matrix products reach.
  double efficiency = 0.7;
  std::string source;
  bool operator==(const Hardware&) const = default;
};

/// Quadro RTX 5000, RTX 2080 Ti, V100, A100, GH200, H100, H200.
const std::vector<Hardware>& known_hardware();

/// Finds a device by name in any case, or reads it from a file (envelope "frostpipe.hardware"). Throws InvalidInput
/// that lists the known names.
Hardware find_hardware(const std::string& name_or_file);

std::string to_json(const Hardware& hardware);
Hardware hardware_from_json(std::string_view json, std::string_view source);

/// Sustained rates of a device. Defaults: a Quadro RTX 5000 in fp32, on which large matrix products reach about 70 % of
/// the peak of 11.2 TFLOP/s.
struct DeviceRates {
  double flops_per_second = 8e12;
  double bytes_per_second = 448e9;
  /// Per layer and pass, for starting its kernels.
  Nanoseconds overhead_ns = 50'000;
};

DeviceRates rates_of(const Hardware& hardware);

}  // namespace frostpipe
