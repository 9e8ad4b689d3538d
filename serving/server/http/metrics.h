#pragma once
#include <string>

#include "serving/server/served_models.h"

namespace frostpipe {

/// Returns the state of all models and workers in Prometheus' text format, version 0.0.4.
std::string metrics_text(const ServedModels& models);

}  // namespace frostpipe
