#pragma once
#include <chrono>

#include <gloo/transport/device.h>

namespace gloo {
// c10d's header calls setTimeout inline on contexts that the library makes. The real class is in libtorch_cpu.so and
// has another layout, so no context may be made or destroyed through this one.
class Context {
 public:
  Context() = delete;
  void setTimeout(std::chrono::milliseconds timeout);
};
}  // namespace gloo
