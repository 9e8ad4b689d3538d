#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/hash.h"
#include "base/units.h"

namespace frostpipe {

/// Larger models are saved in several files of at most this size, or of one larger tensor, as transformers does.
constexpr Bytes kMaxBytesOfWeightsFile = 5'000'000'000;

/// One tensor of a safetensors file. `dtype` is the format's: "F32", "F64", "BF16", "I64", ...
struct StoredTensor {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;  // row-major; valid as long as the file object
};

/// A memory-mapped safetensors file: the header's length (8 bytes, little-endian), the header in JSON, raw data.
class SafetensorsFile {
 public:
  /// Throws InvalidInput that names file, tensor, rule and value if there is no such file, if it is a Git LFS pointer,
  /// or if it breaks the format: it is truncated, the header is not JSON, or offsets lie outside the data or do not
  /// match shape and dtype. Tensors of an unknown dtype are refused, too. Throws RuntimeFailure if the file cannot
  /// be mapped.
  explicit SafetensorsFile(const std::filesystem::path& path);
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  /// Returns all bytes of the file.
  std::span<const std::byte> content() const { return content_; }
  /// Throws InvalidInput that names the file if it has no such tensor or the shape differs.
  const StoredTensor& tensor(const std::string& name, const std::vector<std::int64_t>& shape) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<const std::byte> mapping_;
  std::span<const std::byte> content_;
  std::map<std::string, StoredTensor> tensors_;
};

/// Writes a file tensor by tensor. The file appears only after finish() (AtomicFile).
class SafetensorsWriter {
 public:
  struct Entry {
    std::string name;
    std::string dtype;
    std::vector<std::int64_t> shape;
  };
  /// Writes the header. write() must then be called once for each entry, in the order of `entries`.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<Entry> entries);
  /// Writes the next tensor. Throws RuntimeFailure that names the path, for example if the disk is full.
  void write(std::span<const std::byte> data);
  void finish();
  /// Return size and hash of the whole file; valid after finish().
  Bytes bytes() const { return bytes_; }
  std::uint64_t hash() const { return hash_.value(); }

 private:
  void put(std::span<const std::byte> data);

  AtomicFile file_;
  std::vector<std::size_t> sizes_;
  std::size_t next_ = 0;
  StreamHash hash_;
  Bytes bytes_ = 0;
};

}  // namespace frostpipe
