#include "executor/data/image_files.h"

#include <fmt/format.h>

// libjpeg's header uses FILE and size_t without including them.
#include <cstdio>

#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <type_traits>

#include "base/error.h"

namespace frostpipe {
namespace {

constexpr std::uint64_t kMaxPixels = 64'000'000;

using Bytes = std::span<const std::byte>;

// ---- Errors of C libraries ----------------------------------------------------------------------
// libjpeg and libpng report an error by calling a function that must not return, and exceptions must not pass through
// their code. That function therefore jumps back to the caller of the library, which throws the exception.

struct Escape {
  std::jmp_buf target;
  char reason[256] = {};
};
static_assert(sizeof(Escape::reason) > JMSG_LENGTH_MAX);

/// Calls `steps`. Returns false if a library has left them by a jump. A jump runs no destructors, so the steps must not
/// own anything.
template <typename Steps>
bool completes(Escape& escape, Steps steps) {
  static_assert(std::is_trivially_destructible_v<Steps>);
  if (setjmp(escape.target) != 0) return false;
  steps();
  return true;
}

/// Checks the size that a header claims before memory is allocated.
void require_plausible_size(const std::string& place, std::uint64_t width, std::uint64_t height,
                            std::uint64_t max_pixels_in_file) {
  const auto size = [&] { return fmt::format("{} x {}", width, height); };
  // The product cannot overflow: both have at most 31 bits.
  if (width == 0 || height == 0 || width * height > kMaxPixels)
    throw InvalidInput(place, fmt::format("an image must have 1 to {} pixels", kMaxPixels), size());
  if (width * height > max_pixels_in_file)
    throw InvalidInput(place, fmt::format("its bytes can hold at most {} pixels", max_pixels_in_file), size());
}

/// Converts `rows`, [height, width, channel], to planes.
Image with_channels_apart(int height, int width, const std::vector<std::uint8_t>& rows) {
  const std::size_t num_pixels = rows.size() / 3;
  Image image{.height = height, .width = width, .pixels = std::vector<std::uint8_t>(rows.size())};
  std::uint8_t* const red = image.pixels.data();
  std::uint8_t* const green = red + num_pixels;
  std::uint8_t* const blue = green + num_pixels;
  for (std::size_t i = 0; i < num_pixels; ++i) {
    red[i] = rows[3 * i];
    green[i] = rows[3 * i + 1];
    blue[i] = rows[3 * i + 2];
  }
  return image;
}

// ---- JPEG ---------------------------------------------------------------------------------------

/// The state of a decoder. It must not move, since its parts point to each other.
struct JpegDecoder {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  Escape escape;

  JpegDecoder() = default;
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder() { jpeg_destroy_decompress(&info); }
};

[[noreturn]] void leave_jpeg(j_common_ptr info) {
  Escape& escape = *static_cast<Escape*>(info->client_data);
  info->err->format_message(info, escape.reason);
  std::longjmp(escape.target, 1);
}

/// Handles a message of libjpeg. Level -1 is a warning, after which libjpeg would invent pixels, so that decoding
/// fails; other levels are notes. Three kinds of warnings are harmless.
void judge_jpeg_message(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  const bool is_harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM;
  if (level < 0 && !is_harmless) leave_jpeg(info);
}

/// Fails after 100 scans; about ten are usual. A scan of a few bytes can pass over all pixels, so a small file with
/// many scans could take hours.
void limit_jpeg_scans(j_common_ptr info) {
  constexpr int kMaxScans = 100;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  Escape& escape = *static_cast<Escape*>(info->client_data);
  std::snprintf(escape.reason, sizeof escape.reason, "more than %d scans", kMaxScans);
  std::longjmp(escape.target, 1);
}

/// Returns the largest number of pixels that a JPEG file of this size can have. Every 8 x 8 block begins with a Huffman
/// code of at least one bit, and there are at least 1/8 as many blocks as would cover the image (whatever the
/// sampling). Arithmetic coding has no such limit.
std::uint64_t max_pixels_of_jpeg(const jpeg_decompress_struct& info, Bytes bytes) {
  return info.arith_code ? kMaxPixels : std::uint64_t{bytes.size()} * 8 * 64 * 8;
}

/// Converts CMYK to RGB as Pillow does. `inks` is [pixel, 4]; 255 means no ink. Adobe's programs store inks like this,
/// and Pillow reads all files like this, even those without Adobe's marker.
std::vector<std::uint8_t> colours_of_inks(const std::vector<std::uint8_t>& inks) {
  std::vector<std::uint8_t> colours(inks.size() / 4 * 3);
  for (std::size_t i = 0; i < colours.size(); ++i) {
    const int white = inks[i / 3 * 4 + 3], ink = 255 - inks[i / 3 * 4 + i % 3];
    // ink * white / 255, rounded to nearest
    const int product = ink * white + 128;
    colours[i] = static_cast<std::uint8_t>(white - (((product >> 8) + product) >> 8));
  }
  return colours;
}

Image decode_jpeg(Bytes bytes, const std::string& place) {
  JpegDecoder decoder;
  jpeg_decompress_struct& info = decoder.info;
  info.err = jpeg_std_error(&decoder.errors);
  info.client_data = &decoder.escape;
  decoder.errors.error_exit = leave_jpeg;
  decoder.errors.emit_message = judge_jpeg_message;
  decoder.progress.progress_monitor = limit_jpeg_scans;
  const auto run = [&](auto steps) {
    if (!completes(decoder.escape, steps))
      throw InvalidInput(fmt::format("{}: cannot be decoded as JPEG: {}", place, decoder.escape.reason));
  };

  run([&] {
    jpeg_create_decompress(&info);
    info.progress = &decoder.progress;
    jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&info, TRUE);
  });
  const J_COLOR_SPACE colours = info.jpeg_color_space;
  const bool has_inks = colours == JCS_CMYK || colours == JCS_YCCK;
  if (!has_inks && colours != JCS_GRAYSCALE && colours != JCS_RGB && colours != JCS_YCbCr)
    throw InvalidInput(place, "a JPEG image must be grey, RGB, YCbCr, CMYK or YCCK",
                       fmt::format("of {} unknown channels", info.num_components));
  require_plausible_size(place, info.image_width, info.image_height, max_pixels_of_jpeg(info, bytes));

