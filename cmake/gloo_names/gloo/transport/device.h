#pragma once
#include <memory>

namespace gloo::transport {
// These are only names, see gloo/context.h. c10d passes devices by shared_ptr; the library makes and destroys them.
class Device;
class Context;
// c10d's work classes hold a unique_ptr to this class, so its destructor must be declared.
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};
}  // namespace gloo::transport
