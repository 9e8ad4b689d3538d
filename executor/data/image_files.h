#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace frostpipe {

/// A colour picture of 8 bits per channel.
struct Image {
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> pixels;  // [channel, height, width]: red, green, blue

  bool operator==(const Image&) const = default;
};

/// The picture in a JPEG or PNG file; the first bytes tell which it is. `place` names the file in errors.
///
/// - Grey is widened to three equal channels, palettes are looked up, alpha is dropped, and of 16 bits the upper 8
///   count. Colour profiles, gamma and the orientation in EXIF are ignored: pixels are as they are stored. JPEG in CMYK
///   and YCCK becomes RGB as Pillow's convert("RGB") does it.
/// - Throws InvalidInput that names the place and the reason: for damaged and truncated files, and for more than
///   64,000,000 pixels or more than the file's bytes can hold, which is found before memory is taken.
/// - Needless bytes between two parts of a JPEG file are no damage: they cost no pixels, and known data sets have some.
Image decode_image(std::span<const std::byte> bytes, const std::string& place);

}  // namespace frostpipe
