#include "executor/checkpoint/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>

#include "base/error.h"
#include "base/error_values.h"
#include "base/git_lfs.h"
#include "base/parse_json.h"
#include "base/system_reason.h"

namespace frostpipe {
namespace {

/// Returns the bytes of a value by dtype.
const std::map<std::string, std::size_t>& bytes_of_dtypes() {
  static const std::map<std::string, std::size_t> bytes{{"F64", 8}, {"I64", 8}, {"U64", 8},  {"F32", 4}, {"I32", 4},
                                                        {"U32", 4}, {"F16", 2}, {"BF16", 2}, {"I16", 2}, {"U16", 2},
                                                        {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
  return bytes;
}

/// Returns the bytes of a tensor of a known dtype; nothing if they overflow.
std::optional<std::size_t> bytes_of(const std::string& dtype, const std::vector<std::int64_t>& shape) {
  std::size_t bytes = bytes_of_dtypes().at(dtype);
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes)) return std::nullopt;
  return bytes;
}

const nlohmann::json& field(const nlohmann::json& entry, const char* key, const std::string& place) {
  if (!entry.contains(key)) throw InvalidInput(place, fmt::format("must have the field {}", key), "missing");
  return entry[key];
}

std::vector<std::int64_t> whole_numbers(const nlohmann::json& entry, const char* key, const std::string& place) {
  const nlohmann::json& given = field(entry, key, place);
  if (!given.is_array()) throw InvalidInput(place + ": " + key, "must be a list of whole numbers", shown(given));
  std::vector<std::int64_t> numbers;
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  for (const nlohmann::json& number : given) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > kMax)
      throw InvalidInput(place + ": " + key, "must be a list of whole numbers from 0 to 2^63 - 1",
                         "with " + shown(number));
    numbers.push_back(number.get<std::int64_t>());
  }
  return numbers;
}

/// Checks and converts a tensor's entry in the header. `data` are the bytes of the file after the header.
StoredTensor stored_tensor(const nlohmann::json& entry, std::span<const std::byte> data, const std::string& place) {
  if (!entry.is_object()) throw InvalidInput(place, "must be an object of dtype, shape and data_offsets", shown(entry));
  const nlohmann::json& dtype = field(entry, "dtype", place);
  if (!dtype.is_string()) throw InvalidInput(place + ": dtype", "must be a string", shown(dtype));
  if (!bytes_of_dtypes().contains(dtype))
    throw InvalidInput(place + ": dtype",
                       fmt::format("must be one of {} (save the model in one of these dtypes)",
                                   fmt::join(std::views::keys(bytes_of_dtypes()), ", ")),
                       shown(dtype));
  StoredTensor tensor{dtype.get<std::string>(), whole_numbers(entry, "shape", place), {}};
  const std::vector<std::int64_t> offsets = whole_numbers(entry, "data_offsets", place);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || static_cast<std::size_t>(offsets[1]) > data.size())
    throw InvalidInput(
        place, fmt::format("data_offsets must lie within the file's {} data bytes (is it truncated?)", data.size()),
        fmt::format("[{}]", fmt::join(offsets, ", ")));
  const std::optional<std::size_t> expected = bytes_of(tensor.dtype, tensor.shape);
  const auto given = static_cast<std::size_t>(offsets[1] - offsets[0]);
  if (given != expected)
    throw InvalidInput(place,
                       fmt::format("must have {} bytes (dtype {}, shape [{}])",
                                   expected ? std::to_string(*expected) : "more than 2^64", tensor.dtype,
                                   fmt::join(tensor.shape, ", ")),
                       std::to_string(given));
  tensor.data = data.subspan(static_cast<std::size_t>(offsets[0]), given);
  return tensor;
}

/// Maps the file; the deleter unmaps it.
std::pair<std::shared_ptr<const std::byte>, std::size_t> map_file(const std::filesystem::path& path) {
  const Descriptor file = open_regular_file(path);
  struct stat status {};
  if (fstat(file.number(), &status) != 0)
    throw RuntimeFailure(fmt::format("{}: cannot be read: {}", path.string(), system_reason(errno)));
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) throw InvalidInput(path.string(), "must be a safetensors file", "an empty file");
  void* const data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (data == MAP_FAILED)
    throw RuntimeFailure(fmt::format("{}: cannot be mapped: {}", path.string(), system_reason(errno)));
  return {std::shared_ptr<const std::byte>(static_cast<const std::byte*>(data),
                                           [size](const std::byte* p) { munmap(const_cast<std::byte*>(p), size); }),
          size};
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path) {
  const auto [mapping, size] = map_file(path);
  mapping_ = mapping;
  content_ = {mapping.get(), size};
  refuse_git_lfs_pointer(path, {reinterpret_cast<const char*>(mapping.get()), size});
  if (size < 8)
    throw InvalidInput(path.string(), "must start with the 8-byte length of its header",
                       fmt::format("{} bytes long", size));
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, mapping.get(), 8);
  constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // limit of the safetensors library
  if (header_size > kMaxHeaderBytes)
    throw InvalidInput(path.string(), fmt::format("header length must be at most {}", kMaxHeaderBytes),
                       std::to_string(header_size));
  if (header_size > size - 8) {
    throw InvalidInput(path.string(),
                       fmt::format("header length must be at most {} (the file's size less 8)", size - 8),
                       std::to_string(header_size));
  }
  const auto* const text = reinterpret_cast<const char*>(mapping.get()) + 8;
  const auto header =
      parse_json<nlohmann::json>({text, static_cast<std::size_t>(header_size)}, path.string() + ": header");
  if (!header.is_object()) throw InvalidInput(path.string(), "header must be a JSON object", header.type_name());
  const std::span<const std::byte> data(mapping.get() + 8 + header_size, size - 8 - header_size);
  for (const auto& [name, entry] : header.items())
    if (name != "__metadata__") tensors_.emplace(name, stored_tensor(entry, data, path.string() + ": tensor " + name));
}

const StoredTensor& SafetensorsFile::tensor(const std::string& name, const std::vector<std::int64_t>& shape) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw InvalidInput(path_.string(), "must hold the tensor " + name, "missing");
  if (found->second.shape != shape) {
    throw InvalidInput(path_.string() + ": tensor " + name, fmt::format("must have shape [{}]", fmt::join(shape, ", ")),
                       fmt::format("[{}]", fmt::join(found->second.shape, ", ")));
  }
  return found->second;
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::vector<Entry> entries) : file_(path) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::size_t offset = 0;
  for (const Entry& entry : entries) {
    sizes_.push_back(bytes_of(entry.dtype, entry.shape).value());
    header[entry.name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {offset, offset + sizes_.back()}}};
    offset += sizes_.back();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // aligns the data to 8 bytes
  const std::uint64_t header_size = text.size();
  put(std::as_bytes(std::span(&header_size, 1)));
  put(std::as_bytes(std::span(text)));
}

void SafetensorsWriter::write(std::span<const std::byte> data) {
  FROSTPIPE_CHECK(next_ < sizes_.size() && data.size() == sizes_[next_],
                  "tensors are written in the order and size announced");
  ++next_;
  put(data);
}

void SafetensorsWriter::put(std::span<const std::byte> data) {
  file_.write({reinterpret_cast<const char*>(data.data()), data.size()});
  hash_.add(data);
  bytes_ += static_cast<Bytes>(data.size());
}

void SafetensorsWriter::finish() {
  FROSTPIPE_CHECK(next_ == sizes_.size(), "every announced tensor is written");
  file_.finish();
}

}  // namespace frostpipe
