#pragma once
#include <string>

#include "profiles/operators/net_shape.h"

namespace frostpipe {

/// A ResNet's shape from the text of its config.json, for pictures of `picture_size` x `picture_size` pixels. Throws
/// InvalidInput naming `file`, field, rule and value; also for what this tool does not compute.
ResNetShape resnet_from_config(const std::string& text, const std::string& file, int picture_size);

}  // namespace frostpipe
