#include "executor/data/image_files.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tests/executor/data/reference_pictures.h"
#include "tests/support/reference_data.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

using ImageFilesTest = test::ScratchFolderTest;
using Json = nlohmann::json;
using test::decode;
using test::image_of;
using test::largest_difference;
using test::reference_file;

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<std::uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

/// Corrects the checksums of a PNG file, so that they do not reveal the damage.
void mend_checksums(std::string& png) {
  const auto byte = [&](std::size_t at) { return std::size_t{static_cast<std::uint8_t>(png[at])}; };
  for (std::size_t at = 8; at + 12 <= png.size();) {
    const std::size_t size = (byte(at) << 24) | (byte(at + 1) << 16) | (byte(at + 2) << 8) | byte(at + 3);
    if (size > png.size() - at - 12) return;
    png.replace(at + 8 + size, 4, big_endian(crc32(std::string_view(png).substr(at + 4, size + 4))));
    at += size + 12;
  }
}

TEST_F(ImageFilesTest, DecodesEveryKindOfFileAsPillowDoes) {
  ASSERT_GE(test::reference_data("images_reference.json")["files"].size(), 44u);
  for (const Json& file : test::reference_data("images_reference.json")["files"]) {
    const std::string name = file["name"];
    const Image expected = image_of(file["height"], file["width"], file["pixels"]);
    // Libraries may round the cosine transform and the colours of a JPEG image differently.
    EXPECT_LE(largest_difference(decode(test::bytes_of_hex(file["file"])), expected), name.starts_with("JPEG") ? 2 : 0)
        << name;
  }
}

TEST_F(ImageFilesTest, RefusesOtherFormats) {
  EXPECT_EQ(message_of([] { decode(""); }),
            "file: must be a JPEG or PNG file (FF D8 FF or 89 50 4E 47 0D 0A 1A 0A), is an empty file");
  EXPECT_EQ(
      message_of([] { decode("GIF89a-and-so-on"); }),
      "file: must be a JPEG or PNG file (FF D8 FF or 89 50 4E 47 0D 0A 1A 0A), is a file that begins with 47 49 46 "
      "38 39 61 2D 61");
}

TEST_F(ImageFilesTest, EveryTruncatedFileIsAnError) {
  for (const Json& file : test::reference_data("images_reference.json")["files"]) {
    const std::string content = test::bytes_of_hex(file["file"]);
    for (std::size_t size = 0; size < content.size(); ++size)
      ASSERT_THROW(decode(content.substr(0, size)), InvalidInput) << file["name"] << " cut to " << size << " bytes";
  }
}

TEST_F(ImageFilesTest, MessagesOfDamageNameFileAndReason) {
  std::string jpeg = reference_file("JPEG 4:2:0");
  EXPECT_EQ(message_of([&] { decode(jpeg.substr(0, jpeg.size() - 2)); }),
            "file: cannot be decoded as JPEG: Premature end of JPEG file");
  std::string png = reference_file("PNG RGB");
  EXPECT_EQ(message_of([&] { decode(png.substr(0, png.size() - 4)); }),
            "file: cannot be decoded as PNG: the file ends too early");
  png[png.size() - 13] ^= 1;  // 12 bytes of IEND follow the checksum of IDAT
  EXPECT_EQ(message_of([&] { decode(png); }), "file: cannot be decoded as PNG: IDAT: CRC error");
}

TEST_F(ImageFilesTest, OneFlippedBitOfAPngFileNeverGivesOtherPixels) {
  for (const char* const name : {"PNG RGB", "PNG with a palette", "PNG RGB of 16 bits, interlaced"}) {
    const std::string content = reference_file(name);
    const Image expected = decode(content);
    for (std::size_t bit = 0; bit < 8 * content.size(); ++bit) {
      std::string damaged = content;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      try {
        ASSERT_EQ(decode(damaged), expected) << name << ", bit " << bit;
      } catch (const InvalidInput&) {
      }
    }
  }
}

TEST_F(ImageFilesTest, BytesTooManyAreNoDamage) {
  for (const char* const name : {"JPEG 4:2:0", "PNG RGB"}) {
    const std::string content = reference_file(name);
    EXPECT_EQ(decode(content + "appended"), decode(content));
  }
  // "Corrupt JPEG data: 4 extraneous bytes before marker 0xd9", as in some files of ImageNet.
  std::string padded = reference_file("JPEG 4:2:0");
  padded.insert(padded.size() - 2, 4, '\0');
  EXPECT_EQ(decode(padded), decode(reference_file("JPEG 4:2:0")));
}

