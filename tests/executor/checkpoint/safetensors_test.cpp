// Oracle: the format's definition (8 bytes little-endian header length, JSON header, row-major data), with bytes made
// by hand.
#include "executor/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "base/error.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

class SafetensorsTest : public test::ScratchFolderTest {
 protected:
  std::filesystem::path write(const std::string& header, const std::string& data, std::int64_t announced = -1) {
    const std::filesystem::path path = folder_ / "model.safetensors";
    std::ofstream file(path, std::ios::binary);
    const std::uint64_t size = announced < 0 ? header.size() : static_cast<std::uint64_t>(announced);
    file.write(reinterpret_cast<const char*>(&size), 8);
    file << header << data;
    return path;
  }
  std::string error_of(const std::filesystem::path& path) {
    return message_of([&] { SafetensorsFile file(path); });
  }
};

TEST_F(SafetensorsTest, ReadsAFileMadeByHand) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const SafetensorsFile file(
      write(R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})",
            std::string(reinterpret_cast<const char*>(values), 24)));
  const StoredTensor& tensor = file.tensor("w", {2, 3});
  EXPECT_EQ(tensor.dtype, "F32");
  EXPECT_EQ(std::memcmp(tensor.data.data(), values, 24), 0);
  EXPECT_EQ(file.tensors().size(), 1u);
  EXPECT_THROW(file.tensor("w", {3, 2}), InvalidInput);
  EXPECT_THROW(file.tensor("missing", {1}), InvalidInput);
}

TEST_F(SafetensorsTest, BrokenFilesAreNamedWithRuleAndValue) {
  using testing::HasSubstr;
  const std::string tensor = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_THAT(error_of(write(tensor, "1234")),
              HasSubstr("tensor w: data_offsets must lie within the file's 4 data bytes"));
  EXPECT_THAT(error_of(write(tensor, "12345678", 1 << 20)), HasSubstr("header length must be at most"));
  EXPECT_THAT(error_of(write("{\"w\":", "12345678")), HasSubstr("header: line 1, column 6: is not valid JSON"));
  EXPECT_THAT(error_of(write("[]", "12345678")), HasSubstr("header must be a JSON object, is array"));
  EXPECT_THAT(error_of(write(R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "12345678")),
              HasSubstr("must have 12 bytes"));
  EXPECT_THAT(error_of(write(R"({"w":{"shape":[3]}})", "")),
              HasSubstr("tensor w: must have the field dtype, is missing"));
  EXPECT_THAT(error_of(folder_ / "nothing"), HasSubstr("nothing"));
  std::ofstream(folder_ / "empty");
  EXPECT_THAT(error_of(folder_ / "empty"), HasSubstr("an empty file"));
  EXPECT_EQ(error_of(file("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")),
            "model.safetensors: must be the file itself, which `git lfs pull` in its folder fetches, is a Git LFS "
            "pointer to it");
}

TEST_F(SafetensorsTest, FieldsOfOtherTypesAreNamedInOurOwnWords) {
  const auto refusal = [&](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return error_of(write(R"({"w":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
                          "12345678"));
  };
  const std::string whole = "must be a list of whole numbers";
  using testing::HasSubstr;
  EXPECT_THAT(refusal("7", "[2]", "[0,8]"), HasSubstr("tensor w: dtype: must be a string, is 7"));
  EXPECT_EQ(
      refusal("\"F8_E4M3\"", "[8]", "[0,8]"),
      "model.safetensors: tensor w: dtype: must be one of BF16, BOOL, F16, F32, F64, I16, I32, I64, I8, U16, U32, "
      "U64, U8 (save the model in one of these dtypes), is \"F8_E4M3\"");
  EXPECT_THAT(refusal("\"F32\"", "2", "[0,8]"), HasSubstr("tensor w: shape: " + whole));
  EXPECT_THAT(refusal("\"F32\"", "{\"a\":2}", "[0,8]"), HasSubstr("tensor w: shape: " + whole));
  EXPECT_THAT(refusal("\"F32\"", "[-2]", "[0,8]"), HasSubstr("tensor w: shape: " + whole));
  EXPECT_THAT(refusal("\"F32\"", "[2.5]", "[0,8]"), HasSubstr("tensor w: shape: " + whole));
  EXPECT_THAT(refusal("\"F32\"", "[2]", "[null,8]"), HasSubstr("tensor w: data_offsets: " + whole));
  EXPECT_THAT(refusal("\"F32\"", "[2]", "[0,18446744073709551615]"), HasSubstr("tensor w: data_offsets: " + whole));
  // 4 * 2^62 * 2^62 is 2^126, whose last 64 bits are 0
  EXPECT_THAT(refusal("\"F32\"", "[4611686018427387904,4611686018427387904]", "[0,0]"),
              HasSubstr("tensor w: must have more than 2^64 bytes"));
  EXPECT_THAT(error_of(write(R"({"w":null})", "")), HasSubstr("tensor w: must be an object of dtype"));
}

TEST_F(SafetensorsTest, WriterAndReaderAreInverse) {
  const std::filesystem::path path = folder_ / "out" / "model.safetensors";
  const double a[] = {1.5, -2};
  const float b[] = {3};
  SafetensorsWriter writer(path, {{"a", "F64", {2}}, {"b", "F32", {}}});
  writer.write(std::as_bytes(std::span(a)));
  EXPECT_FALSE(std::filesystem::exists(path)) << "a file appears only when it is whole";
  writer.write(std::as_bytes(std::span(b)));
  writer.finish();
  const SafetensorsFile file(path);
  EXPECT_EQ(std::memcmp(file.tensor("a", {2}).data.data(), a, 16), 0);
  EXPECT_EQ(std::memcmp(file.tensor("b", {}).data.data(), b, 4), 0);
}

TEST_F(SafetensorsTest, APipeInAFilesPlaceIsRefused) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(error_of(folder_ / "pipe"),
            "pipe: must be a regular file, is a pipe");  // and the reader does not wait for it
}

TEST_F(SafetensorsTest, AHeaderIsOfBoundedSize) {
  const std::filesystem::path path = write("{}", "", std::int64_t{1} << 29);
  std::filesystem::resize_file(path, std::uintmax_t{1} << 30);  // with a hole
  EXPECT_EQ(error_of(path), "model.safetensors: header length must be at most 100000000, is 536870912");
}

TEST_F(SafetensorsTest, ALinkInAFilesPlaceIsReplacedAndItsTargetUntouched) {
  const std::filesystem::path target = file("target", "somebody's"), path = folder_ / "model.safetensors";
  std::filesystem::create_symlink(target, path);
  std::filesystem::create_symlink(target, folder_ / "model.safetensors.part");
  SafetensorsWriter writer(path, {{"b", "F32", {}}});
  const float b[] = {3};
  writer.write(std::as_bytes(std::span(b)));
  writer.finish();
  EXPECT_FALSE(std::filesystem::is_symlink(path));
  EXPECT_EQ(std::filesystem::file_size(target), 10u);
  EXPECT_EQ(SafetensorsFile(path).tensors().size(), 1u);
}

TEST_F(SafetensorsTest, AnUnfinishedWriteLeavesNothing) {
  { SafetensorsWriter writer(folder_ / "model.safetensors", {{"a", "F32", {1}}}); }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

}  // namespace
}  // namespace frostpipe
