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

/// One tensor of a safetensors file. `dtype` is the format's: "F32", "F64", "BF16", "I64", ...
struct StoredTensor {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;  // row-major, lives as long as the file object
};

/// A safetensors file, mapped: 8 bytes little-endian header length, JSON header, raw data.
class SafetensorsFile {
 public:
  /// Throws InvalidInput that names file, tensor, rule and value for a file that breaks the format: truncated, header
  /// that is not JSON, offsets outside the data or that do not match shape and dtype.
  explicit SafetensorsFile(const std::filesystem::path& path);
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  /// The file's bytes, all of them.
  std::span<const std::byte> content() const { return content_; }
  /// Throws InvalidInput naming the file if there is no such tensor, or its shape is another one.
  const StoredTensor& tensor(const std::string& name, const std::vector<std::int64_t>& shape) const;

 private:
  std::filesystem::path path_;
  std::shared_ptr<const std::byte> mapping_;
  std::span<const std::byte> content_;
  std::map<std::string, StoredTensor> tensors_;
};

/// Writes a file tensor by tensor; complete only after finish(), an AtomicFile.
class SafetensorsWriter {
 public:
  struct Entry {
    std::string name;
    std::string dtype;
    std::vector<std::int64_t> shape;
  };
  /// The order of `entries` is the order in which write() is called.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<Entry> entries);
  /// The next tensor's bytes. Throws RuntimeFailure (full disk) naming the path.
  void write(std::span<const std::byte> data);
  void finish();
  /// Of the whole file, after finish().
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
