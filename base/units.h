#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace frostpipe {

/// Time is integer nanoseconds everywhere in the core. Any other unit is part of the name
/// ("bandwidth_bytes_per_second").
using Nanoseconds = std::int64_t;
/// Sizes are 64-bit byte counts.
using Bytes = std::int64_t;

/// Formats "12.3 ms", "4.10 s", "850 us" with three significant digits, for display only.
std::string format_duration(Nanoseconds duration);
/// Reads a decimal number without an exponent, and its unit: ns, us, ms, s, min (or m) or h, after a space or none
/// ("90s", "1.5h", "250 ms"). Throws InvalidInput that names `place` for any other text, and for times below 1 ns or of
/// more than 285 years.
Nanoseconds parse_duration(std::string_view text, std::string_view place);
/// Formats "384 MiB", "1.50 GiB", "12 B", for display only.
std::string format_bytes(Bytes bytes);
/// Formats "412 TFLOP", "16.1 GFLOP", for display only.
std::string format_flops(double flops);
/// Reads "384MiB", "1.5 GiB", "2gb", "4096" (bytes). Units are B, KiB to PiB (powers of 1024) and KB to PB (powers of
/// 1000), in upper or lower case. Throws InvalidInput that names `place` (an option or a file's field) for any other
/// text, and for 2^63 bytes or more.
Bytes parse_bytes(std::string_view text, std::string_view place);

}  // namespace frostpipe