  const std::size_t row_size = std::size_t{info.image_width} * (has_inks ? 4 : 3);
  std::vector<std::uint8_t> rows(row_size * info.image_height);
  run([&] {
    info.out_color_space = has_inks ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      JSAMPROW row = rows.data() + row_size * info.output_scanline;
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
  });
  if (has_inks) rows = colours_of_inks(rows);
  return with_channels_apart(static_cast<int>(info.image_height), static_cast<int>(info.image_width), rows);
}

// ---- PNG ----------------------------------------------------------------------------------------

constexpr unsigned char kPngSignature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

struct PngDecoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  Bytes unread;
  Escape escape;

  PngDecoder() = default;
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;
  ~PngDecoder() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void leave_png(png_structp png, png_const_charp reason) {
  Escape& escape = static_cast<PngDecoder*>(png_get_error_ptr(png))->escape;
  std::snprintf(escape.reason, sizeof escape.reason, "%s", reason);
  std::longjmp(escape.target, 1);
}

/// Ignores warnings, which concern unusual chunks and the like and are harmless.
void ignore_png_warning(png_structp, png_const_charp) {}

void read_png_bytes(png_structp png, png_bytep target, std::size_t count) {
  Bytes& unread = static_cast<PngDecoder*>(png_get_io_ptr(png))->unread;
  if (count > unread.size()) png_error(png, "the file ends too early");
  std::memcpy(target, unread.data(), count);
  unread = unread.subspan(count);
}

/// Returns the largest number of pixels that a PNG file of this size can have. Deflate compresses at most 1032 : 1,
/// with two bits for a run of 258 bytes.
std::uint64_t max_pixels_of_png(std::uint64_t bits_per_pixel, Bytes bytes) {
  return std::uint64_t{bytes.size()} * 1032 * 8 / bits_per_pixel;
}

Image decode_png(Bytes bytes, const std::string& place) {
  PngDecoder decoder;
  decoder.unread = bytes;
  const auto run = [&](auto steps) {
    if (!completes(decoder.escape, steps))
      throw InvalidInput(fmt::format("{}: cannot be decoded as PNG: {}", place, decoder.escape.reason));
  };

  run([&] {
    decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, leave_png, ignore_png_warning);
    if (decoder.png) decoder.info = png_create_info_struct(decoder.png);
  });
  if (!decoder.info) throw RuntimeFailure(fmt::format("{}: no memory to decode it", place));
  const png_structp png = decoder.png;
  const png_infop info = decoder.info;
  run([&] {
    png_set_read_fn(png, &decoder, read_png_bytes);
    // The limit of this file is checked below. Chunks without pixels, such as texts and profiles, are skipped.
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png, info);
  });
  const std::uint32_t width = png_get_image_width(png, info);
  const std::uint32_t height = png_get_image_height(png, info);
  const int bits_per_pixel = png_get_channels(png, info) * png_get_bit_depth(png, info);
  require_plausible_size(place, width, height, max_pixels_of_png(static_cast<std::uint64_t>(bits_per_pixel), bytes));

  int num_passes = 0;
  run([&] {
    png_set_strip_16(png);
    png_set_expand(png);  // palettes, fewer than 8 bits
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
    num_passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
  });
  const std::size_t row_size = std::size_t{width} * 3;
  FROSTPIPE_CHECK(png_get_rowbytes(png, info) == row_size, "every kind of pixel is turned into RGB of 8 bits");
  std::vector<std::uint8_t> rows(row_size * height);
  run([&] {
    for (int pass = 0; pass < num_passes; ++pass)
      for (std::size_t y = 0; y < height; ++y) png_read_row(png, rows.data() + row_size * y, nullptr);
    png_read_end(png, nullptr);
  });
  return with_channels_apart(static_cast<int>(height), static_cast<int>(width), rows);
}

bool starts_with(Bytes bytes, std::span<const unsigned char> signature) {
  return bytes.size() >= signature.size() && std::memcmp(bytes.data(), signature.data(), signature.size()) == 0;
}

std::string first_bytes(Bytes bytes) {
  if (bytes.empty()) return "an empty file";
  std::string text = "a file that begins with";
  for (const std::byte byte : bytes.first(std::min<std::size_t>(bytes.size(), 8)))
    text += fmt::format(" {:02X}", static_cast<unsigned>(byte));
  return text;
}

}  // namespace

Image decode_image(std::span<const std::byte> bytes, const std::string& place) {
  constexpr unsigned char kJpegSignature[] = {0xFF, 0xD8, 0xFF};
  if (starts_with(bytes, kJpegSignature)) return decode_jpeg(bytes, place);
  if (starts_with(bytes, kPngSignature)) return decode_png(bytes, place);
  throw InvalidInput(place, "must be a JPEG or PNG file (FF D8 FF or 89 50 4E 47 0D 0A 1A 0A)", first_bytes(bytes));
}

}  // namespace frostpipe
