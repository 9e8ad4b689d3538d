#include "executor/run_folder/scalar_log.h"

#include <bit>
#include <boost/crc.hpp>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/files.h"

namespace frostpipe {
namespace {

static_assert(std::endian::native == std::endian::little, "event files are little-endian");

template <typename Value>
std::string bytes_of(Value value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// Returns the masked CRC-32C of TensorFlow's records.
std::uint32_t masked_checksum(std::string_view data) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> checksum;
  checksum.process_bytes(data.data(), data.size());
  return std::rotr(static_cast<std::uint32_t>(checksum.checksum()), 15) + 0xA282EAD8u;
}

// Protocol buffers' wire format for the few fields of tensorflow.Event that are used.

std::string varint(std::uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}

enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

std::string field(int number, Wire wire, const std::string& content) {
  return varint(static_cast<std::uint64_t>(number) << 3 | static_cast<std::uint64_t>(wire)) +
         (wire == Wire::bytes ? varint(content.size()) : "") + content;
}

std::string event(double wall_time, const std::string& rest) {
  return field(1, Wire::fixed64, bytes_of(wall_time)) + rest;
}

std::string scalars_event(double wall_time, int step, const std::vector<NamedValue>& values) {
  std::string summary;
  for (const NamedValue& value : values) {
    summary +=
        field(1, Wire::bytes,
              field(1, Wire::bytes, value.name) + field(2, Wire::fixed32, bytes_of(static_cast<float>(value.value))));
  }
  return event(wall_time,
               field(2, Wire::varint, varint(static_cast<std::uint64_t>(step))) + field(5, Wire::bytes, summary));
}

void append(const std::filesystem::path& path, const std::string& head, const std::string& content) {
  std::error_code none;
  std::filesystem::create_directories(path.parent_path(), none);
  const bool is_new = !std::filesystem::exists(path, none) || std::filesystem::file_size(path, none) == 0;
  append_to_file(path, (is_new ? head : "") + content);  // one write
}

}  // namespace

std::string event_record(std::string_view data) {
  const std::string length = bytes_of(static_cast<std::uint64_t>(data.size()));
  return length + bytes_of(masked_checksum(length)) + std::string(data) + bytes_of(masked_checksum(data));
}

void ScalarLog::write(int step, const std::vector<NamedValue>& values) const {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  nlohmann::ordered_json line{{"step", step}, {"wall_time", now}};
  for (const NamedValue& value : values)
    line[value.name] = std::isfinite(value.value) ? nlohmann::ordered_json(value.value) : nlohmann::ordered_json();
  append(folder_ / "scalars.jsonl", "", line.dump() + "\n");
  append(folder_ / "tensorboard" / "events.out.tfevents.frostpipe",
         event_record(event(now, field(3, Wire::bytes, "brain.Event:2"))),
         event_record(scalars_event(now, step, values)));
}

void ScalarLog::begin_anew() const {
  std::error_code none;
  std::filesystem::remove(folder_ / "scalars.jsonl", none);
  std::filesystem::remove_all(folder_ / "tensorboard", none);
}

}  // namespace frostpipe
