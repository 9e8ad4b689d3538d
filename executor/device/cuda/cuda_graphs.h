#pragma once
#include <c10/cuda/CUDAStream.h>

#include <memory>

#include "executor/device/device.h"

namespace frostpipe {

/// A CUDA graph for each record, of which all share memory. They are made on `stream`, which should be the same for all
/// of a process: cuBLAS keeps memory for each. They are replayed on the current one.
std::unique_ptr<RecordedWork> make_cuda_graphs(const c10::cuda::CUDAStream& stream);

}  // namespace frostpipe
