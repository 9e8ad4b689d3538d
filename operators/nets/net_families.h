#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "executor/models/folder/preprocessor_config.h"
#include "operators/graph/net_config.h"

namespace frostpipe {

struct NetFolder;

/// The properties that a folder's config.json and, for transformers' families, preprocessor_config.json give in
/// addition to the net's layers.
struct NetConfig {
  std::vector<std::string> label_names;  // empty if config.json names none
  Normalisation normalisation;
  double dropout = 0;  // before or in the classifier, in training
};

/// The prefixes of the names of a layer's tensors, in one naming scheme.
struct LayerPrefixes {
  std::string product, norm;
  int stored_pixels = 0;  // kernel size of the convolution as which a linear layer is stored; 0 = stored as a matrix
};

/// Returns the prefixes of a layer other than pooling.
using TensorNaming = LayerPrefixes (*)(const NetShape& net, int layer);

/// The format of the folders of a family of nets. Its functions throw InvalidInput that names file, field, rule and
/// value, also for options that frostpipe does not support.
struct NetFamily {
  NetKind kind;
  /// `fields` are those of config.json, which `file` names.
  NetConfig (*read)(const std::filesystem::path& folder, const ConfigFields& fields, const std::string& file);
  /// Files are written with the first naming, unless is_written_as_read.
  std::span<const TensorNaming> namings;
  bool is_written_as_read = false;
  /// Writes config.json and, for transformers' families, preprocessor_config.json, for a net with the source's labels.
  void (*write_config)(const NetFolder& source, const std::filesystem::path& target);
};

extern const NetFamily kResNet, kVgg, kMobileNet, kMobileNetV2;

const NetFamily& family_of(NetKind kind);

void write_transformers_config(const NetFolder& source, const char* architecture, const std::filesystem::path& target);

}  // namespace frostpipe
