#pragma once
#include <string_view>

#include "profiles/profile.h"

namespace frostpipe {

/// Facts that the file does not contain.
struct ImportOptions {
  int measured_samples = 1;  // number of samples that its times and sizes refer to
  int global_batch_size = 256;
  int num_samples = 6144;
};

/// Makes a profile from another tool's measurements. Layer graphs are PipeDream's and DAPPLE's text (`node1 -- what --
/// forward_compute_time=2.2, backward_compute_time=2.8, activation_size=..., parameter_size=...` in ms and bytes, then
/// `<TAB>node1 -- node2`), and Piper's JSON. Piper's times without tensor parallelism are read, as seconds per sample,
/// of which a third is forward; its files of GNMT and ResNet have milliseconds of a batch instead, so only their ratios
/// are right.
///
/// A graph becomes a chain (chain_order); a layer's output activation is all that crosses the cut after it. Times and
/// sizes are assumed to be proportional to the samples, half of a backward to be weight gradient if there are
/// parameters, and the optimizer step to be free.
///
/// Tables are Sailor's seconds per layer by micro-batch and tensor-parallel size (MODEL_DEVICE_profile.json; sizes of
/// layers from llm_info.json in the same folder), and microseconds as PPipe has them (MODEL-GPU-SHARE.csv: a row per
/// block, a column per batch size 1, 2, ...; they have only forwards, so a backward is assumed to take twice as long,
/// and sizes are unknown). The model is called MODEL if the file's name contains it, else `source`. Throws InvalidInput
/// that names the line, the missing file, or a cycle.
Profile import_profile(std::string_view text, std::string_view source, const ImportOptions& options);

}  // namespace frostpipe
