#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "operators/graph/net_shape.h"
#include "profiles/config_fields.h"

// The nets that a config.json describes. All functions that read one throw InvalidInput that names file, field, rule
// and value, also for options that frostpipe does not compute.

namespace frostpipe {

enum class NetKind { resnet, vgg, mobilenet, mobilenet_v2 };

/// Returns the kind of net that config.json describes; nothing if it describes none of these.
std::optional<NetKind> find_net_kind(const nlohmann::ordered_json& config);

/// Does the same for the `fields` of the config.json `file`, and throws InvalidInput if they describe none of these.
NetKind net_kind_of(const ConfigFields& fields, const std::string& file);

/// Returns the net that `fields` describe, with the name `name`. It reads every field that changes the net through
/// `fields`, so that ConfigFields::require_known() may follow. The size of pictures is that of `folder`'s
/// preprocessor_config.json, else that of config.json; for a VGG it is that of config.json. If the file does not say
/// it, it is 224. The number of labels is num_classes for a VGG (default: 1000), else 1000.
NetShape net_from_config(NetKind kind, const std::string& name, const std::filesystem::path& folder,
                         const ConfigFields& fields);

/// Throws InvalidInput, in which `file` names the net's config.json, for sizes that operator graphs cannot have, or
/// whose product with a mini-batch would not fit into 64 bits.
void require_possible(const NetShape& net, const std::string& file);

/// Returns the net of a config.json, or of the folder that holds it. The number of labels is that of the names in
/// id2label or label_names, else num_labels. The net has the name of the folder. Throws InvalidInput also for a field
/// that is not known, and for impossible sizes.
NetShape read_net(const std::filesystem::path& file_or_folder);

}  // namespace frostpipe
