#pragma once
#include <string>

namespace CLI {
class App;
}

namespace frostpipe {

/// The options of `frostpipe nets profile`. It measures `model`, a folder, or estimates `like`, a known net or a
/// config.json.
struct NetProfileOptions {
  std::string model, like, hardware, output, cluster, format;
  int global_batch_size = 64;
  bool quick = false;
};

void add_net_profile_options(CLI::App& command, NetProfileOptions& options);

/// Writes the profile and prints it; returns the exit code.
int profile_net(const NetProfileOptions& options);

}  // namespace frostpipe
