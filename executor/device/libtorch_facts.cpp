#include "executor/installation/libtorch_facts.h"

#include <ATen/Version.h>
#include <dlfcn.h>
#include <link.h>

#include <filesystem>

#include "base/error.h"
#include "executor/device/cuda_module.h"
#include "executor/device/onednn.h"

namespace frostpipe {
namespace {

/// Callback for each library of the process: stores the folder of LibTorch and then stops the iteration.
int note_folder(dl_phdr_info* library, std::size_t, void* folder) {
  const std::filesystem::path file = library->dlpi_name;
  if (file.filename() != "libtorch_cpu.so") return 0;
  std::error_code unreadable;
  const std::filesystem::path real = std::filesystem::canonical(file, unreadable);
  *static_cast<std::string*>(folder) = (unreadable ? file : real).parent_path().parent_path().string();
  return 1;
}

/// Calls int NAME(int*) of the module or its dependencies and returns the number; 0 if there is no such function or it
/// fails.
int number_of(void* module, const char* name) {
  int number = 0;
  const auto function = reinterpret_cast<int (*)(int*)>(dlsym(module, name));
  return function && function(&number) == 0 ? number : 0;
}

void add_cuda(LibTorchFacts& facts) {
  void* const module = load_cuda_module();
  facts.cuda_version = number_of(module, "cudaRuntimeGetVersion");
  facts.nccl_version = number_of(module, "ncclGetVersion");
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(module, "cudaGetDeviceCount"));
  const auto error_text = reinterpret_cast<const char* (*)(int)>(dlsym(module, "cudaGetErrorString"));
  if (!count || !error_text) throw RuntimeFailure("device cuda: CUDA's runtime is not among LibTorch's libraries");
  if (const int error = count(&facts.num_gpus)) {
    facts.num_gpus = 0;
    throw RuntimeFailure(std::string("device cuda: CUDA's runtime says: ") + error_text(error));
  }
  if (facts.num_gpus == 0) throw RuntimeFailure("device cuda: CUDA's runtime finds no GPU");
}

}  // namespace

LibTorchFacts libtorch_facts() {
  LibTorchFacts facts;
  dl_iterate_phdr(note_folder, &facts.folder);
  facts.cpu_instructions = at::get_cpu_capability();
  facts.prefers_onednn = prefers_onednn();
  facts.onednn = onednn_file();
  facts.has_cuda_module = std::filesystem::exists(cuda_module());
  try {
    add_cuda(facts);
  } catch (const RuntimeFailure& failure) {
    facts.cuda_fault = failure.what();
  }
  return facts;
}

}  // namespace frostpipe
