#include "operators/nets/net_families.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/parse_json.h"
#include "executor/models/folder/model_config.h"
#include "operators/nets/net_folder.h"

namespace frostpipe {

const NetFamily& family_of(NetKind kind) {
  for (const NetFamily* family : {&kResNet, &kVgg, &kMobileNet, &kMobileNetV2})
    if (family->kind == kind) return *family;
  throw InternalError("a kind of net has no family");
}

void write_transformers_config(const NetFolder& source, const char* architecture, const std::filesystem::path& target) {
  auto config = parse_json<nlohmann::ordered_json>(read_text_file(source.path / "config.json"),
                                                   (source.path / "config.json").string());
  config["architectures"] = {architecture};
  config["dtype"] = "float32";
  config.erase("torch_dtype");
  if (config.contains("image_size")) config["image_size"] = source.net.picture_size;
  set_label_names(config, source.label_names);
  write_file_atomically(target / "config.json", json_text(config, 2) + "\n");
  write_file_atomically(target / "preprocessor_config.json", preprocessor_config(source.path, source.net.picture_size));
}

}  // namespace frostpipe
