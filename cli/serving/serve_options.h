#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/serving/serving_load.h"

namespace CLI {
class App;
}

namespace frostpipe {

/// The options of `frostpipe serving run`. A field is empty where its option is not given.
struct ServeOptions {
  std::string plan;                 // the plan's file
  std::vector<std::string> models;  // as served_folders() takes them
  std::string device = "cpu";       // or cuda; or emulated, which computes nothing and takes no folders
  std::string host = "127.0.0.1";
  std::optional<int> port;
  std::string api_key_file;               // if empty, everybody who reaches the port may ask
  std::string ssl_certfile, ssl_keyfile;  // if empty, nothing is encrypted
  ServingLoadOptions load;                // requests to generate; if none is given, requests come over HTTP
  std::string output;                     // folder for serving_run.json and report.html
  std::string format;
};

void add_serve_options(CLI::App& command, ServeOptions& options);

}  // namespace frostpipe
