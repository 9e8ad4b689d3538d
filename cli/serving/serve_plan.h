#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/serving/serving_load.h"
#include "serving/server/servable_model.h"

namespace frostpipe {

/// What `frostpipe serve` is told. What is empty was not given.
struct ServeOptions {
  std::string plan;                 // its file
  std::vector<std::string> models;  // "FOLDER" or "MODEL=FOLDER"
  std::vector<std::string> heads;   // "NAME=FOLDER" or "MODEL=NAME=FOLDER"
  bool emulate = false;
  std::string host = "127.0.0.1";
  std::optional<int> port;
  std::string api_key_file;               // without it all who reach the port may ask
  std::string ssl_certfile, ssl_keyfile;  // without them nothing is encrypted
  std::string device = "cpu";
  int threads = 1;          // of a worker
  ServingLoadOptions load;  // generated; else requests come over HTTP alone
  std::string output;       // folder for serving_run.json and report.html
  std::string format;
};

/// open_servable_model, of a program that has LibTorch or says that it has not.
using OpenModel = std::function<ServableModel(const std::vector<HeadFolder>&, const ServedModel&, DType)>;

/// Serves the plan until the generated load has ended, or until SIGINT or SIGTERM; SIGHUP reads the plan's file again.
/// Returns what was done, beside what the simulator says of the same arrivals, as a text or as JSON
/// ("frostpipe.serving_run"). Throws InvalidInput, RuntimeFailure; UsageError where options contradict each other.
std::string serve_plan(const ServeOptions& options, const OpenModel& open_model);

}  // namespace frostpipe
