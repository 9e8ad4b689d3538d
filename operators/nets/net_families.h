#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "executor/models/folder/preprocessor_config.h"
#include "operators/graph/net_shape.h"
#include "profiles/config_fields.h"

namespace frostpipe {

struct NetFolder;

/// The contents of a folder's config.json and of the file of its preprocessing.
struct NetConfig {
  NetShape net;
  std::vector<std::string> label_names;  // empty if it names none
  Normalisation normalisation;
  double dropout = 0;  // before or in the classifier, in training
};

/// The prefixes of the names of a layer's tensors, in one naming scheme.
struct LayerPrefixes {
  std::string product, norm;
  int stored_pixels = 0;  // pixels on a side of the convolution as which a linear layer is stored; 0: a matrix
};

/// Returns the prefixes of a layer other than pooling.
using TensorNaming = LayerPrefixes (*)(const NetShape& net, int layer);

/// The format of the folders of a family of nets. Its functions throw InvalidInput that names file, field, rule and
/// value, also for options that frostpipe does not support.
struct NetFamily {
  bool (*is_of)(const nlohmann::ordered_json& config);
  /// `fields` are those of config.json, which `file` names. Reads every field that changes the net by the functions of
  /// `fields`, since a field that was not read may be refused as unknown.
  NetConfig (*read)(const std::filesystem::path& folder, const std::string& name, const ConfigFields& fields,
                    const std::string& file);
  /// Files are written with the first naming, unless is_written_as_read.
  std::span<const TensorNaming> namings;
  bool is_written_as_read = false;
  /// Writes config.json, and the file of its preprocessing, for a net with the source's labels.
  void (*write_config)(const NetFolder& source, const std::filesystem::path& target);
};

extern const NetFamily kResNet, kVgg, kMobileNet, kMobileNetV2;

/// Returns null if config.json belongs to none of the families.
const NetFamily* find_net_family(const nlohmann::ordered_json& config);

/// Returns the field `key`, or `otherwise` if it is missing. Throws InvalidInput unless it is a whole number > 0 that
/// fits into shapes.
int small_number(const ConfigFields& fields, const char* key, int otherwise, const std::string& file);

/// Returns the pixels on a side of square pictures. Throws InvalidInput with `place` unless it is a number within the
/// limit.
int picture_size_from(const nlohmann::ordered_json& pixels, const std::string& place);

/// Returns the size of pictures of a folder of transformers: preprocessor_config.json's, or image_size, or 224.
int transformers_picture_size(const std::filesystem::path& folder, const ConfigFields& fields);
void write_transformers_config(const NetFolder& source, const char* architecture, const std::filesystem::path& target);

}  // namespace frostpipe
