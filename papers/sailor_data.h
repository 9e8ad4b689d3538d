#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"

namespace frostpipe {

/// This header reads the measurements published with Sailor (Strati et al. 2025): per-layer times of Transformers by
/// device, micro-batch size and tensor-parallel size, link curves between devices, and whole training runs to predict.
/// All are in FP32 with Adam and sequences of 2,048 tokens.

/// Times of one layer, in seconds.
struct SailorLayerTime {
  double forward = 0, backward = 0, update = 0;
};

/// One rank's part of one layer.
struct SailorLayerSize {
  Bytes parameter_bytes = 0, output_bytes = 0, stored_bytes = 0;  // the last two for one sample
};

struct SailorRun {
  struct Replica {
    std::string device;
    int tensor_parallel_size = 1;
  };
  struct Stage {
    std::vector<int> layers;
    std::vector<Replica> replicas;
  };
  std::string name, model;
  std::vector<Stage> stages;  // at least one, each with layers, and all with the same number of replicas
  int micro_batch_size = 1, global_batch_size = 1;
  double iteration_seconds = 0;  // measured
  Bytes peak_memory_bytes = 0;   // measured
  std::string repaired;          // an error in the file and how it was corrected; "" if none
};

class SailorData {
 public:
  /// Reads llm_info.json and multizone_bandwidths_het.json; profiles are read on request. Throws InvalidInput that
  /// names the file.
  explicit SailorData(std::filesystem::path folder);

  /// Returns the runs under validation/, ordered by name; none without such a folder. Throws InvalidInput that names
  /// the file and the field.
  std::vector<SailorRun> runs() const;

  /// Returns cleaned times: a layer never takes longer than the same layer with twice the samples. At small sizes the
  /// profile itself is noisy, because launches limit it. Throws InvalidInput if the profile lacks the layer at this
  /// size.
  SailorLayerTime layer_time(const std::string& model, const std::string& device, int micro_batch_size,
                             int tensor_parallel_size, int layer);
  const SailorLayerSize& layer_size(const std::string& model, int tensor_parallel_size, int layer) const;

  /// Returns the bandwidth between `pairs` devices on each side, for messages of `bytes`: the published curve (GB/s as
  /// a quadratic function of log2 of MB), up to its plateau. Another number of pairs stands for one that was not
  /// measured. If the table's two directions differ, the faster one is used, because for one pair it states 1 Gbit/s in
  /// one direction and 23 Gbit/s in the other. Throws InvalidInput if there is no curve.
  double link_bytes_per_second(const std::string& from, const std::string& to, int pairs, double bytes) const;

 private:
  struct Curve {
    double quadratic = 0, linear = 0, constant = 0, plateau_bytes_per_second = 0;
  };
  using Times =
      std::map<int, std::map<int, std::map<int, SailorLayerTime>>>;  // [micro-batch size][tensor-parallel size][layer]
  const Times& times_of(const std::string& model, const std::string& device);
  const Curve* curve_of(const std::string& from, const std::string& to, int pairs) const;

  std::filesystem::path folder_;
  std::map<std::string, std::map<int, std::map<int, SailorLayerSize>>> sizes_;  // [model][tensor-parallel size][layer]
  std::map<std::string, Curve> curves_;                                         // "from/to/pairs"
  std::map<std::string, Times> times_;                                          // "model/device"
};

}  // namespace frostpipe
