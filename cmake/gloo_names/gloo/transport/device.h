#pragma once
#include <memory>

namespace gloo::transport {
// Names only, see gloo/context.h. c10d hands devices around by shared_ptr, made and destroyed inside the library.
class Device;
class Context;
// c10d's work classes hold a unique_ptr to this, whose destructor must be nameable.
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};
}  // namespace gloo::transport