TEST_F(ImageFilesTest, SizesThatTheFileCannotHaveAreRefusedBeforeMemoryIsTaken) {
  const auto png_of = [&](std::uint32_t width, std::uint32_t height) {
    std::string png = reference_file("PNG RGB");
    png.replace(16, 8, big_endian(width) + big_endian(height));
    mend_checksums(png);
    return message_of([&] { decode(png); });
  };
  EXPECT_EQ(png_of(0x7FFFFFFF, 0x7FFFFFFF),
            "file: an image must have 1 to 64000000 pixels, is 2147483647 x 2147483647");
  EXPECT_EQ(png_of(8000, 8001), "file: an image must have 1 to 64000000 pixels, is 8000 x 8001");
  EXPECT_EQ(png_of(8000, 8000), "file: its bytes can hold at most " +
                                    std::to_string(reference_file("PNG RGB").size() * 344) + " pixels, is 8000 x 8000");
  EXPECT_EQ(png_of(0, 5).substr(0, 31), "file: cannot be decoded as PNG:");

  const auto jpeg_of = [&](std::uint32_t width, std::uint32_t height) {
    std::string jpeg = reference_file("JPEG 4:2:0");
    const std::size_t frame = jpeg.find("\xFF\xC0");
    jpeg.replace(frame + 5, 4, big_endian((height << 16) | width));
    return message_of([&] { decode(jpeg); });
  };
  EXPECT_EQ(jpeg_of(65500, 65500), "file: an image must have 1 to 64000000 pixels, is 65500 x 65500");
  EXPECT_EQ(jpeg_of(8000, 8000), "file: its bytes can hold at most " +
                                     std::to_string(reference_file("JPEG 4:2:0").size() * 4096) +
                                     " pixels, is 8000 x 8000");
  EXPECT_EQ(jpeg_of(0, 5).substr(0, 32), "file: cannot be decoded as JPEG:");
}

TEST_F(ImageFilesTest, ManyScansAreRefused) {
  // Repeats the first scan many times. It leaves no bits to a later scan (the last byte of its header), so that this is
  // allowed.
  const std::string jpeg = reference_file("JPEG, progressive");
  const std::size_t begin = jpeg.find("\xFF\xDA");
  std::string scan = jpeg.substr(begin, jpeg.find("\xFF\xC4", begin) - begin);
  scan.at(1 + static_cast<std::size_t>(scan.at(3))) = 0;
  const auto with_scans = [&](int count) {
    std::string content = jpeg.substr(0, begin);
    for (int i = 0; i < count; ++i) content += scan;
    return content + "\xFF\xD9";
  };
  EXPECT_EQ(decode(with_scans(100)), decode(with_scans(1)));
  EXPECT_EQ(message_of([&] { decode(with_scans(101)); }), "file: cannot be decoded as JPEG: more than 100 scans");
}

/// With sanitizers this shows that damage leads only to an error or to pixels.
TEST_F(ImageFilesTest, ChangedBytesAreAnErrorOrAnImage) {
  const Json& files = test::reference_data("images_reference.json")["files"];
  std::mt19937 random(1);
  int num_images = 0;
  constexpr int kCases = 10'000;
  for (int i = 0; i < kCases; ++i) {
    std::string content = test::bytes_of_hex(files[static_cast<std::size_t>(i) % files.size()]["file"]);
    for (std::uint32_t changes = 1 + random() % 4; changes > 0; --changes)
      content[random() % content.size()] = static_cast<char>(random());
    if (random() % 2 == 0 && content.starts_with("\x89PNG")) mend_checksums(content);
    try {
      const Image image = decode(content);
      ++num_images;
      ASSERT_EQ(image.pixels.size(),
                3 * static_cast<std::size_t>(image.height) * static_cast<std::size_t>(image.width));
    } catch (const InvalidInput&) {
    }
  }
  // Some cases are decoded to the end, some are not.
  EXPECT_GT(num_images, kCases / 20);
  EXPECT_LT(num_images, kCases - kCases / 20);
}

}  // namespace
}  // namespace frostpipe
