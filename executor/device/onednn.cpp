#include "executor/device/onednn.h"

#include <dlfcn.h>

#include <array>

namespace frostpipe {
namespace {

SingleGemm load_gemm() {
#ifndef __SANITIZE_ADDRESS__  // the address sanitizer does not support RTLD_DEEPBIND
  for (const char* const library : std::array{"libdnnl.so.3", "libdnnl.so.2"}) {
    // RTLD_DEEPBIND keeps the library from calling functions of LibTorch's own copy of oneDNN, which is another
    // version. The library is never unloaded.
    if (void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND))
      return reinterpret_cast<SingleGemm>(dlsym(handle, "dnnl_sgemm"));
  }
#endif
  return nullptr;
}

}  // namespace

bool prefers_onednn() {
#ifdef __x86_64__
  return __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}

SingleGemm find_onednn_gemm() {
  static const SingleGemm gemm = prefers_onednn() ? load_gemm() : nullptr;
  return gemm;
}

std::string onednn_file() {
  Dl_info info{};
  const SingleGemm gemm = find_onednn_gemm();
  return gemm && dladdr(reinterpret_cast<const void*>(gemm), &info) != 0 ? info.dli_fname : "";
}

}  // namespace frostpipe
