#pragma once
#include <string_view>

#include "profiles/profile.h"

namespace frostpipe {

/// What the file does not say.
struct ImportOptions {
  int measured_samples = 1;  // that its times and sizes are of
  int global_batch_size = 256;
  int num_samples = 6144;
};

/// A profile from layer graphs that others measured: PipeDream's and DAPPLE's text (`node1 -- what --
/// forward_compute_time=2.2, backward_compute_time=2.8, activation_size=..., parameter_size=...` in ms and bytes, then
/// `<TAB>node1 -- node2`), Piper's JSON (its times without tensor parallelism are read as seconds per sample, a third
/// of it forward; its GNMT and ResNet hold milliseconds of a batch, so that only ratios are right there).
///
/// The graph becomes a chain (chain_order); a layer's output activation is all that crosses the cut after it. Times
/// and sizes are taken to grow in proportion to the samples, a backward to be half weight gradient where there are
/// parameters, the optimizer step to be free.
///
/// Also Sailor's per-layer seconds by micro-batch and tensor-parallel size (MODEL_DEVICE_profile.json; layers' sizes
/// from llm_info.json in the same folder), and tables like PPipe's of microseconds (MODEL-GPU-SHARE.csv: a row per
/// block, a column per batch size 1, 2, ...; forward only, so that a backward is taken as twice as long and nothing is
/// known of sizes). The model is called MODEL where the file's name holds it, else `source`. Throws InvalidInput that
/// names the line, the missing file, or a cycle.
Profile import_profile(std::string_view text, std::string_view source, const ImportOptions& options);

}  // namespace frostpipe
