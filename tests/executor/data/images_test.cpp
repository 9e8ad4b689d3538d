#include "executor/data/images.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "executor/data/image_files.h"
#include "executor/data/image_transforms.h"
#include "profiles/error.h"
#include "tests/support/reference_data.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

// ---- Helpers ------------------------------------------------------------------------------------

Image image_of(int height, int width, const std::string& hex) {
  const std::string bytes = test::bytes_of_hex(hex);
  return {.height = height, .width = width, .pixels = {bytes.begin(), bytes.end()}};
}

std::string reference_file(std::string_view name) {
  for (const Json& file : test::reference_data("images_reference.json")["files"])
    if (file["name"] == name) return test::bytes_of_hex(file["file"]);
  throw std::logic_error("no such file in images_reference.json: " + std::string(name));
}

Image decode(std::string_view bytes) { return decode_image(std::as_bytes(std::span(bytes)), "file"); }

int largest_difference(const Image& a, const Image& b) {
  if (a.height != b.height || a.width != b.width || a.pixels.size() != b.pixels.size()) return 256;
  int largest = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  return largest;
}

/// As picture() in scripts/reference/images.py: full of detail.
Image picture(int height, int width) {
  Image image{.height = height, .width = width};
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        image.pixels.push_back(static_cast<std::uint8_t>(x * x * 3 + y * y * 5 + x * y * 7 + c * 83));
  return image;
}

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

/// Makes the checksums of a PNG file right again, so that damage gets past them.
void mend_checksums(std::string& png) {
  const auto byte = [&](std::size_t at) { return std::size_t{static_cast<std::uint8_t>(png[at])}; };
  for (std::size_t at = 8; at + 12 <= png.size();) {
    const std::size_t size = (byte(at) << 24) | (byte(at + 1) << 16) | (byte(at + 2) << 8) | byte(at + 3);
    if (size > png.size() - at - 12) return;
    png.replace(at + 8 + size, 4, big_endian(crc32(std::string_view(png).substr(at + 4, size + 4))));
    at += size + 12;
  }
}

class ImagesTest : public test::ScratchFolderTest {
 protected:
  std::string message_for(const fs::path& path) const {
    return message_of([&] { open_images(path); });
  }
};

// ---- Decoding -----------------------------------------------------------------------------------

TEST_F(ImagesTest, DecodesEveryKindOfFileAsPillowDoes) {
  ASSERT_GE(test::reference_data("images_reference.json")["files"].size(), 39u);
  for (const Json& file : test::reference_data("images_reference.json")["files"]) {
    const std::string name = file["name"];
    const Image expected = image_of(file["height"], file["width"], file["pixels"]);
    // Libraries may round the cosine transform and the colours of a JPEG image differently.
    EXPECT_LE(largest_difference(decode(test::bytes_of_hex(file["file"])), expected), name.starts_with("JPEG") ? 2 : 0)
        << name;
  }
}

TEST_F(ImagesTest, RefusesOtherFormats) {
  EXPECT_EQ(message_of([] { decode(""); }),
            "file: must be a JPEG or PNG file (FF D8 FF or 89 50 4E 47 0D 0A 1A 0A), is an empty file");
  EXPECT_EQ(
      message_of([] { decode("GIF89a-and-so-on"); }),
      "file: must be a JPEG or PNG file (FF D8 FF or 89 50 4E 47 0D 0A 1A 0A), is a file that begins with 47 49 46 "
      "38 39 61 2D 61");
  const std::string cmyk = test::bytes_of_hex(test::reference_data("images_reference.json")["refused"][0]["file"]);
  EXPECT_EQ(message_of([&] { decode(cmyk); }), "file: a JPEG image must be grey, RGB or YCbCr, is CMYK");
}

