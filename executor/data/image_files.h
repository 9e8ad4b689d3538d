#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace frostpipe {

/// An RGB image with 8 bits per channel.
struct Image {
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> pixels;  // [channel, height, width]: red, green, blue

  bool operator==(const Image&) const = default;
};

/// Decodes a JPEG or PNG file, which are told apart by their first bytes. `place` names the file in errors.
///
/// - Grey becomes three equal channels, palettes are expanded, alpha is dropped, and 16 bits are cut to the upper 8.
///   Colour profiles, gamma and the EXIF orientation are ignored: pixels are as stored. JPEG in CMYK and YCCK becomes
///   RGB as by Pillow's convert("RGB").
/// - Throws InvalidInput that names the place and the reason for files of other formats, damaged and truncated files,
///   and for more than 64,000,000 pixels or more than the file's bytes can hold, which is checked before memory is
///   allocated.
/// - Extra bytes between two parts of a JPEG file are accepted: they are harmless, and some known data sets have them.
Image decode_image(std::span<const std::byte> bytes, const std::string& place);

}  // namespace frostpipe
