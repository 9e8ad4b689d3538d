#include "executor/nets/resnet_config.h"

#include <fmt/format.h>

#include "executor/models/folder/config_fields.h"
#include "profiles/error.h"

namespace frostpipe {
namespace {

constexpr int kReduction = 4;  // of a bottleneck's channels

int small(const ConfigFields& fields, const char* key, int otherwise, const std::string& file) {
  constexpr int kMost = 1 << 16;
  const std::int64_t value = fields.positive(key, otherwise);
  if (value > kMost)
    throw InvalidInput(file + ": " + key, fmt::format("must be at most {}", kMost), std::to_string(value));
  return static_cast<int>(value);
}

}  // namespace

ResNetShape resnet_from_config(const std::string& text, const std::string& file, int picture_size) {
  const ConfigFields fields(text, file);
  fields.require("model_type", "resnet");
  fields.require("hidden_act", "relu");
  fields.require("num_channels", 3);
  ResNetShape shape{.picture_size = picture_size};
  shape.embedding_size = small(fields, "embedding_size", shape.embedding_size, file);
  shape.hidden_sizes = fields.positives("hidden_sizes", shape.hidden_sizes);
  shape.depths = fields.positives("depths", shape.depths);
  if (shape.depths.size() != shape.hidden_sizes.size())
    throw InvalidInput(file + ": depths",
                       fmt::format("must have one of each of the {} hidden_sizes", shape.hidden_sizes.size()),
                       std::to_string(shape.depths.size()));
  const std::string type = fields.text("layer_type");
  if (type != "" && type != "basic" && type != "bottleneck")
    throw InvalidInput(file + ": layer_type", "must be basic or bottleneck", "\"" + type + "\"");
  shape.bottleneck = type != "basic";
  shape.downsample_in_first_stage = fields.flag("downsample_in_first_stage", false);
  shape.downsample_in_bottleneck = fields.flag("downsample_in_bottleneck", false);
  for (const int size : shape.hidden_sizes)
    if (shape.bottleneck && size % kReduction != 0)
      throw InvalidInput(file + ": hidden_sizes", fmt::format("must be multiples of {} in bottlenecks", kReduction),
                         std::to_string(size));
  return shape;
}

}  // namespace frostpipe
