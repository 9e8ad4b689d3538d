// Replaces NVIDIA's driver on a machine without one: it has two GPUs, or fails with the error in FROSTPIPE_FAKE_DRIVER.
#include <cstddef>
#include <cstdio>
#include <cstdlib>

extern "C" {

int cuInit(unsigned) {
  const char* const error = std::getenv("FROSTPIPE_FAKE_DRIVER");
  return error ? std::atoi(error) : 0;
}

int cuDriverGetVersion(int* version) {
  *version = 12080;
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = 2;
  return 0;
}

int cuDeviceGet(int* device, int index) {
  *device = 10 + index;
  return 0;
}

int cuDeviceGetName(char* name, int size, int device) {
  std::snprintf(name, static_cast<std::size_t>(size), "Fake %d", device);
  return 0;
}

int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  *bytes = std::size_t{1} << (device + 24);
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 75 ? 8 : attribute == 76 ? device - 4 : -1;
  return 0;
}

int cuGetErrorName(int error, const char** name) {
  if (error == 100) *name = "CUDA_ERROR_NO_DEVICE";
  return error == 100 ? 0 : 1;
}
}
