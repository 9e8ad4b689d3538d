#include "operators/plan/net_run.h"

#include "base/json_reader.h"

namespace frostpipe {

template <class Archive>
void fields(Archive& archive, json::Value<Archive, NetEpoch>& epoch) {
  archive("frozen_layers", epoch.frozen_layers, json::at_least(0));
  archive("predicted_iteration_ns", epoch.predicted_iteration_ns, json::at_least(0));
  archive("iteration_ns", epoch.iteration_ns, json::at_least(0));
  archive("loss", epoch.loss);
  archive("test_accuracy", epoch.test_accuracy);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, NetDevice>& device) {
  archive("device_class", device.device_class);
  archive("predicted_memory_bytes", device.predicted_memory_bytes, json::at_least(0));
  archive("peak_memory_bytes", device.peak_memory_bytes, json::at_least(0));
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, NetRun>& run) {
  archive("name", run.name);
  archive("net", run.net);
  archive("method", run.method);
  archive("batch", run.batch, json::at_least(1));
  archive("num_iterations", run.num_iterations, json::at_least(0));
  archive("wall_seconds", run.wall_seconds, json::at_least(0));
  archive("devices", run.devices);
  archive("epochs", run.epochs);
}

namespace {
constexpr std::string_view kFormat = "frostpipe.net_run";
}

std::string to_json(const NetRun& run) { return json::write_envelope(kFormat, run); }

NetRun net_run_from_json(std::string_view json, std::string_view source) {
  return json::read_envelope<NetRun>(json, source, kFormat);
}

}  // namespace frostpipe
