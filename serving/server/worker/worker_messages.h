#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "profiles/dtype.h"
#include "serving/server/worker/batch_buffer.h"
#include "serving/server/worker/folder_bytes.h"

// What a server and the worker of a virtual device say to each other, as short JSON texts over their ControlChannel.
// Tensors are in batch buffers, which both map. Times are of the machine's steady clock.

namespace frostpipe {

/// What a worker is to hold.
struct PartitionLoad {
  /// Hugging Face folders, one per head; empty: an emulated device, which only takes its time.
  std::vector<std::string> folders;
  std::vector<FolderBytes> folder_bytes;  // what each of them must hold
  int shared_layers = 0;    // of several heads: leading layers that are the first folder's for all, computed once
  std::vector<int> layers;  // partition i of the pipeline has layers [layers[i], layers[i + 1])
  int partition = 0;        // of these
  DType dtype = DType::kFloat32;
  std::string device = "cpu";
  int device_index = 0;  // of cuda: more than the machine has go round
  int threads = 1;
  BatchShape shape;
  std::vector<Nanoseconds> compute_ns;  // emulated: of a batch of 1, 2, ...
  bool operator==(const PartitionLoad&) const = default;
};

/// A batch for a worker; they are computed in the order in which they come. The first that names a buffer brings its
/// descriptor along.
struct BatchOrder {
  std::int64_t batch = 0;
  int buffer = 0;
  Nanoseconds ordered_ns = 0;
  std::vector<std::int64_t> lengths;  // tokens of each request
  bool operator==(const BatchOrder&) const = default;
};

/// That a batch is computed, or what was wrong.
struct BatchReport {
  std::int64_t batch = 0;
  Nanoseconds begin_ns = 0, end_ns = 0;
  std::string trouble;
  bool operator==(const BatchReport&) const = default;
};

/// A text from the server: one of these is there.
struct ToWorker {
  std::optional<PartitionLoad> load;  // the first text
  std::optional<BatchOrder> order;
};

/// A text from a worker.
struct FromWorker {
  std::optional<std::string> loaded;  // empty, or why the partition cannot be had: the worker then ends
  std::optional<BatchReport> report;
};

std::string to_text(const ToWorker& message);
std::string to_text(const FromWorker& message);
/// Throw InvalidInput for what is none.
ToWorker to_worker_from_text(const std::string& text);
FromWorker from_worker_from_text(const std::string& text);

}  // namespace frostpipe
