#include "serving/server/worker/worker_messages.h"

#include "base/json_reader.h"
#include "profiles/dtype_json.h"

namespace frostpipe {

template <class Archive>
void fields(Archive& archive, json::Value<Archive, BatchShape>& shape) {
  archive("most_requests", shape.max_requests);
  archive("most_tokens", shape.max_tokens);
  archive("pixels", shape.pixels);
  archive("heads", shape.heads);
  archive("activation_bytes", shape.activation_bytes);
  archive("answer_size", shape.answer_size);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, FolderBytes>& bytes) {
  archive("weights", bytes.weights);
  archive("others", bytes.others);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, PartitionLoad>& load) {
  archive("folders", load.folders);
  archive("folder_bytes", load.folder_bytes);
  archive("shared_layers", load.shared_layers);
  archive("layers", load.layers);
  archive("partition", load.partition);
  archive("dtype", load.dtype);
  archive("device", load.device);
  archive("device_index", load.device_index);
  archive("threads", load.threads);
  archive("shape", load.shape);
  archive("compute_ns", load.compute_ns);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, BatchOrder>& order) {
  archive("batch", order.batch);
  archive("buffer", order.buffer);
  archive("ordered_ns", order.ordered_ns);
  archive("lengths", order.lengths);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, BatchReport>& report) {
  archive("batch", report.batch);
  archive("begin_ns", report.begin_ns);
  archive("end_ns", report.end_ns);
  archive("failure", report.failure);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, ToWorker>& message) {
  archive("load", message.load);
  archive("order", message.order);
}

template <class Archive>
void fields(Archive& archive, json::Value<Archive, FromWorker>& message) {
  archive("loaded", message.loaded);
  archive("report", message.report);
}

namespace {

template <class Message>
Message message_from(const std::string& text, const std::string& source) {
  const json::Json parsed = json::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) throw InvalidInput(source, "must be JSON", text.substr(0, 80));
  Message message;
  json::read(parsed, json::Place(source), message);
  return message;
}

}  // namespace

std::string to_text(const ToWorker& message) { return json::write(message).dump(); }
std::string to_text(const FromWorker& message) { return json::write(message).dump(); }
ToWorker to_worker_from_text(const std::string& text) { return message_from<ToWorker>(text, "message to a worker"); }
FromWorker from_worker_from_text(const std::string& text) {
  return message_from<FromWorker>(text, "message from a worker");
}

}  // namespace frostpipe
