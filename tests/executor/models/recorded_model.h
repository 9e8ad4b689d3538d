#pragma once
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "executor/checkpoint/safetensors.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe::test {

/// The formula of the recorded weights, for tensor `number` of a file.
inline std::vector<float> values_of(std::int64_t count, int number, bool is_scale) {
  std::vector<float> values(count);
  for (std::int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(0.3 * std::sin(0.7 * static_cast<double>(i) + number) + (is_scale ? 1 : 0));
  return values;
}

inline std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

/// A folder for models whose weights follow a formula. The results of transformers with them are recorded
/// (models_reference.json).
class RecordedModelTest : public ScratchFolderTest {
 protected:
  void write_config(const nlohmann::json& config) { std::ofstream(folder_ / "config.json") << config; }

  /// Writes the files of a recorded model; `parts`: the number of weight files.
  void write_model(const nlohmann::json& recorded, int parts = 1) {
    write_config(recorded["config"]);
    nlohmann::json index;
    for (int part = 0; part < parts; ++part) {
      const std::string file = parts == 1 ? "model.safetensors" : "part-" + std::to_string(part) + ".safetensors";
      std::vector<SafetensorsWriter::Entry> entries;
      std::vector<std::vector<float>> contents;
      int number = 0;
      for (const auto& [name, shape] : recorded["shapes"].items()) {  // in order of their names, as recorded
        const auto sizes = shape.get<std::vector<std::int64_t>>();
        if (number % parts == part) {
          entries.push_back({name, "F32", sizes});
          contents.push_back(values_of(count_of(sizes), number, sizes.size() == 1 && name.ends_with("weight")));
          index["weight_map"][name] = file;
        }
        ++number;
      }
      SafetensorsWriter writer(folder_ / file, entries);
      for (const std::vector<float>& content : contents) writer.write(std::as_bytes(std::span(content)));
      writer.finish();
    }
    if (parts > 1) std::ofstream(folder_ / "model.safetensors.index.json") << index;
  }
};

}  // namespace frostpipe::test
