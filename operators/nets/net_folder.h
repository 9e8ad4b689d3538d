#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "executor/models/folder/weight_files.h"
#include "operators/nets/net_families.h"
#include "operators/nets/net_state.h"
#include "profiles/transformer/transformer_config.h"

namespace frostpipe {

/// A Hugging Face folder of a convolutional net: config.json of one of the families, transformers' or timm's; weights
/// under one of the family's names, unless the net starts at random.
struct NetFolder {
  std::filesystem::path path;
  const NetFamily* family = nullptr;
  NetShape net;
  std::vector<std::string> label_names;  // empty if the folder names none
  bool classifies_other_labels = false;  // the folder's classifier has other labels, so it starts at random
  ProblemType problem_type = ProblemType::single_label;  // of the folder's classifier
  std::string name;                                      // as in ModelFolder
  Normalisation normalisation;
  double dropout = 0;  // as in NetConfig; frostpipe trains without dropout
};

/// Returns whether the folder's config.json is that of a net, which open_net_folder() can read.
bool is_net_folder(const std::filesystem::path& path);

/// Reads and checks config.json, and preprocessor_config.json of transformers' folders. Throws InvalidInput that names
/// file, field, rule and value, also for a field of config.json that is not known (require_known_fields), and for
/// impossible sizes.
NetFolder open_net_folder(const std::filesystem::path& path);

/// Gives the net a classifier for these labels, in this order.
void set_labels(NetFolder& folder, const std::vector<std::string>& label_names);

/// Returns the parts that will start at random: "the whole model" without weights, else tensors of the classifier.
/// Throws InvalidInput unless the files have every other tensor in its shape (may_be_missing() names exceptions), and
/// if the folder's classifier is used but does not predict one of several labels.
std::vector<std::string> check_weights(const NetFolder& folder, const WeightFiles& files);

/// Returns the folder's weights in float32; the parts that check_weights() names are those of random_state().
NetState load_state(const NetFolder& folder, const WeightFiles& files, std::uint64_t seed);

/// Writes a folder that open_net_folder() and the library of the family can read. `state` has every layer.
void write_net_folder(const NetFolder& source, const NetState& state, const std::filesystem::path& target);

}  // namespace frostpipe
