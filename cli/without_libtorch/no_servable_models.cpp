#include "cli/without_libtorch/left_out.h"
#include "serving/server/servable_model.h"
#include "serving/server/worker/partition_compute.h"

// Replaces serving/server/transformer in frostpipe-serving without LibTorch.

namespace frostpipe {
namespace {

constexpr const char* kExecutor = "frostpipe-serving-executor";

}  // namespace

ServableModel open_servable_model(const std::vector<HeadFolder>&, const ServedModel&, DType) {
  left_out(kExecutor, "serve a model");
}

std::unique_ptr<PartitionCompute> load_partition(const PartitionLoad&) { left_out(kExecutor, "serve a model"); }

}  // namespace frostpipe
