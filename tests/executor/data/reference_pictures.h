#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "executor/data/image_files.h"
#include "tests/support/reference_data.h"

namespace frostpipe::test {

/// A picture of images_reference.json: its pixels as hexadecimal text.
inline Image image_of(int height, int width, const std::string& hex) {
  const std::string bytes = bytes_of_hex(hex);
  return {.height = height, .width = width, .pixels = {bytes.begin(), bytes.end()}};
}

/// The bytes of the file with this name in images_reference.json.
inline std::string reference_file(std::string_view name) {
  for (const nlohmann::json& file : reference_data("images_reference.json")["files"])
    if (file["name"] == name) return bytes_of_hex(file["file"]);
  throw std::logic_error("no such file in images_reference.json: " + std::string(name));
}

/// Errors name the place "file".
inline Image decode(std::string_view bytes) { return decode_image(std::as_bytes(std::span(bytes)), "file"); }

/// The largest difference between two values of the same pixel and channel; 256 if the sizes differ.
inline int largest_difference(const Image& a, const Image& b) {
  if (a.height != b.height || a.width != b.width || a.pixels.size() != b.pixels.size()) return 256;
  int largest = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  return largest;
}

}  // namespace frostpipe::test
