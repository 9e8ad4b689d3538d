#include "executor/installation/nvidia_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace frostpipe {
namespace {

// Part of the driver's C interface (cuda.h), whose names and numbers do not change.
constexpr int kSuccess = 0;
constexpr int kComputeCapabilityMajor = 75, kComputeCapabilityMinor = 76;

struct Driver {
  int (*init)(unsigned flags);
  int (*version)(int* version);
  int (*count)(int* count);
  int (*device)(int* device, int index);
  int (*name)(char* name, int size, int device);
  int (*memory)(std::size_t* bytes, int device);
  int (*attribute)(int* value, int attribute, int device);
  int (*error_name)(int error, const char** name);
};

template <typename Function>
bool load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool load_all(void* library, Driver& driver) {
  return load(library, "cuInit", driver.init) && load(library, "cuDriverGetVersion", driver.version) &&
         load(library, "cuDeviceGetCount", driver.count) && load(library, "cuDeviceGet", driver.device) &&
         load(library, "cuDeviceGetName", driver.name) && load(library, "cuDeviceTotalMem_v2", driver.memory) &&
         load(library, "cuDeviceGetAttribute", driver.attribute) && load(library, "cuGetErrorName", driver.error_name);
}

std::string error_text(const Driver& driver, int error) {
  const char* name = nullptr;
  driver.error_name(error, &name);
  return name ? name : fmt::format("error {}", error);
}

Gpu gpu_at(const Driver& driver, int index) {
  int device = 0, major = 0, minor = 0;
  std::size_t bytes = 0;
  std::array<char, 256> name{};
  driver.device(&device, index);
  driver.name(name.data(), name.size(), device);
  driver.memory(&bytes, device);
  driver.attribute(&major, kComputeCapabilityMajor, device);
  driver.attribute(&minor, kComputeCapabilityMinor, device);
  return {.name = name.data(), .memory = static_cast<Bytes>(bytes), .compute_capability = 10 * major + minor};
}

}  // namespace

NvidiaDriver nvidia_driver(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // never unloaded, since it has threads
  if (!handle) return {.fault = dlerror(), .gpus = {}};
  Driver driver{};
  if (!load_all(handle, driver)) return {.fault = library + " lacks functions of CUDA's driver", .gpus = {}};
  NvidiaDriver found;
  driver.version(&found.cuda_version);
  int count = 0, error = driver.init(0);
  if (error == kSuccess) error = driver.count(&count);
  if (error != kSuccess) found.fault = "the driver says " + error_text(driver, error);
  for (int index = 0; index < count; ++index) found.gpus.push_back(gpu_at(driver, index));
  return found;
}

std::string cuda_version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace frostpipe
