#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "profiles/dtype.h"
#include "serving/server/worker/batch_buffer.h"
#include "serving/server/worker/folder_bytes.h"

// Messages between a server and the worker of a virtual device, as short JSON texts over their ControlChannel. Tensors
// are in batch buffers, which both map. Times are on the machine's steady clock.

namespace frostpipe {

/// The partition that a worker must load.
struct PartitionLoad {
  /// Hugging Face folders, one per head; empty for an emulated device.
  std::vector<std::string> folders;
  std::vector<FolderBytes> folder_bytes;  // expected hashes of the folders
  int shared_layers = 0;    // with several heads: number of leading layers that are computed once, with the first
                            // folder's weights
  std::vector<int> layers;  // partition i of the pipeline has layers [layers[i], layers[i + 1])
  int partition = 0;        // index of the worker's partition
  DType dtype = DType::kFloat32;
  std::string device = "cpu";
  int device_index = 0;  // for cuda: modulo the number of GPUs
  int threads = 1;
  BatchShape shape;
  std::vector<Nanoseconds> compute_ns;  // emulated: for a batch of 1, 2, ...
  bool operator==(const PartitionLoad&) const = default;
};

/// A batch for a worker, which computes batches in order of arrival. The first message that mentions a buffer carries
/// its descriptor.
struct BatchOrder {
  std::int64_t batch = 0;
  int buffer = 0;
  Nanoseconds ordered_ns = 0;
  std::vector<std::int64_t> lengths;  // number of tokens of each request
  bool operator==(const BatchOrder&) const = default;
};

/// The worker's report on a batch; `failure` is "" if it was computed.
struct BatchReport {
  std::int64_t batch = 0;
  Nanoseconds begin_ns = 0, end_ns = 0;
  std::string failure;
  bool operator==(const BatchReport&) const = default;
};

/// A message from the server; one of these is set.
struct ToWorker {
  std::optional<PartitionLoad> load;  // the first message
  std::optional<BatchOrder> order;
};

/// A message from a worker; one of these is set.
struct FromWorker {
  std::optional<std::string> loaded;  // "" if the partition is loaded; else the error, after which the worker ends
  std::optional<BatchReport> report;
};

std::string to_text(const ToWorker& message);
std::string to_text(const FromWorker& message);
/// Throw InvalidInput for invalid texts.
ToWorker to_worker_from_text(const std::string& text);
FromWorker from_worker_from_text(const std::string& text);

}  // namespace frostpipe