TEST_F(ImagesTest, EveryTruncatedFileIsAnError) {
  for (const Json& file : test::reference_data("images_reference.json")["files"]) {
    const std::string content = test::bytes_of_hex(file["file"]);
    for (std::size_t size = 0; size < content.size(); ++size)
      ASSERT_THROW(decode(content.substr(0, size)), InvalidInput) << file["name"] << " cut to " << size << " bytes";
  }
}

TEST_F(ImagesTest, MessagesOfDamageNameFileAndReason) {
  std::string jpeg = reference_file("JPEG 4:2:0");
  EXPECT_EQ(message_of([&] { decode(jpeg.substr(0, jpeg.size() - 2)); }),
            "file: cannot be decoded as JPEG: Premature end of JPEG file");
  std::string png = reference_file("PNG RGB");
  EXPECT_EQ(message_of([&] { decode(png.substr(0, png.size() - 4)); }),
            "file: cannot be decoded as PNG: the file ends too early");
  png[png.size() - 13] ^= 1;  // 12 bytes of IEND follow the checksum of IDAT
  EXPECT_EQ(message_of([&] { decode(png); }), "file: cannot be decoded as PNG: IDAT: CRC error");
}

TEST_F(ImagesTest, OneFlippedBitOfAPngFileNeverGivesOtherPixels) {
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

TEST_F(ImagesTest, BytesTooManyAreNoDamage) {
  for (const char* const name : {"JPEG 4:2:0", "PNG RGB"}) {
    const std::string content = reference_file(name);
    EXPECT_EQ(decode(content + "appended"), decode(content));
  }
  // "Corrupt JPEG data: 4 extraneous bytes before marker 0xd9", of which there are some in ImageNet.
  std::string padded = reference_file("JPEG 4:2:0");
  padded.insert(padded.size() - 2, 4, '\0');
  EXPECT_EQ(decode(padded), decode(reference_file("JPEG 4:2:0")));
}

TEST_F(ImagesTest, SizesThatTheFileCannotHaveAreRefusedBeforeMemoryIsTaken) {
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

TEST_F(ImagesTest, ManyScansAreRefused) {
  // The first scan again and again. It leaves no bits to a later one (the last byte of its head), so that it is
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

/// With sanitizers this shows that damage ends in an error or in pixels, and in nothing else.
TEST_F(ImagesTest, ChangedBytesAreAnErrorOrAnImage) {
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
  // Some cases get to the end, some do not.
  EXPECT_GT(num_images, kCases / 20);
  EXPECT_LT(num_images, kCases - kCases / 20);
}

// ---- Resizing -----------------------------------------------------------------------------------

TEST_F(ImagesTest, ResizesAsPillowDoes) {
  for (const Json& resized : test::reference_data("images_reference.json")["resized"]) {
    const int height = resized["new"][0], width = resized["new"][1];
    const Image result = resize(picture(resized["old"][0], resized["old"][1]), height, width);
    EXPECT_LE(largest_difference(result, image_of(height, width, resized["pixels"])), 1)
        << resized["old"] << " to " << resized["new"];
  }
}

TEST_F(ImagesTest, HalvingWeighsTheNeighboursToo) {
  // A triangle of width 4 around the middle of two pixels: 1/8, 3/8, 3/8, 1/8; at the border 3/7, 3/7, 1/7.
  const Image row{.height = 1,
                  .width = 6,
                  .pixels = {80, 0, 0, 0, 0, 0,  // red
                             0, 0, 80, 0, 0, 0,  // green
                             0, 80, 0, 0, 0, 70}};
  EXPECT_EQ(resize(row, 1, 3).pixels, (std::vector<std::uint8_t>{34, 0, 0, 11, 30, 0, 34, 10, 30}));
}

TEST_F(ImagesTest, ResizingKeepsOneColour) {
  const Image grey{.height = 7, .width = 5, .pixels = std::vector<std::uint8_t>(105, 255)};
  for (const auto& [height, width] : {std::pair(1, 1), std::pair(3, 50), std::pair(200, 2), std::pair(7, 6)})
    EXPECT_EQ(resize(grey, height, width).pixels,
              std::vector<std::uint8_t>(static_cast<std::size_t>(3 * height * width), 255));
}

// ---- Augmentation -------------------------------------------------------------------------------

/// top, left, mirrored: where the window of a picture lies.
using Change = std::tuple<int, int, bool>;

/// By what an augmentation has to be, written as simply as possible.
Image changed(const Image& image, const Change& change) {
  const auto [top, left, is_mirrored] = change;
  Image result{.height = image.height, .width = image.width};
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < image.height; ++y)
      for (int x = 0; x < image.width; ++x) {
        const int from_y = y + top, from_x = (is_mirrored ? image.width - 1 - x : x) + left;
        const bool is_inside = from_y >= 0 && from_y < image.height && from_x >= 0 && from_x < image.width;
        const int at = (c * image.height + from_y) * image.width + from_x;
        result.pixels.push_back(is_inside ? image.pixels[static_cast<std::size_t>(at)] : 0);
      }
  return result;
}

/// Every pixel unlike every other and none zero, so that a change can be told from its result.
Image numbered() {
  Image image{.height = 8, .width = 9};
  for (int i = 0; i < 3 * 8 * 9; ++i) image.pixels.push_back(static_cast<std::uint8_t>(i + 1));
  return image;
}

Change change_of(const Image& result, int padding) {
  for (int top = -padding; top <= padding; ++top)
    for (int left = -padding; left <= padding; ++left)
      for (const bool is_mirrored : {false, true})
        if (result == changed(numbered(), {top, left, is_mirrored})) return {top, left, is_mirrored};
  ADD_FAILURE() << "neither crop nor mirror image";
  return {};
}

TEST_F(ImagesTest, WithoutAugmentationAnImageStaysAsItIs) { EXPECT_EQ(augment(numbered(), {}, 1, 2, 3), numbered()); }

// Worked out by a second program in another language.
TEST_F(ImagesTest, AugmentationIsTheSameOnEveryPlatform) {
  const auto change = [](std::uint64_t seed, int epoch, int sample) {
    return change_of(augment(numbered(), {.crop_padding = 4, .flip = true}, seed, epoch, sample), 4);
  };
  EXPECT_EQ(change(42, 0, 0), Change(-3, -4, true));
  EXPECT_EQ(change(42, 0, 1), Change(-3, 1, true));
  EXPECT_EQ(change(42, 0, 2), Change(4, 2, true));
  EXPECT_EQ(change(42, 0, 3), Change(2, 1, false));
  EXPECT_EQ(change(42, 1, 0), Change(-2, 2, false));
  EXPECT_EQ(change(42, 1, 1), Change(2, -2, true));
  EXPECT_EQ(change(~std::uint64_t{0}, 7, 49999), Change(4, -3, false));
}

TEST_F(ImagesTest, EveryWindowIsAboutEquallyLikelyAndHalfAreMirrored) {
  std::map<Change, int> seen;
  for (int epoch = 0; epoch < 10; ++epoch)
    for (int sample = 0; sample < 500; ++sample)
      ++seen[change_of(augment(numbered(), {.crop_padding = 2, .flip = true}, 5, epoch, sample), 2)];
  // 5 x 5 windows, mirrored or not. Expected 100 of each; standard deviation sqrt(5000 / 50 * 49 / 50) = 9.9.
  EXPECT_EQ(seen.size(), 50u);
  for (const auto& [change, count] : seen) EXPECT_NEAR(count, 100, 5 * 10);
}

TEST_F(ImagesTest, MirroringAndCroppingDoNotAlterEachOther) {
  for (int sample = 0; sample < 50; ++sample) {
    const auto change = [&](const Augmentation& augmentation) {
      return change_of(augment(numbered(), augmentation, 9, 0, sample), augmentation.crop_padding);
    };
    const auto [top, left, is_mirrored] = change({.crop_padding = 3, .flip = true});
    EXPECT_EQ(change({.crop_padding = 3, .flip = false}), Change(top, left, false));
    EXPECT_EQ(change({.crop_padding = 0, .flip = true}), Change(0, 0, is_mirrored));
  }
}

TEST_F(ImagesTest, PaddingMayBeLargerThanTheImage) {
  const Augmentation far{.crop_padding = 1'000'000'000, .flip = true};
  EXPECT_EQ(augment(numbered(), far, 1, 0, 0).pixels, std::vector<std::uint8_t>(numbered().pixels.size(), 0));
  for (int sample = 0; sample < 500; ++sample)
    change_of(augment(numbered(), {.crop_padding = 10, .flip = true}, 1, 0, sample), 10);
}

TEST_F(ImagesTest, NormalisesEveryChannelByItsOwnNumbers) {
  const Image image{.height = 1, .width = 2, .pixels = {0, 255, 51, 102, 255, 0}};
  std::array<float, 6> out{};
  normalise(image, {0.5F, 0.2F, 0.0F}, {0.5F, 0.1F, 2.0F}, out);
  const std::array<float, 6> expected = {-1, 1, 0, 2, 0.5F, 0};
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-6);
}

// ---- CIFAR --------------------------------------------------------------------------------------

/// Pixel j of record i is (i * 31 + j) mod 256.
std::string cifar_record(const Strings& labels, int i) {
  std::string record;
  for (const std::string& label : labels) record.push_back(static_cast<char>(std::stoi(label)));
  for (int j = 0; j < 3072; ++j) record.push_back(static_cast<char>(i * 31 + j));
  return record;
}

TEST_F(ImagesTest, ReadsCifar10) {
  const ImageData data = open_images(file("data.bin", cifar_record({"9"}, 0) + cifar_record({"0"}, 1)));
  ASSERT_EQ(data.size(), 2);
  EXPECT_EQ(data.label(0), 9);
  EXPECT_EQ(data.label(1), 0);
  EXPECT_EQ(data.label_names(), (Strings{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));
  const Image image = data.load(1);
  EXPECT_EQ(image.height, 32);
  EXPECT_EQ(image.width, 32);
  ASSERT_EQ(image.pixels.size(), 3072u);
  for (std::size_t j = 0; j < 3072; ++j) ASSERT_EQ(image.pixels[j], (31 + j) % 256);
  EXPECT_EQ(data.place(1), (folder_ / "data.bin").string() + ": record 1");
}

TEST_F(ImagesTest, OfCifar100TheFineLabelCounts) {
  const ImageData data = open_images(file("data.bin", cifar_record({"19", "99"}, 0) + cifar_record({"3", "42"}, 1)));
  ASSERT_EQ(data.size(), 2);
  EXPECT_EQ(data.label(0), 99);
  EXPECT_EQ(data.label(1), 42);
  EXPECT_EQ(data.label_names().size(), 100u);
  EXPECT_EQ(data.load(1).pixels.front(), 31);
  EXPECT_EQ(data.load(1).pixels.back(), (31 + 3071) % 256);
}

TEST_F(ImagesTest, NamesCifarLabelsByTheFileBeside) {
  file("ten/batches.meta.txt", "airplane\nautomobile\r\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
  const fs::path ten = file("ten/data.bin", cifar_record({"3"}, 0));
  EXPECT_EQ(open_images(ten).label_names(),
            (Strings{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}));
  std::string names;
  for (int i = 0; i < 100; ++i) names += "fine" + std::to_string(i) + "\n";
  file("hundred/fine_label_names.txt", names);
  file("hundred/batches.meta.txt", "of no matter to CIFAR-100");
  const fs::path hundred = file("hundred/data.bin", cifar_record({"0", "7"}, 0));
  EXPECT_EQ(open_images(hundred).label_names().at(7), "fine7");

  file("ten/batches.meta.txt", "airplane\nautomobile\n");
  EXPECT_EQ(message_for(ten), "ten/batches.meta.txt: must have 10 lines, a label's name each, is with 2");
  file("ten/batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\nb\nj\n");
  EXPECT_EQ(message_for(ten), "ten/batches.meta.txt: names of labels must differ, is twice \"b\"");
}

TEST_F(ImagesTest, CifarErrorsNameTheRecord) {
  EXPECT_EQ(message_for(file("data.bin", cifar_record({"9"}, 0) + cifar_record({"10"}, 1))),
            "data.bin: record 1: the label must be < 10, is 10");
  EXPECT_EQ(message_for(file("data.bin", cifar_record({"0", "100"}, 0))),
            "data.bin: record 0: the label must be < 100, is 100");
  EXPECT_EQ(message_for(file("data.bin", cifar_record({"20", "1"}, 0))),
            "data.bin: record 0: the coarse label must be < 20, is 20");
  EXPECT_EQ(message_for(file("data.bin", "")),
            "data.bin: a CIFAR file must have a multiple of 3073 (CIFAR-10) or 3074 bytes (CIFAR-100), is 0");
  EXPECT_EQ(message_for(file("data.bin", cifar_record({"1"}, 0) + "x" + cifar_record({"1"}, 0))),
            "data.bin: a CIFAR file must have a multiple of 3073 (CIFAR-10) or 3074 bytes (CIFAR-100), is 6147");
  EXPECT_EQ(message_for(folder_ / "missing.bin"), "missing.bin: cannot be read: No such file or directory");
  EXPECT_EQ(message_for("/dev/zero"),
            "/dev/zero: must be a folder of images or a binary file of CIFAR, is neither "
            "file nor folder");
}

TEST_F(ImagesTest, ASizeThatFitsBothKindsOfCifarIsDecidedByTheNames) {
  const std::string content(3073 * 3074, '\0');
  const auto size_of = [&](const std::string& name) { return open_images(file(name, content)).label_names().size(); };
  EXPECT_EQ(size_of("cifar-10-batches/train.bin"), 10u);
  EXPECT_EQ(size_of("cifar100/train.bin"), 100u);
  EXPECT_EQ(size_of("cifar100/train_10000.bin"), 100u);
  EXPECT_EQ(size_of("data/cifar10.bin"), 10u);
  const std::string rule =
      "is ambiguous: a file whose size fits both CIFAR-10 and CIFAR-100 must have either 10 or 100 in its name or its "
      "folder's, is ";
  EXPECT_EQ(message_for(file("data/train_10000.bin", content)),
            "data/train_10000.bin: " + rule + "\"train_10000.bin\" in \"data\" of 9446402 bytes");
  EXPECT_EQ(message_for(file("cifar10/cifar100.bin", content)),
            "cifar10/cifar100.bin: " + rule + "\"cifar100.bin\" in \"cifar10\" of 9446402 bytes");
}

// ---- Folders ------------------------------------------------------------------------------------

TEST_F(ImagesTest, ReadsAFolderPerLabelInOrderOfBytes) {
  const std::string red = reference_file("PNG of one pixel"), blue = reference_file("JPEG of one pixel");
  file("b/2.png", red);
  file("b/10.JPEG", blue);
  file("B/x.Jpg", blue);
  file("é/a.PNG", red);
  file("é/.hidden.txt");
  file(".git/whatever.txt");
  file("LICENSE.txt");
  const ImageData data = open_images(folder_);
  EXPECT_EQ(data.label_names(), (Strings{"B", "b", "é"}));
  ASSERT_EQ(data.size(), 4);
  std::vector<int> labels;
  for (int i = 0; i < data.size(); ++i) labels.push_back(data.label(i));
  EXPECT_EQ(labels, (std::vector<int>{0, 1, 1, 2}));
  const std::vector<Image> expected = {decode(blue), decode(blue), decode(red), decode(red)};
  for (int i = 0; i < data.size(); ++i) EXPECT_EQ(data.load(i), expected[static_cast<std::size_t>(i)]) << i;
}

TEST_F(ImagesTest, FolderErrorsNameTheFirstOffence) {
  EXPECT_EQ(message_for(folder_),
            "FOLDER: must have a sub-folder of images for each label (or be a binary file of CIFAR), is a folder "
            "without one");
  file("a/1.png");
  EXPECT_EQ(message_for(folder_), "FOLDER: must have at least two different labels, is all \"a\"");
  fs::create_directories(folder_ / "b");
  EXPECT_EQ(message_for(folder_), "b: a label's folder must hold an image, is without one");
  file("b/2.png");
  file("b/1.gif");
  EXPECT_EQ(message_for(folder_),
            "b/1.gif: a label's folder must hold nothing but files that end in .jpg, .jpeg or .png, is another file");
  fs::create_directories(folder_ / "a" / "0.png");
  EXPECT_EQ(message_for(folder_),
            "a/0.png: a label's folder must hold nothing but files that end in .jpg, .jpeg or .png, is a folder");
  file("0.jpg");
  EXPECT_EQ(message_for(folder_), "0.jpg: an image must lie in the folder of its label, is beside those");
}

TEST_F(ImagesTest, ADamagedFileIsFoundWhenItIsLoaded) {
  file("a/1.png", reference_file("PNG RGB"));
  file("b/2.png", "nothing");
  const ImageData data = open_images(folder_);
  EXPECT_EQ(data.load(0).width, 7);
  EXPECT_EQ(message_of([&] { data.load(1); }).substr(0, 37), "b/2.png: must be a JPEG or PNG file (");
  fs::remove(folder_ / "b/2.png");
  EXPECT_EQ(message_of([&] { data.load(1); }), "b/2.png: cannot be read: No such file or directory");
}

TEST_F(ImagesTest, TestDataTakesTheLabelsOfTheModel) {
  file("test/cat/1.png");
  file("test/ant/2.png");
  file("test/ant/3.png");
  const ImageData data = open_images(folder_ / "test", {"dog", "cat", "ant"});
  EXPECT_EQ(data.label_names(), (Strings{"dog", "cat", "ant"}));
  ASSERT_EQ(data.size(), 3);
  EXPECT_EQ(data.label(0), 2);
  EXPECT_EQ(data.label(2), 1);
  EXPECT_EQ(message_of([&] {
              open_images(folder_ / "test", {"dog", "cat"});
            }),
            "test/ant/2.png: the label must be one that the model knows (\"dog\", \"cat\"), is \"ant\"");

  const fs::path cifar = file("data.bin", cifar_record({"3"}, 0) + cifar_record({"5"}, 0));
  EXPECT_EQ(open_images(cifar, {"5", "3"}).label(0), 1);
  EXPECT_EQ(message_of([&] {
              open_images(cifar, {"0", "3"});
            }),
            "data.bin: record 1: the label must be one that the model knows (\"0\", \"3\"), is \"5\"");
}

TEST_F(ImagesTest, LoadsFromSeveralThreads) {
  const std::vector<std::string> names = {"JPEG 4:2:0", "JPEG, progressive", "PNG RGB, interlaced", "PNG RGB"};
  for (std::size_t i = 0; i < names.size(); ++i)
    file((i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + (i < 2 ? ".jpg" : ".png"), reference_file(names[i]));
  file("b/damaged.jpg", reference_file("JPEG 4:2:0").substr(0, 300));
  const ImageData data = open_images(folder_);
  const std::vector<Image> expected = {data.load(0), data.load(1), data.load(2), data.load(3)};
  std::atomic<int> num_wrong = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const int picture = (i + t) % 5;
        try {
          const Image image = data.load(picture);
          if (picture == 4 || image != expected[static_cast<std::size_t>(picture)]) ++num_wrong;
        } catch (const InvalidInput&) {
          if (picture != 4) ++num_wrong;
        }
      }
    });
  threads.clear();
  EXPECT_EQ(num_wrong, 0);
}

}  // namespace
}  // namespace frostpipe
